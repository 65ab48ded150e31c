'use strict';
/* Tests of mtan.js in node, for each of the modules: the forward passes of golden/ within its limits, the mtan command's numbers,
 * hostile input. Prints a line per test and the sum as the suites do; exit status 1 when one failed.
 *
 *     node tools/web/test.js BUILD        BUILD: what tools/edge/wasm.sh made (modules, models, and what the command said of them)
 */
const fs = require('fs'), path = require('path');
const mtan = require('./mtan.js'), events = require('./events.js');
const build = process.argv[2] || 'build/wasm', golden = path.join(__dirname, '../../golden');
let passed = 0, failed = 0;

function expect(truth, words) {
    if (!truth) throw new Error(words);
}

function throws(body, words) {
    try {
        body();
    } catch (error) {
        expect(error.message.includes(words), `"${error.message}" does not say "${words}"`);
        return;
    }
    throw new Error(`nothing was thrown where "${words}" is due`);
}

async function test(name, body) {
    try {
        const words = await body();
        passed++;
        console.log(`PASS ${name}${words ? ': ' + words : ''}`);
    } catch (error) {
        failed++;
        console.log(`FAIL ${name}: ${error.stack}`);
    }
}

/* ---- safetensors ---- */

function readTensors(file) {
    const bytes = fs.readFileSync(file), n = Number(bytes.readBigUInt64LE(0));
    const header = JSON.parse(bytes.toString('utf8', 8, 8 + n)), tensors = {};
    const kinds = { F64: Float64Array, F32: Float32Array, I32: Int32Array };
    for (const [name, t] of Object.entries(header)) {
        if (name === '__metadata__') continue;
        const part = bytes.subarray(8 + n + t.data_offsets[0], 8 + n + t.data_offsets[1]);
        tensors[name] = Object.assign(new kinds[t.dtype](new Uint8Array(part).buffer), { shape: t.shape });
    }
    return { metadata: header.__metadata__ || {}, tensors };
}

/* weights: name -> { shape, values }; dtype: F32 or F64. */
function writeTensors(metadata, weights, dtype) {
    const header = { __metadata__: metadata }, parts = [];
    let offset = 0;
    for (const [name, w] of Object.entries(weights)) {
        const array = dtype === 'F32' ? Float32Array.from(w.values) : Float64Array.from(w.values);
        header[name] = { dtype, shape: w.shape, data_offsets: [offset, offset += array.byteLength] };
        parts.push(Buffer.from(array.buffer));
    }
    let text = JSON.stringify(header);
    text += ' '.repeat((8 - text.length % 8) % 8);
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    return Buffer.concat([length, Buffer.from(text), ...parts]);
}

/* ---- the rule of golden/README.md ---- */

const drawn = {};
function draws(name, n) {
    const mask = (1n << 64n) - 1n, key = name + ' ' + n;
    if (drawn[key]) return drawn[key];
    let h = 0xcbf29ce484222325n;
    for (const byte of Buffer.from(name)) h = (h ^ BigInt(byte)) * 0x100000001b3n & mask;
    return drawn[key] = Float64Array.from({ length: n }, (none, i) => {
        let z = h + BigInt(i + 1) * 0x9e3779b97f4a7c15n & mask;
        z = (z ^ z >> 30n) * 0xbf58476d1ce4e5b9n & mask;
        z = (z ^ z >> 27n) * 0x94d049bb133111ebn & mask;
        z ^= z >> 31n;
        return (Number(z >> 40n) - 8388608) / 8388608;
    });
}

function shapes(tensors) {
    const found = {};
    for (const name of Object.keys(tensors)) {
        const match = /^grad\.(.*?)(\.shape)?$/.exec(name);
        if (/\.(err32|sample|sum|norm)$/.test(name) || !match) continue;
        found[match[1]] = match[2] ? Array.from(tensors[name]) : tensors[name].shape;
    }
    return found;
}

