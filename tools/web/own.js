'use strict';
/* The page's second view: a model and a CSV of the reader's own. Files come through a dialog or are dropped on the
 * page; nothing is sent anywhere. It shows for a record: the prediction, the prediction as observations arrive, curves
 * if the model has them, attention.
 *
 * Sections: state; files; the model's output; drawing; the risk; controls. */
(function (root) {
    const MOMENTS = 300; /* of the risk, at most: each needs a prediction */
    const GRID = 161; /* times of a curve */
    const MANY = 150; /* observations of a channel */
    const PANELS = 6; /* channels shown at first */
    const LINKS = 48, EDGES = 10; /* strongest edges drawn of a channel, and listed of all */
    const CLASSES = 8, LINES = 3; /* classes listed, and drawn over time */
    const STEPS = 80; /* of the risk that get a dot */
    const SLICE = 12; /* milliseconds of work before the page handles input again */
    const LEFT = 46, RIGHT = 14, TOP = 10, PLOT = 120, STRIP = 50, BOTTOM = 26, RISK = 170; /* pixels */
    const { escape, round, short, path, ticks, link, nearest } = root.plot;
    const element = (id) => document.getElementById(id);
    const plural = (n, word, many = word + 's') => `${n.toLocaleString('en')} ${n === 1 ? word : many}`;

    /* ---- state ---- */

    let library, example;
    let model = null, modelFile = null; /* the file: { name, bytes } */
    let data = null, dataFile = null;
    let chosen = 0, all = false; /* index of the record; are all channels shown? */
    let one = null; /* of the record: the output of `think` */
    let risk = []; /* { time, p }: the prediction from the observations known at that time */
    let moment = -1; /* index in risk, under the pointer or chosen by the keyboard */
    let run = 0; /* counts shown records: work for an older record stops */

    const settle = (state) => { element('own').dataset.state = state; };

    /* ---- files ---- */

    function complain(where, error) {
        const line = error.line ? `:${error.line}` : '';
        element('problem').hidden = false;
        element('problem').textContent = `${where}${line}: ${error.message}`;
    }

    async function plainBytes(bytes) {
        if (!(bytes[0] === 0x1f && bytes[1] === 0x8b)) return bytes;
        const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
        return new Uint8Array(await new Response(stream).arrayBuffer());
    }

    /* A model begins with the length of its header and the header's brace. */
    const isModel = (name, bytes) => /\.safetensors$/i.test(name) || (bytes[8] === 0x7b && bytes[7] === 0);

    /* The page shows probabilities and curves. */
    async function openModel(bytes) {
        const opened = await library.open(bytes);
        if (opened.settings.task === 'number') throw new Error('it predicts a number, which mtan.js and `mtan predict` tell, and this page does not');
        return opened;
    }

    async function openFile(name, given) {
        const bytes = await plainBytes(given);
        if (isModel(name, bytes)) model = await openModel(bytes), modelFile = { name, bytes };
        else data = root.events.read(new TextDecoder().decode(bytes)), dataFile = { name }, chosen = 0;
        all = false;
    }

    /* files: { name, read }. Files that could not be read are reported; earlier files stay open. */
    async function open(files) {
        element('problem').hidden = true;
        settle('busy');
        show(true);
        for (const { name, read } of files)
            try {
                await openFile(name, await read());
            } catch (error) {
                complain(name, error);
            }
        refresh();
    }

    async function openDropped(list) {
        const read = (file) => async () => new Uint8Array(await file.arrayBuffer());
        if (list.length) await open(Array.from(list, (file) => ({ name: file.name, read: read(file) })));
    }

    /* ---- the model's output ---- */

    const perTime = () => model.settings.classify === 'time';
    const classifies = () => model.settings.classify !== 'none';
    const interpolates = () => model.settings.kind === 'full';

    /* The earliest and the latest time to show: those of training if the record lies within them, else the record's. */
    function spanOf(times) {
        let [low, high] = times.length ? [times[0], times[times.length - 1]] : model.span || [0, 1];
        if (model.span && !times.some((t) => model.isFarTime(t)))
            low = Math.min(low, model.span[0]), high = Math.max(high, model.span[1]);
        return high > low ? [low, high] : [low - 0.5, high + 0.5];
    }

    /* The order of the classes on the page: the positive one first, otherwise the most likely. */
    function classOrder(p) {
        const list = model.classes.map((name, c) => c);
        return model.positive >= 0 ? [model.positive, ...list.filter((c) => c !== model.positive)] : list.sort((a, b) => p[b] - p[a]);
    }

    function curves(span) {
        const times = Array.from({ length: GRID }, (none, q) => span[0] + (span[1] - span[0]) * q / (GRID - 1));
        return { times, ...model.interpolate(one.events, times, { name: one.name }) };
    }

    /* For each observed channel; none if the encoder has no attention. */
    function attentions() {
        const found = new Map();
        if (model.settings.encoder === 'rbf') return found;
        one.seen.forEach((n, c) => { if (n > 0) found.set(c, root.plot.attention(model, one.events, c)); });
        return found;
    }

    /* The probabilities of the record, or of each of its times. */
    function classify() {
        if (!classifies() || (perTime() && one.times.length === 0)) return [];
        return Array.from(model.classify(one.events, { name: one.name, times: one.times }));
    }

    function think() {
        one = root.events.record(data, chosen, model);
        one.found = model.prepare(one.events);
        one.span = spanOf(one.events.time);
        one.times = Array.from(new Set(one.events.time));
        one.seen = model.channels.map((name, c) => one.events.channel.filter((d) => d === c).length);
        one.p = classify();
        one.last = one.p.slice(perTime() ? -model.classes.length : 0);
        one.order = classOrder(one.last);
        one.curve = interpolates() ? curves(one.span) : null;
        one.attention = attentions();
        one.edges = new Map(); /* by channel, computed when first needed */
    }

    /* Warnings about the record that the reader should know before trusting the rest. */
    function notes() {
        const list = [], { found, unknown, left } = one;
        if (left) list.push(`${plural(left, 'row')} of channels that the model does not have left out: ` +
            unknown.slice(0, 5).join(', ') + (unknown.length > 5 ? ` and ${unknown.length - 5} more` : ''));
        if (one.events.time.length === 0) list.push('nothing is observed of the model\'s channels: this is what it says of no data');
        if (found.missing) list.push(`${plural(found.missing, 'code')} of missing values left out`);
        if (found.repeats) list.push(`${plural(found.repeats, 'repeat')} of a time and channel averaged`);
        if (found.filled) list.push(`${plural(found.filled, 'channel')} without an observation filled in`);
        model.channels.forEach((name, c) => {
            const far = one.events.value.filter((v, i) => one.events.channel[i] === c && model.isFarValue(c, v));
            if (far.length) list.push(`${name}: ${plural(far.length, 'value')} far outside of training's ` +
                `${model.ranges[c].map(short).join(' to ')}, the first ${short(far[0])}: is the unit the same?`);
        });
        if (found.farTimes) list.push(`${plural(found.farTimes, 'observation')} at times far outside of training's ` +
            `${model.span.map(short).join(' to ')}: is the unit the same?`);
        return list;
    }

    /* ---- drawing ---- */

    const unit = () => one.start || model.unit === 'hours' ? 'h' : model.unit;
    const width = (svg) => Math.max(120, svg.clientWidth);

    function frame(svg, plotHeight, below, low, high) {
        const [from, to] = one.span, w = width(svg), bottom = TOP + plotHeight;
        svg.setAttribute('height', bottom + below + BOTTOM);
        return { w, bottom, below, low, high, x: (t) => LEFT + (w - LEFT - RIGHT) * (t - from) / (to - from),
            y: (v) => TOP + plotHeight * (high - Math.max(low, Math.min(high, v))) / (high - low) };
    }

    function axes(f, values) {
        const times = ticks(...one.span, f.w < 500 ? 4 : 8, unit() === 'h'), last = times[times.length - 1];
        const label = (t) => short(t) + (t === last && unit() ? ' ' + escape(unit()) : '');
        return values.map((v) => `<path class="grid" d="M${LEFT} ${round(f.y(v))}H${f.w - RIGHT}"/>` +
            `<text class="end" x="${LEFT - 7}" y="${round(f.y(v)) + 4}">${short(v)}</text>`).join('') +
            times.map((t) => `<text class="middle" x="${round(f.x(t))}" y="${f.bottom + f.below + 18}">${label(t)}</text>`).join('') +
            `<path class="axis" d="M${LEFT} ${f.bottom}H${f.w - RIGHT}"/>`;
    }

    /* The values that a panel must include: observed, or in the band. */
    function heights(c) {
        const D = model.channels.length, list = one.events.value.filter((v, i) => one.events.channel[i] === c);
        if (one.curve) for (let q = 0; q < GRID; q++)
            list.push(one.curve.mean[q * D + c] - 2 * one.curve.sd[q * D + c], one.curve.mean[q * D + c] + 2 * one.curve.sd[q * D + c]);
        if (list.length === 0) list.push(...(model.ranges[c] || [0, 1]));
        const low = list.reduce((a, b) => Math.min(a, b)), high = list.reduce((a, b) => Math.max(a, b));
        const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
        return [low - room, high + room];
    }

    function curveText(f, c) {
        if (!one.curve) return '';
        const D = model.channels.length, { times, mean, sd } = one.curve;
        const at = (sign) => times.map((t, q) => [f.x(t), f.y(mean[q * D + c] + sign * 2 * sd[q * D + c])]);
        return `<path class="band" d="${path(at(1).concat(at(-1).reverse()))}Z"/><path class="mean" d="${path(at(0))}"/>`;
    }

    /* The edges of a channel, strongest first. */
    function edgesOf(c) {
        const { time, reference, weight } = one.attention.get(c), L = time.length, order = [];
        if (one.edges.has(c)) return one.edges.get(c);
        weight.forEach((w, i) => { if (w > 0) order.push(i); });
        order.sort((i, j) => weight[j] - weight[i]);
        one.edges.set(c, order.map((i) => ({ channel: c, w: weight[i], time: time[i % L], reference: reference[Math.floor(i / L)] })));
        return one.edges.get(c);
    }

    function linkText(f, c) {
        if (!one.attention.has(c)) return '';
        const top = f.bottom + 1, bottom = f.bottom + STRIP - 6, edges = edgesOf(c).slice(0, LINKS), most = edges.length ? edges[0].w : 1;
        const inside = (t) => Math.max(LEFT, Math.min(f.w - RIGHT, f.x(t)));
        return edges.reverse().map((e) => link(inside(e.time), inside(e.reference), top, bottom, 0.5 + 1.5 * e.w / most,
            0.15 + 0.75 * e.w / most)).join('') +
            one.attention.get(c).reference.map((r) =>
                `<circle class="reference" cx="${round(inside(r))}" cy="${bottom + 3}" r="1.8"/>`).join('');
    }

    /* Many dots have no rims, which separate a few dots: they would cover each other. */
    function dotText(f, c) {
        const [kind, size] = one.seen[c] > MANY ? ['dot many', 2] : ['dot', 4];
        return one.events.time.map((t, i) => one.events.channel[i] !== c ? '' :
            `<circle class="${kind}" cx="${round(f.x(t))}" cy="${round(f.y(one.events.value[i]))}" r="${size}"><title>` +
            `${short(one.events.value[i])} at ${short(t)}</title></circle>`).join('');
    }

    function drawPanel(svg) {
        const c = Number(svg.dataset.channel), [low, high] = heights(c);
        const f = frame(svg, PLOT, one.attention.size ? STRIP : 0, low, high);
        svg.innerHTML = axes(f, ticks(low, high, 4)) + curveText(f, c) + linkText(f, c) + dotText(f, c) +
            (one.seen[c] ? '' : `<text class="hint middle" x="${f.w / 2}" y="${TOP + PLOT / 2}">not observed</text>`);
    }

    /* Channels with the most observations first. */
    function shownChannels() {
        const list = model.channels.map((name, c) => c).filter((c) => one.seen[c] > 0 || one.curve);
        list.sort((a, b) => one.seen[b] - one.seen[a] || a - b);
        return { list: all ? list : list.slice(0, PANELS), rest: list.length - PANELS };
    }

    function drawChannels() {
        const { list, rest } = shownChannels();
        element('channels').innerHTML = list.map((c, i) => `<figure class="lane${i % 3 + 1}"><figcaption>` +
            `<b>${escape(model.channels[c])}</b><span>${one.seen[c] ? plural(one.seen[c], 'observation') : 'no observations'}</span>` +
            '</figcaption><svg role="img" ' +
            `aria-label="Observations of ${escape(model.channels[c])}" data-channel="${c}"></svg></figure>`).join('');
        element('channels').querySelectorAll('svg').forEach(drawPanel);
        element('more').hidden = rest <= 0;
        element('more').textContent = all ? 'Show fewer' : `Show ${rest} more`;
        element('curves-legend').hidden = !one.curve;
    }

    function drawPrediction() {
        for (const id of ['prediction', 'risk', 'risk-words']) element(id).hidden = !classifies();
        if (!classifies()) return;
        const shown = one.order.slice(0, CLASSES), first = shown[0];
        const percent = (p) => (100 * p).toFixed(1) + ' %';
        element('prediction-head').innerHTML = `<b>${model.positive >= 0 ? 'Prediction' : 'Likeliest'}</b><span>` +
            `${perTime() ? 'at the last observation' : 'from the whole record'}</span>`;
        element('headline').innerHTML = (one.last.length ? percent(one.last[first]) : '&ndash;') +
            ` <small>${escape(model.classes[first])}</small>`;
        element('classes').innerHTML = one.last.length === 0 ? '' : shown.map((c) =>
            `<tr><th scope="row">${escape(model.classes[c])}</th><td class="bar-cell"><span class="${c === first ? 'first' : ''}" ` +
            `style="width:${(100 * one.last[c]).toFixed(2)}%"></span></td><td>${one.last[c].toFixed(4)}</td></tr>`).join('');
        const others = model.classes.length - shown.length;
        element('others').textContent = others > 0 ? `and ${plural(others, 'class', 'classes')} below these` : '';
    }

    /* The strongest edge of each observation; first those with the largest multiple of an even share. */
    function strongest() {
        const list = [];
        for (const c of one.attention.keys()) {
            const times = new Set(one.events.time.filter((t, i) => one.events.channel[i] === c)), seen = new Set();
            for (const e of times.size > 1 ? edgesOf(c) : [])
                if (!seen.has(e.time)) seen.add(e.time), list.push({ ...e, even: 1 / times.size });
        }
        return list.sort((a, b) => b.w / b.even - a.w / a.even).slice(0, EDGES);
    }

    function drawEdges() {
        const list = strongest(), e = one.events;
        const value = (edge) => e.value[e.time.findIndex((t, i) => t === edge.time && e.channel[i] === edge.channel)];
        element('edges-box').hidden = list.length === 0;
        element('edges').innerHTML = list.map((edge) => `<tr><th scope="row">${escape(model.channels[edge.channel])}</th>` +
            [short(value(edge)), short(edge.time), short(edge.reference), edge.w.toPrecision(3), edge.even.toPrecision(3)]
                .map((text) => `<td>${text}</td>`).join('') + '</tr>').join('');
    }

    /* ---- the risk as observations arrive ---- */

    /* The prediction from the observations known at a time. A model of classes per time predicts for the last of these
     * times. */
    function predictAt(time) {
        const known = (list) => list.filter((x, i) => one.events.time[i] <= time), e = one.events;
        const events = { time: known(e.time), channel: known(e.channel), value: known(e.value) };
        const times = one.times.filter((t) => t <= time);
        return Array.from(model.classify(events, { name: one.name, times })).slice(-model.classes.length);
    }

    /* The distinct times, or a limited number of them that includes the last. */
    function momentsOf(times) {
        if (times.length <= MOMENTS) return times;
        return Array.from({ length: MOMENTS }, (none, i) => times[Math.round((i + 1) * times.length / MOMENTS) - 1]);
    }

    function followRisk() {
        const mine = ++run, moments = classifies() ? momentsOf(one.times) : [];
        risk = [], moment = -1;
        (function work() {
            const until = performance.now() + SLICE;
            if (mine !== run) return;
            while (risk.length < moments.length && performance.now() < until) {
                const time = moments[risk.length];
                risk.push({ time, p: predictAt(time) });
            }
            drawRisk();
            if (risk.length < moments.length) setTimeout(work);
            else settle('ready');
        })();
    }

    function riskLines(f) {
        const lines = one.order.slice(0, model.classes.length === 2 ? 1 : LINES), C = model.classes.length;
        return lines.map((c, i) => {
            const steps = risk.flatMap(({ time, p }, k) => [[f.x(time), f.y(risk[Math.max(0, k - 1)].p[c])], [f.x(time), f.y(p[c])]]);
            const whole = perTime() ? one.times.map((t, q) => [f.x(t), f.y(one.p[q * C + c])]) : [];
            return `<g class="lane${i + 1}"><path class="truth" d="${path(whole)}"/><path class="mean" d="${path(steps)}"/>` +
                (risk.length > STEPS ? '' : risk.map(({ time, p }) =>
                    `<circle class="step" cx="${round(f.x(time))}" cy="${round(f.y(p[c]))}" r="3"/>`).join('')) + '</g>';
        }).join('');
    }

    function riskLegend() {
        const names = one.order.slice(0, model.classes.length === 2 ? 1 : LINES);
        element('risk-legend').innerHTML = names.map((c, i) => `<i class="lane${i + 1} tinted">${escape(model.classes[c])}</i>`).join('') +
            (perTime() ? '<i class="truth">knowing the whole record</i>' : '') +
            (one.times.length > MOMENTS ? `<span>at ${MOMENTS} of ${plural(one.times.length, 'time')}</span>` : '');
    }

    /* The observations that arrived at the moment, and their effect on the prediction. */
    function momentText() {
        if (moment < 0) return '';
        const { time, p } = risk[moment], from = moment ? risk[moment - 1].time : -Infinity, e = one.events;
        const came = e.time.map((t, i) => t > from && t <= time ? `${model.channels[e.channel[i]]} ${short(e.value[i])}` : '')
            .filter(Boolean);
        return `${(short(time) + ' ' + unit()).trim()}: ${model.classes[one.order[0]]} ${p[one.order[0]].toFixed(3)} after ` +
            came.slice(0, 4).join(', ') + (came.length > 4 ? ` and ${came.length - 4} more` : '');
    }

    function drawRisk() {
        const svg = element('risk-plot'), f = frame(svg, RISK, 0, 0, 1);
        if (!classifies()) return;
        const guide = moment < 0 ? '' : `<path class="guide" d="M${round(f.x(risk[moment].time))} ${TOP}V${f.bottom}"/>`;
        svg.innerHTML = axes(f, [0, 0.25, 0.5, 0.75, 1]) + guide + riskLines(f);
        svg.setAttribute('aria-label', `Probability of ${model.classes[one.order[0]]} as observations arrive, ` +
            `${plural(risk.length, 'step')}. Arrow keys go through them.`);
        element('moment').textContent = momentText() || (risk.length ? 'point at a step, or use the arrow keys' : 'nothing observed');
    }

    function pointAt(index) {
        moment = Math.max(-1, Math.min(risk.length - 1, index));
        drawRisk();
    }

    /* ---- controls ---- */

    function drawAll() {
        if (element('own').hidden || !one) return;
        drawPrediction();
        drawRisk();
        drawChannels();
    }

    /* "interpolates and classifies records; 3 channels, 2 classes; int8, 17 KB" */
    function modelFacts() {
        const { kind, classify: what } = model.settings;
        const does = [kind === 'full' ? 'interpolates' : '', what === 'none' ? '' : `classifies ${what}s`].filter(Boolean).join(' and ');
        return `${does}; ${plural(model.channels.length, 'channel')}${classifies() ? `, ${model.classes.length} classes` : ''}; ` +
            `${model.int8 ? 'int8' : 'float'}, ${Math.round(modelFile.bytes.length / 1024)} KB`;
    }

    function dataFacts() {
        return `${plural(data.records.length, 'record')}, ${plural(data.observations, 'observation')}` +
            (data.missing ? `; ${plural(data.missing, 'row')} without a value left out` : '');
    }

    function describe() {
        const some = (list) => list.slice(0, 8).join(', ') + (list.length > 8 ? ', ...' : '');
        element('model-name').textContent = model ? modelFile.name : 'No model yet';
        element('model-facts').textContent = model ? modelFacts() : 'a .safetensors file of mtan train or mtan quantize';
        element('data-name').textContent = data ? dataFile.name : 'No data yet';
        element('data-facts').textContent = data ? dataFacts()
            : 'a CSV with the columns record,time,channel,value' + (model ? `; channels: ${some(model.channels)}` : '');
    }

    function listRecords() {
        element('record').innerHTML = data.records.map((r, i) => `<option value="${i}">${escape(r.name)}</option>`).join('');
    }

    /* Shows the chosen record. */
    function showRecord() {
        element('record').value = chosen;
        element('before').disabled = chosen === 0;
        element('after').disabled = chosen === data.records.length - 1;
        settle('busy');
        try {
            think();
        } catch (error) {
            one = null, run++;
            element('result').hidden = true;
            complain(dataFile.name, error);
            return settle('failed');
        }
        element('result').hidden = false;
        element('notes').innerHTML = notes().map((text) => `<li>${escape(text)}</li>`).join('');
        element('since').textContent = one.start ? `hours since ${one.start}` : '';
        riskLegend();
        drawPrediction();
        drawChannels();
        drawEdges();
        followRisk();
    }

    function refresh() {
        describe();
        run++;
        element('picker').hidden = !(model && data);
        element('result').hidden = !(model && data);
        if (data) listRecords();
        if (model && data) showRecord();
        else settle(element('problem').hidden ? 'ready' : 'failed');
    }

    function choose(index) {
        if (!data || index < 0 || index >= data.records.length) return;
        element('problem').hidden = true;
        chosen = index;
        if (model) showRecord();
    }

    function show(mine) {
        element('own').hidden = !mine;
        element('play').hidden = mine;
        element('back').hidden = !mine;
        if (!mine) run++;
    }

    function listenToRisk(svg) {
        const keys = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
        svg.addEventListener('pointermove', (event) => {
            const box = svg.getBoundingClientRect(), [from, to] = one.span;
            const time = from + (to - from) * (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
            if (risk.length) pointAt(nearest(risk.map((r) => r.time), time));
        });
        svg.addEventListener('pointerleave', () => pointAt(-1));
        svg.addEventListener('blur', () => pointAt(-1));
        svg.addEventListener('keydown', (event) => {
            if (!(event.key in keys) || risk.length === 0) return;
            event.preventDefault();
            pointAt(Math.max(0, Math.min(risk.length - 1, moment + keys[event.key])));
        });
    }

    function listenToDrops() {
        let inside = 0; /* number of elements under the files: entering one comes before leaving another */
        const mark = () => document.body.classList.toggle('dropping', inside > 0);
        document.addEventListener('dragenter', () => { inside++, mark(); });
        document.addEventListener('dragleave', () => { inside--, mark(); });
        document.addEventListener('dragover', (event) => event.preventDefault());
        document.addEventListener('drop', (event) => {
            event.preventDefault();
            inside = 0, mark();
            openDropped(event.dataTransfer.files);
        });
    }

    /* examples: the bytes of a model and of a CSV, for readers without their own. */
    function start(made, examples) {
        library = made, example = examples;
        element('files').addEventListener('change', async (event) => {
            await openDropped(event.target.files);
            event.target.value = ''; /* allows opening the same file again */
        });
        element('open').addEventListener('click', () => element('files').click());
        element('try').addEventListener('click', () => open([{ name: 'patients.safetensors', read: () => example.model },
            { name: 'patients.csv', read: () => example.csv }]));
        element('back').addEventListener('click', () => show(false));
        element('record').addEventListener('change', (event) => choose(Number(event.target.value)));
        element('before').addEventListener('click', () => choose(chosen - 1));
        element('after').addEventListener('click', () => choose(chosen + 1));
        element('more').addEventListener('click', () => { all = !all, drawChannels(); });
        listenToRisk(element('risk-plot'));
        listenToDrops();
        new ResizeObserver(drawAll).observe(element('own'));
    }

    root.own = { start };
})(globalThis);