function fan(name, all) {
    if (/_l0(_reverse)?$/.test(name)) return all[name][0] / 3; /* of a GRU */
    const weight = all[name.replace(/bias$/, 'weight')];
    return weight.length > 1 ? weight[1] : 1;
}

function goldenModel(file, dtype) {
    const { metadata, tensors } = file, all = shapes(tensors), weights = {};
    for (const [name, shape] of Object.entries(all)) {
        let scale = 1;
        while (scale * scale * fan(name, all) > 1) scale /= 2;
        if (name.endsWith('periodic.weight')) scale *= Number(metadata['golden.freq'] || 8);
        if (/linears\.[01]\.weight$/.test(name)) scale *= Number(metadata['golden.gain'] || 1);
        const n = shape.reduce((a, b) => a * b, 1);
        weights[name] = { shape, values: draws(name, n).map((u) => u * scale) };
    }
    const settings = Object.fromEntries(Object.entries(metadata).filter(([key]) => key.startsWith('mtan.')));
    return writeTensors({ 'mtan.classes': '0', ...settings, 'mtan.predict_samples': settings['mtan.samples'] || '1' }, weights, dtype);
}

function goldenRecords(set) {
    const { tensors } = goldenRecords.file = goldenRecords.file || readTensors(path.join(golden, 'records.safetensors'));
    const offset = tensors[set + '/offset'];
    return Array.from(offset.subarray(1), (end, b) => ({
        time: tensors[set + '/time'].subarray(offset[b], end), channel: tensors[set + '/channel'].subarray(offset[b], end),
        value: tensors[set + '/value'].subarray(offset[b], end)
    }));
}

/* ---- comparing: the limit of the float build ---- */

function share(got, want, err32) {
    let difference = 0, size = 0;
    expect(got.length === want.length, `${got.length} numbers, not ${want.length}`);
    for (let i = 0; i < got.length; i++) difference += (got[i] - want[i]) ** 2, size += want[i] ** 2;
    const used = Math.sqrt(difference) / (4 * err32 + 4 * Math.sqrt(size) * 2 ** -24);
    expect(used <= 1, `off by ${Math.sqrt(difference)}: ${used} of the limit`);
    return used;
}

/* Mean over S of rows that repeat S times: (S, n) to (n). */
function meanOver(array, S) {
    const n = array.length / S;
    return Array.from({ length: n }, (none, i) => {
        let sum = 0;
        for (let s = 0; s < S; s++) sum += array[s * n + i];
        return sum / S;
    });
}

function softmax(logits, C) {
    const e = Array.from(logits, Math.exp);
    return e.map((x, i) => x / e.slice(i - i % C, i - i % C + C).reduce((a, b) => a + b));
}

/* The noise of a record: (S, K, Z) out of (S, B, K, Z). */
function noiseOf(b, S, B, n) {
    const all = draws('noise', S * B * n), own = [];
    for (let s = 0; s < S; s++) own.push(...all.subarray((s * B + b) * n, (s * B + b + 1) * n));
    return own.map((u) => 2 * u);
}

/* Softmax moves no further than its logits, and a mean no further than its terms, so the limits of both hold. */
async function goldenCase(library, name) {
    const file = readTensors(path.join(golden, name + '.safetensors')), { metadata, tensors } = file;
    const model = await library.open(goldenModel(file, 'F32')), s = model.settings;
    const records = goldenRecords(metadata['golden.records']), S = Number(metadata['mtan.samples'] || 1);
    const options = records.map((r, b) => s.kind === 'full'
        ? { samples: S, noise: noiseOf(b, S, records.length, s.ref_points * Number(metadata['mtan.latent'])) } : {});
    const used = [];
    if (tensors.logits) {
        const got = records.flatMap((r, b) => Array.from(model.classify(r, options[b])));
        used.push(share(got, meanOver(softmax(tensors.logits, s.classes), S), tensors['logits.err32'][0]));
    }
    if (tensors.pred) {
        const targets = metadata['golden.targets'] ? goldenRecords(metadata['golden.targets']) : records;
        const got = records.flatMap((r, b) => decoded(model, r, targets[b], options[b]));
        used.push(share(got, meanOver(tensors.pred, S), tensors['pred.err32'][0]));
    }
    expect(used.length > 0, 'nothing was compared');
    return `${(100 * Math.max(...used)).toFixed(1)} % of the limit`;
}

/* The decoder at the events of the targets, stably sorted by time. */
function decoded(model, record, target, options) {
    const order = Array.from(target.time.keys()).sort((i, j) => target.time[i] - target.time[j] || i - j);
    const times = Array.from(new Set(order.map((i) => target.time[i]))), D = model.settings.channels;
    if (times.length === 0) return [];
    const { mean } = model.interpolate(record, times, options);
    return order.map((i) => mean[times.indexOf(target.time[i]) * D + target.channel[i]]);
}

/* ---- the command: rows of CSV that tools/edge/wasm.sh made it print ---- */

function readRows(name) {
    const [head, ...rows] = fs.readFileSync(path.join(build, name), 'utf8').trim().split('\n').map((row) => row.split(','));
    return rows.map((row) => Object.fromEntries(head.map((key, i) => [key, row[i]])));
}

/* Events by record, in their order. */
function recordsOf(rows, model) {
    const records = new Map();
    for (const row of rows) {
        if (!records.has(row.record)) records.set(row.record, { time: [], channel: [], value: [] });
        const r = records.get(row.record);
        r.time.push(Number(row.time)), r.channel.push(model.channelNamed(row.channel)), r.value.push(Number(row.value));
    }
    return records;
}

const same = (got, printed) => Number(got.toPrecision(9)) === Number(printed);

async function likeInterpolate(library) {
    const model = await library.open(fs.readFileSync(path.join(build, 'model.safetensors'))), D = model.channels.length;
    const rows = readRows('interpolated.csv'), records = recordsOf(readRows('few.csv'), model);
    const per = rows.length / records.size, times = Array.from({ length: per / D }, (none, q) => Number(rows[q * D].time));
    let at = 0;
    expect(records.size >= 5 && times.length >= 10, 'too little to compare');
    for (const [name, events] of records) {
        const { mean, sd } = model.interpolate(events, times, { name });
        for (let i = 0; i < per; i++, at++) {
            expect(rows[at].record === name && rows[at].channel === model.channels[i % D], 'rows in another order');
            expect(same(mean[i], rows[at].mean) && same(sd[i], rows[at].sd),
                `record ${name}: ${mean[i]} and ${sd[i]}, not ${rows[at].mean} and ${rows[at].sd}`);
        }
    }
    return `${rows.length} means and deviations, all digits`;
}

/* The probabilities in a row of `mtan predict`: p_NAME of each class, in the model's order. */
function probabilities(row, model) {
    return model.classes.map((name) => row[`p_${name}`]);
}

async function likePredict(library, kind) {
    const model = await library.open(fs.readFileSync(path.join(build, kind + '.safetensors')));
    const rows = readRows(kind + '.csv'), records = recordsOf(readRows('patients/events.csv'), model);
    let at = 0;
    expect(records.size > 100 && rows.length >= records.size, 'too little to compare');
    for (const [name, events] of records) {
        const p = model.classify(events);
        for (let i = 0; i < p.length; i += 2, at++) {
            const [a, b] = probabilities(rows[at], model);
            expect(rows[at].record === name && same(p[i], a) && same(p[i + 1], b),
                `record ${name}: ${p[i]},${p[i + 1]}, not ${a},${b} of ${rows[at].record}`);
        }
    }
    expect(at === rows.length && model.classes.length === 2, 'other rows or classes');
    throws(() => model.interpolate({ time: [], channel: [], value: [] }, [0]), 'does not interpolate');
    return `${rows.length} rows, all digits`;
}

/* The number and its interval, in the data's unit. */
async function likeNumbers(library) {
    const model = await library.open(fs.readFileSync(path.join(build, 'number.safetensors')));
    const rows = readRows('number.csv'), records = recordsOf(readRows('patients/events.csv'), model);
    expect(model.settings.task === 'number' && model.outputs === 3 && rows.length === records.size, 'other facts');
    for (const { record, low, predicted, high } of rows) {
        const got = model.classify(records.get(record));
        expect([low, predicted, high].every((x, i) => same(got[i], x)), `record ${record}: ${got}, not ${low},${predicted},${high}`);
    }
    return `${rows.length} rows, all digits`;
}

/* A stream ends with the same result as the record, whatever else the model is asked in between. */
async function streams(library) {
    const near = (got, whole) => got.length === whole.length && got.every((x, i) => Math.abs(x - whole[i]) <= 1e-5 * (1 + Math.abs(whole[i])));
    for (const kind of ['per-record', 'number', 'dated']) {
        const model = await library.open(fs.readFileSync(path.join(build, kind + '.safetensors')));
        const all = events.read(fs.readFileSync(path.join(build, kind === 'dated' ? 'patients/dated.csv' : 'patients/events.csv'), 'utf8'));
        const [first, second] = [0, 1].map((r) => ({ ...events.record(all, r, model), stream: model.stream({ samples: 0 }) }));
        const push = ({ events: e, stream }, i) => i < e.time.length && stream.push(e.time[i], e.channel[i], e.value[i]);
        for (let i = 0; i < Math.max(first.events.time.length, second.events.time.length); i++) {
            push(first, i), push(second, i);
            if (i === 3) model.classify(first.events), second.stream.classify();
        }
        for (const one of [first, second]) {
            const whole = model.classify(one.events, { samples: 0 });
            expect(near(one.stream.classify(), whole), `${kind}: ${one.stream.classify()}, not ${whole}`);
        }
        if (kind !== 'dated') continue;
        const at = first.events.time[0] + 3, { mean, sd } = first.stream.interpolate(at);
        expect(near(mean, model.interpolate(first.events, [at], { samples: 0 }).mean) && sd.every((x) => x === 0), 'another curve');
        first.stream.reset();
        throws(() => first.stream.interpolate(at), 'there is none yet');
        throws(() => first.stream.push(1, 99, 1), 'channel 99');
        throws(() => first.stream.push(Infinity, 0, 1), 'not finite');
    }
    const observed = await library.open(fs.readFileSync(path.join(build, 'per-time.safetensors')));
    throws(() => observed.stream(), "each record's own times");
}

/* A CSV of dates through events.js, to a model that classifies and interpolates. */
async function likeDated(library, kind) {
    const model = await library.open(fs.readFileSync(path.join(build, kind + '.safetensors'))), D = model.channels.length;
    const read = (name) => events.read(fs.readFileSync(path.join(build, name), 'utf8'));
    const data = read('patients/dated.csv'), few = read('patients/few-dated.csv');
    const rows = readRows(kind + '.csv'), curves = readRows(kind + '-curves.csv'), times = Array.from({ length: 9 }, (none, q) => 3 * q);
    expect(model.fromFirst && model.unit === 'hours' && model.int8 === kind.endsWith('int8'), 'other facts');
    expect(rows.length === data.records.length && rows.length > 100 && curves.length === few.records.length * 9 * D, 'other rows');
    rows.forEach((row, r) => {
        const one = events.record(data, r, model), p = model.classify(one.events, { name: one.name });
        const [a, b] = probabilities(row, model);
        expect(row.record === one.name && same(p[0], a) && same(p[1], b), `record ${one.name}: ${p}, not ${a},${b}`);
    });
    for (let r = 0, at = 0; r < few.records.length; r++) {
        const one = events.record(few, r, model), { mean, sd } = model.interpolate(one.events, times, { name: one.name });
        for (let i = 0; i < 9 * D; i++, at++)
            expect(curves[at].record === one.name && same(mean[i], curves[at].mean) && same(sd[i], curves[at].sd),
                `record ${one.name}: ${mean[i]} and ${sd[i]}, not ${curves[at].mean} and ${curves[at].sd}`);
    }
    return `${rows.length} rows, ${curves.length} means and deviations, all digits`;
}

/* ---- reading a CSV ---- */

const HEAD = 'record,time,channel,value\n';

/* What tools/data/own.h takes, and what becomes of it. */
async function readsEvents() {
    const rows = (text) => events.read(text).records.map((r) => r.name + ':' + r.rows.map((o) => [o.time, o.ticks, o.channel, o.value])
        .join(';')).join(' ');
    const is = (text, want) => expect(rows(text) === want, `${JSON.stringify(text)}: ${rows(text)}`);
    is('\ufeffValue, CHANNEL ,extra,time,record\r\n 1.5 ,x,,2,a\r\n\r\n-.5e1,y,,+3.,b\n', 'a:2,0,0,1.5 b:3,0,1,-5');
    is(HEAD + '"a, ""b""\nc",1,x,2\nd,1,x,NA\n', 'a, "b"\nc:1,0,0,2 d:');
    is(HEAD + 'a,1,x,2\nb,1,y,2\na,0,y,3', 'a:1,0,0,2;0,0,1,3 b:1,0,1,2');
    is(HEAD + 'a,1970-01-02,x,1\na,1970-01-01T00:01:02.25Z,x,1\na,1970-01-01 01:00+0100,x,1\na,1970-01-01T00:00-00:30,x,1',
        'a:86400,0,0,1;62,2500000,0,1;0,0,0,1;1800,0,0,1');
    is('unique_id,ds,y\na,1,2', 'a:1,0,0,2');
    is('hr,Record,bp,time\n80,a,,1\n,a,120,2\n,b,NA,3\n', 'a:1,0,0,80;2,0,1,120 b:');
    is('subject_id,timestamp,y\na,1970-01-02,4', 'a:86400,0,0,4');
    expect(events.read('record,time,HR\na,1,2').channels[0] === 'HR', 'names of columns stay as they are');
    expect(events.read(HEAD + 'a,1,x,\nb,2,x,null').missing === 2, 'missing values');
}

async function refusesEvents() {
    const says = (text, line, words) => {
        const error = (() => { try { events.read(text); } catch (e) { return e; } })();
        expect(error && error.line === line && error.message.includes(words), `${JSON.stringify(text)}: ${error && error.line} ${error}`);
    };
    says('', 0, 'empty');
    says(HEAD, 0, 'no row');
    says('record,time,value\n', 1, 'no column "channel"');
    says('record;time;channel;value\n', 1, 'semicolons');
    says('record,time\n', 1, 'no column "channel"');
    says('record,time,hr,label\n', 1, 'column 4, "label", is no channel');
    says('record,time,hr,hr\n', 1, 'column 4, "hr", is there twice');
    says('record,time,,hr\n', 1, 'column 3, "", has no name');
    says('record,time,hr\na,1,high', 2, '"high" is no value');
    says('record,time,hr\n,1,2', 2, 'name is empty');
    says('record,time,time,channel,value\n', 1, 'two columns are called "time"');
    says(HEAD + 'a,1,x,2\na,1,x\n', 3, '3 fields, but the header has 4');
    says(HEAD + '\n\na,soon,x,2', 4, '"soon" is no time');
    says(HEAD + 'a,2024-02-30,x,2', 2, 'is no time');
    says(HEAD + 'a,2024-02-29T24:00,x,2', 2, 'is no time');
    says(HEAD + 'a,1,x,2\na,2024-02-29,x,2', 3, 'is a date, but the times before are numbers');
    says(HEAD + 'a,1,x,high', 2, '"high" is no value');
    says(HEAD + 'a,1,x,0x10', 2, 'is no value');
    says(HEAD + 'a,1,x,1e39', 2, 'is no value');
    says(HEAD + ',1,x,1', 2, 'name is empty');
    says(HEAD + 'a,1,,1', 2, 'name is empty');
    says(HEAD + 'a,1,x,"1', 2, 'never closed');
    says(HEAD + '"b\nc",1,x,1\na,1,"x"y,1', 4, 'behind a closing quote');
    says(HEAD + 'a,1,x"y",1', 2, 'a quote inside');
}

/* Channels that the model does not have, units that are not the model's, times that a float cannot tell apart. */
async function recordsForModels(library) {
    const plain = await library.open(fs.readFileSync(path.join(__dirname, '../demo/patients.safetensors')));
    const dated = await library.open(fs.readFileSync(path.join(build, 'dated.safetensors')));
    const of = (text, model) => events.record(events.read(HEAD + text), 0, model);
    const one = of('a,9,pulse,80\na,3,height,180\na,5,pulse,70\na,4,mood,1', plain);
    expect(one.events.time.join() === '5,9' && one.events.value.join() === '70,80' && one.events.channel.join() === '1,1', 'events');
    expect(one.left === 2 && one.unknown.join() === 'height,mood' && one.start === '', 'unknown channels');
    const two = of('a,2024-03-01T12:30Z,pulse,80\na,2024-02-29T12:00Z,pulse,70\na,2024-02-28,height,1', dated);
    expect(two.events.time.join() === '0,24.5' && two.start === '2024-02-29T12:00:00Z', `${two.events.time} since ${two.start}`);
    throws(() => of('a,1,pulse,80', dated), 'trained on dates');
    throws(() => of('a,2024-02-29,pulse,80', plain), 'its times are dates');
    throws(() => of('a,16777216,pulse,80\na,16777217,pulse,80', plain), 'are one in float');
}

/* ---- the wrapper's own promises ---- */

async function attends(library) {
    const model = await library.open(fs.readFileSync(path.join(build, 'model.safetensors'))), K = model.settings.ref_points;
    const events = { time: [20, 3, 3, 11], channel: [0, 0, 1, 0], value: [1, -1, 0.5, 0] };
    for (let channel = 0; channel < 3; channel++) {
        const { time, reference, weight } = model.attention(events, channel);
        expect(time.join() === '3,11,20' && reference.length === K && weight.length === 3 * K, 'other shapes');
        expect(reference[0] === 0 && reference[K - 1] === 24, 'the reference points are not in hours');
        for (let k = 0; k < K; k++) {
            const sum = weight[3 * k] + weight[3 * k + 1] + weight[3 * k + 2];
            expect(Math.abs(sum - [1, 1, 0][channel]) < 1e-6, `channel ${channel}, row ${k}: weights sum to ${sum}`);
            expect(channel !== 1 || weight[3 * k] === 1, 'the only observation of a channel has all of the weight');
        }
    }
}

/* What mtan_prepared tells, names, and that neither the order of observations nor a repeat of one changes anything. */
async function prepares(library) {
    const model = await library.open(fs.readFileSync(path.join(__dirname, '../demo/patients.safetensors')));
    const pulse = model.channelNamed('pulse'), warm = model.channelNamed('temperature');
    const good = { time: [1.5, 13.25, 21], channel: [pulse, warm, pulse], value: [84, 37.9, 97] };
    const told = (events) => Object.entries(model.prepare(events)).map(([key, n]) => key + n).join(' ');
    expect(model.channels.join() === 'pressure,pulse,temperature' && model.classes.join() === 'sick,well', 'other names');
    expect(model.classes[model.positive] === 'sick' && model.unit === '' && !model.fromFirst && !model.int8, 'other facts');
    expect(pulse === 1 && model.channelNamed('Pulse') === -1, 'another channel');
    expect(model.ranges[pulse].join() === '52,111.4000015258789' && model.span[1] === 24, `ranges ${model.ranges}; ${model.span}`);
    expect(told(good) === 'events3 missing0 repeats0 filled0 farValues0 farTimes0 origin0', told(good));
    const strange = { time: [1.5, 1.5, 13, 700], channel: [pulse, pulse, warm, warm], value: [80, 88, 100.2, 37] };
    expect(told(strange) === 'events3 missing0 repeats1 filled0 farValues1 farTimes1 origin0', told(strange));
    expect(model.isFarValue(warm, 100.2) && !model.isFarValue(warm, 37) && model.isFarTime(700) && !model.isFarTime(20), 'far');
    const p = model.classify(good).join();
    expect(model.classify({ time: [21, 1.5, 13.25], channel: [pulse, pulse, warm], value: [97, 84, 37.9] }).join() === p, 'order');
    expect(model.classify({ time: [21, 1.5, 13.25, 21], channel: [pulse, pulse, warm, pulse], value: [96, 84, 37.9, 98] }).join() === p,
        'a repeat does not go into the mean');
    expect(Math.abs(model.classify(good)[model.positive] - 0.5) > 0.01, 'it says nothing');
}

/* Metadata that preparation cannot use is named. */
async function badPreparation(library) {
    const text = fs.readFileSync(path.join(__dirname, '../demo/patients.safetensors')).toString('latin1');
    const open = (bytes) => library.open(Buffer.from(bytes, 'latin1')).then(() => 'opened', (error) => error.message);
    expect(await open(text) === 'opened', 'the file itself');
    const said = await open(text.replace('10.4752073 8.5', '0.00000000 8.5'));
    expect(/mtan\.prep\.scale/.test(said), said);
}

async function otherTypes(library) {
    const file = readTensors(path.join(golden, 'full-small.safetensors')), [record] = goldenRecords('small');
    const one = await library.open(goldenModel(file, 'F32')), two = await library.open(goldenModel(file, 'F64'));
    const times = [0, 0.5, 1], a = one.interpolate(record, times), b = two.interpolate(record, times);
    expect(a.mean.join() === b.mean.join() && a.sd.join() === b.sd.join(), 'F64 weights give other numbers');
    expect(a.sd.every((x) => x > 0), 'no spread');
    expect(one.interpolate(record, times, { name: 'x' }).mean.join() !== a.mean.join(), 'the name changes nothing');
    expect(one.interpolate(record, times, { seed: 1 }).mean.join() !== a.mean.join(), 'the seed changes nothing');
    expect(one.interpolate(record, times, { samples: 0 }).sd.every((x) => x === 0), 'a spread without samples');
    expect(one.interpolate(record, times).mean.join() === a.mean.join(), 'not the same a second time');
}

async function grows(library) {
    const model = await library.open(fs.readFileSync(path.join(build, 'model.safetensors'))), n = 3000;
    const few = { time: [], channel: [], value: [] }, first = model.interpolate(few, [0, 12, 24]);
    const many = { time: Float64Array.from({ length: n }, (none, i) => 24 * i / n),
        channel: Uint8Array.from({ length: n }, (none, i) => i % 3), value: new Float32Array(n) };
    const before = model.wasm.memory.buffer.byteLength;
    expect(model.interpolate(many, [0, 12, 24]).mean.every(Number.isFinite) && model.attention(many, 0).time.length === n, 'not finite');
    const after = model.wasm.memory.buffer.byteLength;
    expect(after > before, 'the memory did not grow');
    for (let i = 0; i < 20; i++) model.interpolate(many, [0, 12, 24]), model.attention(many, i % 3);
    expect(model.interpolate(few, [0, 12, 24]).mean.join() === first.mean.join(), 'other numbers after growing');
    expect(model.wasm.memory.buffer.byteLength === after, 'memory is lost');
    return `${before >> 10} KB, then ${after >> 10} KB for ${n} events`;
}

async function refuses(library) {
    const bytes = fs.readFileSync(path.join(build, 'model.safetensors')), model = await library.open(bytes);
    const good = { time: [1, 2], channel: [0, 1], value: [0, 1] }, before = model.interpolate(good, [3]).mean.join();
    const failure = async (file) => library.open(file).then(() => 'none', (error) => error.message);
    expect(/safetensors/.test(await failure(new Uint8Array(0))), 'an empty file was opened');
    expect(/safetensors/.test(await failure(bytes.subarray(0, bytes.length - 1))), 'a cut file was opened');
    throws(() => model.interpolate({ ...good, time: [NaN, 2] }, [3]), 'not finite');
    throws(() => model.interpolate({ ...good, value: [Infinity, NaN] }, [3]), 'not finite');
    throws(() => model.interpolate(good, [NaN]), 'not finite');
    throws(() => model.interpolate({ ...good, channel: [0, 3] }, [3]), 'channel 3');
    throws(() => model.interpolate({ ...good, channel: [0, 0.5] }, [3]), 'channel 0.5');
    throws(() => model.interpolate({ ...good, value: [0] }, [3]), 'same length');
    throws(() => model.attention(good, 7), 'range');
    throws(() => model.classify(good), 'does not classify');
    throws(() => model.interpolate(good, [3], { samples: 1e9 }), 'out of range');
    expect(model.interpolate(good, [3]).mean.join() === before, 'other numbers after a failure');
}

/* The program of README.md prints what stands below it. */
async function readme() {
    const text = fs.readFileSync(path.join(__dirname, 'README.md'), 'utf8'), root = path.join(__dirname, '../..');
    const [, program, output] = /```js\n([^]*?)```\n```\n([^]*?)```/.exec(text);
    const said = require('child_process').execFileSync(process.execPath, ['-e', program], { cwd: root, encoding: 'utf8' });
    expect(said === output && output.includes('p(sick)'), said);
}

async function main() {
    /* without enc-unsorted and full-unsorted: they have repeats, which preparation makes one of */
    const cases = ['enc-small', 'enc-one', 'enc-unseen', 'enc-empty', 'enc-far', 'enc-k1', 'enc-h4', 'enc-fixed',
        'enc-perhead', 'rnn3-enc', 'full-small', 'full-one', 'full-unseen', 'full-far', 'full-k1', 'full-h2',
        'full-fixed', 'full-perhead', 'full-samples', 'full-subset', 'rbf-full', 'rbf-interp', 'rnn3-full', 'mimic3-enc'];
    const files = { plain: 'mtan-plain.wasm', simd: 'mtan.wasm' };
    for (const [variant, file] of Object.entries(files)) {
        const library = await mtan.load({ [variant]: fs.readFileSync(path.join(build, file)) });
        for (const name of cases) await test(`${variant} golden ${name}`, () => goldenCase(library, name));
        await test(`${variant} interpolates as the command`, () => likeInterpolate(library));
        await test(`${variant} classifies records as the command`, () => likePredict(library, 'per-record'));
        await test(`${variant} classifies times as the command`, () => likePredict(library, 'per-time'));
        await test(`${variant} classifies in int8 as the command`, () => likePredict(library, 'int8'));
        await test(`${variant} predicts numbers as the command`, () => likeNumbers(library));
        await test(`${variant} streams`, () => streams(library));
        await test(`${variant} dates, as the command`, () => likeDated(library, 'dated'));
        await test(`${variant} dates in int8, as the command`, () => likeDated(library, 'dated-int8'));
        await test(`${variant} records for models`, () => recordsForModels(library));
        await test(`${variant} preparation`, () => prepares(library));
        await test(`${variant} preparation that cannot be used`, () => badPreparation(library));
        await test(`${variant} attention`, () => attends(library));
        await test(`${variant} weights of other types, names, seeds`, () => otherTypes(library));
        await test(`${variant} grows`, () => grows(library));
        await test(`${variant} refuses`, () => refuses(library));
    }
    await test('reads a CSV', readsEvents);
    await test('refuses a bad CSV', refusesEvents);
    await test('the program of README.md', readme);
    await test('simd is chosen where it runs', async () => {
        const bytes = (file) => fs.readFileSync(path.join(build, file));
        expect((await mtan.load({ simd: bytes('mtan.wasm'), plain: bytes('mtan-plain.wasm') })).simd, 'plain was chosen');
    });
    console.log(`Pass: ${passed}, fail: ${failed}, skip: 0.`);
    process.exit(failed ? 1 : 0);
}
main();
