'use strict';
/* Tests the page in a real browser: opens it from disk in headless Chromium, moves a real pointer over it, looks at what is
 * drawn, keeps screenshots. An error or a warning on the console fails the test. Speaks the DevTools protocol over a pipe, so it
 * needs nothing but node and the browser.
 *
 *     node tools/web/browser.js build/wasm [chromium-headless-shell]
 */
const { spawn } = require('child_process'), fs = require('fs'), path = require('path'), zlib = require('zlib');
const mtan = require('./mtan.js'), events = require('./events.js');
const build = path.resolve(process.argv[2] || 'build/wasm'), program = process.argv[3] || 'chromium-headless-shell';
const PATIENCE = 180000; /* milliseconds for everything */
let passed = 0, failed = 0;

function expect(truth, words) {
    if (!truth) throw new Error(words);
}

/* ---- the browser ---- */

function start() {
    const child = spawn(program, ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars',
        '--remote-debugging-pipe'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    const answers = new Map(), said = [];
    let rest = '', last = 0;
    child.stdio[4].on('data', (bytes) => {
        const messages = (rest + bytes).split('\0');
        rest = messages.pop();
        for (const message of messages.map(JSON.parse)) {
            if (message.id) answers.get(message.id)(message);
            else said.push(message);
        }
    });
    const send = (method, params = {}, sessionId) => new Promise((resolve, reject) => {
        answers.set(++last, (message) => message.error ? reject(new Error(`${method}: ${message.error.message}`))
            : resolve(message.result));
        child.stdio[3].write(JSON.stringify({ id: last, method, params, sessionId }) + '\0');
    });
    return { child, send, said };
}

/* Messages that a person would see on the console. */
function complaints(said) {
    const bad = {
        'Runtime.exceptionThrown': () => true,
        'Runtime.consoleAPICalled': (p) => /error|warning|assert/.test(p.type),
        'Log.entryAdded': (p) => p.entry.level !== 'info'
    };
    return said.filter((m) => m.method in bad && bad[m.method](m.params)).map((m) => JSON.stringify(m.params));
}

/* Opens a page of some width, from disk. */
async function open(browser, { width, height, scale = 1, dark = false, touch = false, motion = true }) {
    const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await browser.send('Target.attachToTarget', { targetId, flatten: true });
    const send = (method, params) => browser.send(method, params, sessionId);
    for (const domain of ['Page', 'Runtime', 'Log']) await send(domain + '.enable');
    await send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: scale, mobile: touch });
    await send('Emulation.setTouchEmulationEnabled', { enabled: touch });
    await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' },
        { name: 'prefers-reduced-motion', value: motion ? 'no-preference' : 'reduce' }] });
    await send('Network.enable');
    await send('Network.emulateNetworkConditions', { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 });
    await send('Page.navigate', { url: `file://${build}/index.html` });
    const page = { send, width };
    await settle(page);
    return page;
}

async function evaluate(page, expression) {
    const { result, exceptionDetails } = await page.send('Runtime.evaluate', { expression, returnByValue: true });
    expect(!exceptionDetails, `${expression}: ${JSON.stringify(exceptionDetails)}`);
    return result.value;
}

/* Waits until the curves have come to rest. */
async function settle(page) {
    for (let i = 0; i < 400; i++) {
        const state = await evaluate(page, `(document.getElementById('status') || {dataset: {}}).dataset.state || ''`);
        if (state === 'failed') throw new Error(await evaluate(page, `document.getElementById('status').textContent`));
        if (state === 'ready') return;
        await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error('the page never came to rest');
}

/* A picture of the whole page, or of the window: enlarging the window moves the pointer out of it. */
async function shot(page, name, window = false) {
    const { data } = await page.send('Page.captureScreenshot', { format: 'png', captureBeyondViewport: !window });
    fs.writeFileSync(path.join(build, name + '.png'), Buffer.from(data, 'base64'));
}

/* ---- a person ---- */

/* The screen position of an hour and a value in a panel. */
const PLACE = `(c, hour, value) => {
    const svg = document.querySelectorAll('svg')[c], b = svg.getBoundingClientRect(), f = JSON.parse(svg.dataset.frame);
    return [b.left + f.LEFT + (b.width - f.LEFT - f.RIGHT) * hour / f.HOURS,
        b.top + f.TOP + f.PLOT * (f.HIGH - value) / (f.HIGH - f.LOW)];
}`;
const place = (page, c, hour, value) => evaluate(page, `(${PLACE})(${c}, ${hour}, ${value})`);

async function mouse(page, type, [x, y], held) {
    const button = type === 'mouseMoved' && !held ? 'none' : 'left';
    await page.send('Input.dispatchMouseEvent', { type, x, y, button, buttons: held ? 1 : 0, clickCount: 1 });
}

async function click(page, c, hour, value) {
    const at = await place(page, c, hour, value);
    await mouse(page, 'mouseMoved', at, false);
    await mouse(page, 'mousePressed', at, true);
    await mouse(page, 'mouseReleased', at, false);
    await settle(page);
}

async function drag(page, c, from, to) {
    const a = await place(page, c, ...from), b = await place(page, c, ...to);
    await mouse(page, 'mousePressed', a, true);
    for (let i = 1; i <= 5; i++) await mouse(page, 'mouseMoved', a.map((v, k) => v + (b[k] - v) * i / 5), true);
    await mouse(page, 'mouseReleased', b, false);
    await settle(page);
}

async function touch(page, points) {
    const finger = (type, touchPoints) => page.send('Input.dispatchTouchEvent', { type, touchPoints });
    for (const [i, [x, y]] of points.entries()) await finger(i ? 'touchMove' : 'touchStart', [{ x, y }]);
    await finger('touchEnd', []);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await settle(page);
}

async function press(page, text) {
    await evaluate(page, `Array.from(document.querySelectorAll('button')).find((b) => b.textContent === '${text}').click()`);
    await settle(page);
}

const points = (page, c) => evaluate(page, `document.querySelectorAll('svg')[${c}].querySelectorAll('.dot').length`);
const links = (page, c) => evaluate(page, `document.querySelectorAll('svg')[${c}].querySelectorAll('.link').length`);

/* The drawn values of a panel at an hour: the curve, and the height of its band. */
const READ = `(c, hour) => {
    const svg = document.querySelectorAll('svg')[c], f = JSON.parse(svg.dataset.frame);
    const heights = (kind) => svg.querySelector(kind).getAttribute('d').split(/[MLZ]/).filter(Boolean).map((s) => Number(s.split(' ')[1]));
    const unit = (f.HIGH - f.LOW) / f.PLOT, mean = heights('.mean'), band = heights('.band'), q = Math.round(hour / f.HOURS * (f.GRID - 1));
    return { mean: f.HIGH - (mean[q] - f.TOP) * unit, band: (band[band.length - 1 - q] - band[q]) * unit };
}`;
const read = (page, c, hour) => evaluate(page, `(${READ})(${c}, ${hour})`);

async function key(page, name) {
    for (const type of ['rawKeyDown', 'keyUp']) await page.send('Input.dispatchKeyEvent', { type, key: name, code: name,
        windowsVirtualKeyCode: { Tab: 9, Enter: 13, End: 35, Home: 36, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40 }[name] });
}

/* ---- a person with files ---- */

/* Waits until the record is shown, including the risk; returns the final state. */
async function settleOwn(page) {
    for (let i = 0; i < 800; i++) {
        const state = await evaluate(page, `document.getElementById('own').dataset.state || ''`);
        if (state === 'ready' || state === 'failed') return state;
        await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error('the view of own data never came to rest');
}

async function doOwn(page, action) {
    await evaluate(page, `delete document.getElementById('own').dataset.state`);
    await action();
    return settleOwn(page);
}

const pressOwn = (page, id) => doOwn(page, () => evaluate(page, `document.getElementById('${id}').click()`));

/* Opens files through the dialog's input. */
async function openFiles(page, names) {
    const { root } = await page.send('DOM.getDocument'), { nodeId } = await page.send('DOM.querySelector', { nodeId: root.nodeId, selector: '#files' });
    return doOwn(page, () => page.send('DOM.setFileInputFiles', { nodeId, files: names.map((name) => path.join(build, name)) }));
}

async function dropFiles(page, names) {
    const data = { items: [], files: names.map((name) => path.join(build, name)), dragOperationsMask: 1 };
    return doOwn(page, async () => {
        for (const type of ['dragEnter', 'dragOver', 'drop']) await page.send('Input.dispatchDragEvent', { type, x: 200, y: 200, data });
    });
}

const text = (page, id) => evaluate(page, `document.getElementById('${id}').textContent`);
const count = (page, selector) => evaluate(page, `document.querySelectorAll('${selector}').length`);
const problem = (page) => evaluate(page, `(document.getElementById('problem').hidden ? '' : document.getElementById('problem').textContent)`);
const fits = (page) => evaluate(page, `document.documentElement.scrollWidth <= ${page.width}`); /* innerWidth grows with what is too wide */

/* The output of mtan.js in node for a record of a CSV. */
async function inNode(model, csv, index) {
    const library = await mtan.load({ simd: fs.readFileSync(path.join(build, 'mtan.wasm')) });
    const opened = await library.open(fs.readFileSync(path.join(build, model)));
    const one = events.record(events.read(fs.readFileSync(path.join(build, csv), 'utf8')), index, opened);
    return { opened, one, p: Array.from(opened.classify(one.events, { name: one.name })) };
}

/* ---- tests ---- */

async function mouseOnEmpty(browser) {
    const page = await open(browser, { width: 1180, height: 1100 });
    await press(page, 'Clear');
    for (let c = 0; c < 3; c++) expect(await points(page, c) + await links(page, c) === 0, 'points or links without observations');
    await shot(page, 'empty');
    await click(page, 0, 6, 1.5), await click(page, 0, 12, -1), await click(page, 0, 18, 1);
    expect(await points(page, 0) === 3 && await points(page, 1) === 0, 'clicks placed other points');
    expect(await links(page, 0) > 20, 'no attention is drawn');
    const before = (await read(page, 0, 12)).mean, other = (await read(page, 2, 12)).mean;
    expect(Math.abs(before + 1) < 0.6, `the curve passes far from an observation: ${before}`);
    await drag(page, 0, [12, -1], [12, 1]);
    expect(await points(page, 0) === 3, 'dragging changed the number of points');
    const after = (await read(page, 0, 12)).mean, moved = (await read(page, 2, 12)).mean;
    expect(after - before > 0.8, `the curve did not follow: ${before}, then ${after}`);
    expect(other - moved > 0.3, `the mirror did not answer: ${other}, then ${moved}`);
    await click(page, 0, 12, 1), await click(page, 1, 3, -0.5);
    expect(await points(page, 0) === 2, 'a click on a point did not remove it');
    expect(await points(page, 1) === 1, 'a click on another panel placed no point there');
    return `lead ${before.toFixed(2)} to ${after.toFixed(2)}, mirror ${other.toFixed(2)} to ${moved.toFixed(2)}`;
}

async function presets(browser) {
    const page = await open(browser, { width: 1180, height: 1100 }), words = [];
    for (const [name, file] of [['Few', 'light'], ['Many', 'many'], ['A gap', 'gap'], ['Lead alone', 'lead']]) {
        await press(page, name);
        expect(await points(page, 0) > 3, `${name}: no points`);
        expect(await evaluate(page, `document.querySelector('path.truth').getAttribute('d').length > 100`), 'no truth');
        for (const hour of name === 'A gap' ? [4, 13] : []) words.push(`band ${(await read(page, 0, hour)).band.toFixed(2)} at ${hour} h`);
        await shot(page, file);
    }
    await mouse(page, 'mouseMoved', await place(page, 0, 10, 0), false);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await evaluate(page, `document.querySelectorAll('.guide').length`) === 3, 'no guide at the pointer');
    expect(await evaluate(page, `document.querySelectorAll('.ring').length`) > 0, 'no weights at the pointer');
    await shot(page, 'hover', true);
    await press(page, 'Another series');
    await click(page, 1, 20, 1);
    expect(await evaluate(page, `document.querySelector('path.truth').getAttribute('d')`) === '', 'truth outlives a change');
    for (let i = 0; i < 20; i++) await press(page, 'Another series');
    words.push(await evaluate(page, `Array.from(document.querySelectorAll('.numbers div'), (d) => d.textContent).join('; ')`));
    return words.join('; ');
}

async function phone(browser) {
    const page = await open(browser, { width: 390, height: 844, scale: 2, touch: true });
    expect(await fits(page), 'wider than the phone');
    await shot(page, 'phone');
    const had = await points(page, 0), at = await place(page, 0, 12, 2.2);
    await touch(page, [at]);
    expect(await points(page, 0) === had + 1, 'a tap placed no point');
    await touch(page, [0, 1, 2, 3].map((i) => [at[0] - 10 * i, at[1] + 10 * i]));
    expect(await points(page, 0) === had + 1, 'dragging by finger changed the number of points');
    expect(await evaluate(page, 'scrollY') === 0, 'dragging a point scrolled the page');
    await touch(page, [[at[0] - 30, at[1] + 30]]);
    expect(await points(page, 0) === had, `a tap on a point did not remove it: ${await points(page, 0)} points, had ${had}`);
    const below = await place(page, 1, 12, -2.2);
    await touch(page, [0, 1, 2, 3, 4, 5, 6].map((i) => [below[0], below[1] - 25 * i]));
    expect(await evaluate(page, 'scrollY') > 30, 'a swipe over a panel does not scroll');
}

async function dark(browser) {
    const page = await open(browser, { width: 1180, height: 1100, dark: true, motion: false });
    expect(await evaluate(page, 'getComputedStyle(document.body).backgroundColor') === 'rgb(20, 23, 26)', 'not dark');
    await press(page, 'A gap');
    await shot(page, 'dark');
}

async function keyboard(browser) {
    const page = await open(browser, { width: 1180, height: 1100 });
    await press(page, 'Clear');
    await evaluate(page, `document.querySelectorAll('svg')[1].focus()`);
    for (const name of ['ArrowRight', 'ArrowRight', 'ArrowUp', 'Enter']) await key(page, name);
    await settle(page);
    expect(await points(page, 1) === 1 && await points(page, 0) === 0, 'Enter placed no observation');
    expect(await count(page, '.cursor') === 1, 'no cursor');
    await key(page, 'Enter');
    await settle(page);
    expect(await points(page, 1) === 0, 'Enter did not remove the observation');
}

/* The example: the page shows the output of mtan.js; records change by button and by key, the steps of the risk by
 * key. */
async function ownExample(browser) {
    const page = await open(browser, { width: 1180, height: 900 });
    expect(await pressOwn(page, 'try') === 'ready', await problem(page));
    for (let index = 0; index < 3; index++) {
        const { opened, one, p } = await inNode('example.safetensors', 'example.csv', index), shown = await text(page, 'headline');
        expect(shown === `${(100 * p[opened.positive]).toFixed(1)} % sick`, `record ${index}: ${shown}, not ${p}`);
        expect((await text(page, 'classes')).includes(p[1 - opened.positive].toFixed(4)), 'the other class');
        expect(await count(page, '.step') === new Set(one.events.time).size, 'not a step for each time');
        await evaluate(page, `document.getElementById('risk-plot').focus()`);
        await key(page, 'End');
        expect((await text(page, 'moment')).includes('sick ' + p[opened.positive].toFixed(3)), await text(page, 'moment'));
        if (index === 0) await key(page, 'Home'), await shot(page, 'own-light', true), await shot(page, 'own-light-whole');
        await pressOwn(page, 'after');
    }
    expect(await count(page, '#channels svg') === 3 && await count(page, '#channels .dot') > 5, 'no observations');
    expect(await count(page, '#channels .link') > 20 && await count(page, '#edges tr') === 10, 'no attention');
    expect(await count(page, '#channels .band') === 0, 'a band of a model that does not interpolate');
    await evaluate(page, `document.getElementById('record').focus()`);
    await doOwn(page, () => key(page, 'ArrowDown'));
    expect(await evaluate(page, `document.getElementById('record').value`) === '4', 'the key did not choose a record');
    await pressOwn(page, 'before');
    await evaluate(page, `document.getElementById('back').click()`);
    await settle(page);
    expect(await count(page, '#play:not([hidden])') === 1 && await points(page, 0) > 3, 'no way back');
}

/* Dates, int8, curves; compressed; by the dialog. */
async function ownDates(browser) {
    fs.writeFileSync(path.join(build, 'dated.csv.gz'), zlib.gzipSync(fs.readFileSync(path.join(build, 'patients/dated.csv'))));
    const page = await open(browser, { width: 1180, height: 900, dark: true });
    expect(await openFiles(page, ['dated-int8.safetensors', 'dated.csv.gz']) === 'ready', await problem(page));
    const { opened, one, p } = await inNode('dated-int8.safetensors', 'patients/dated.csv', 0);
    expect(await problem(page) === '' && opened.int8, await problem(page));
    expect((await text(page, 'model-facts')).includes('interpolates and classifies records; 3 channels, 2 classes; int8'), 'facts');
    expect((await text(page, 'headline')).startsWith((100 * p[opened.positive]).toFixed(1) + ' %'), await text(page, 'headline'));
    expect(await text(page, 'since') === `hours since ${one.start}`, await text(page, 'since'));
    expect(await count(page, '#channels .band') === 3 && await count(page, '#channels .mean') === 3, 'no curves');
    await shot(page, 'own-dark');
}

/* A class for each time, opened by drop; then a model that does not classify, and data that does not fit it. */
async function ownDropped(browser) {
    const page = await open(browser, { width: 1180, height: 900 });
    expect(await dropFiles(page, ['patients/events.csv']) === 'ready' && (await text(page, 'model-name')) === 'No model yet', 'a CSV alone');
    await shot(page, 'own-no-model', true);
    expect(await dropFiles(page, ['per-time.safetensors']) === 'ready', await problem(page));
    expect(await count(page, '#risk-plot .truth') === 1 && (await text(page, 'data-facts')).startsWith('400 records'), 'not both');
    await evaluate(page, `document.getElementById('risk-plot').focus()`);
    await key(page, 'End');
    const last = / pm (0\.\d+) /.exec(await text(page, 'moment'))[1], whole = (await text(page, 'headline')).split(' ')[0];
    expect((100 * last).toFixed(1) === whole, `the last step is ${last}, the prediction ${whole}`);
    await shot(page, 'own-per-time');
    expect(await dropFiles(page, ['model.safetensors', 'few.csv']) === 'ready' && await count(page, '#channels .band') === 3, 'no curves');
    await shot(page, 'own-curves');
    await dropFiles(page, ['patients/events.csv']);
    expect(await problem(page) === '' && await count(page, '#risk:not([hidden])') === 0, 'a risk without classes');
    expect((await text(page, 'notes')).includes('channels that the model does not have left out: p'), await text(page, 'notes'));
    expect((await text(page, 'notes')).includes('nothing is observed'), await text(page, 'notes'));
}

/* Twelve channels and four classes: not all are shown at first; the most likely class comes first. */
async function ownWide(browser) {
    const page = await open(browser, { width: 1180, height: 900 });
    expect(await openFiles(page, ['wide.safetensors', 'patients/wide.csv']) === 'ready', await problem(page));
    const { opened, one, p } = await inNode('wide.safetensors', 'patients/wide.csv', 0);
    const likely = p.indexOf(Math.max(...p)), seen = new Set(one.events.channel).size;
    expect(opened.channels.length === 12 && opened.positive === -1 && seen > 6, 'another model');
    expect(await text(page, 'headline') === `${(100 * p[likely]).toFixed(1)} % ${opened.classes[likely]}`, await text(page, 'headline'));
    expect(await count(page, '#classes tr') === 4 && await count(page, '#risk-plot .mean') === 3, 'other classes');
    expect(await count(page, '#channels svg') === 6 && await text(page, 'more') === `Show ${seen - 6} more`, await text(page, 'more'));
    await evaluate(page, `document.getElementById('more').click()`);
    expect(await count(page, '#channels svg') === seen, 'not all are shown');
    await shot(page, 'own-wide');
}

async function ownBad(browser) {
    const page = await open(browser, { width: 1180, height: 900 });
    const write = (name, rows) => fs.writeFileSync(path.join(build, name), 'record,time,channel,value\n' + rows);
    write('bad.csv', 'a,1,pulse,80\na,2,pulse,high\n');
    write('odd.csv', '<img src=x onerror=alert(1)>,1,<b>x</b>,1\n<img src=x onerror=alert(1)>,900,pulse,7000\n');
    fs.writeFileSync(path.join(build, 'bad.safetensors'), 'no model');
    await pressOwn(page, 'try');
    await openFiles(page, ['bad.csv']);
    expect(await problem(page) === 'bad.csv:3: "high" is no value: a number that a float can hold, or nothing', await problem(page));
    expect((await text(page, 'data-name')) === 'patients.csv' && (await text(page, 'headline')).includes('sick'), 'what was open is gone');
    await shot(page, 'own-problem', true);
    await openFiles(page, ['bad.safetensors']);
    expect((await problem(page)).startsWith('bad.safetensors: not a valid safetensors file'), await problem(page));
    await openFiles(page, ['number.safetensors']);
    expect((await problem(page)).startsWith('number.safetensors: it predicts a number'), await problem(page));
    await openFiles(page, ['patients/dated.csv']);
    expect((await problem(page)).startsWith('dated.csv: its times are dates'), await problem(page));
    await openFiles(page, ['odd.csv']);
    expect(await problem(page) === '' && await count(page, 'img') + await count(page, '#own ul b') === 0, 'a name became markup');
    const notes = await text(page, 'notes');
    expect(notes.includes('<b>x</b>') && notes.includes('pulse: 1 value far outside') && notes.includes('1 observation at times far'), notes);
    await shot(page, 'own-far');
}

async function ownPhone(browser) {
    const page = await open(browser, { width: 390, height: 844, scale: 2, touch: true });
    await pressOwn(page, 'try');
    expect(await fits(page), 'wider than the phone');
    await shot(page, 'own-phone');
    await openFiles(page, ['dated.safetensors', 'patients/dated.csv']);
    expect(await fits(page) && await count(page, '#channels .band') === 3, 'wider than the phone, or no curves');
}

async function test(browser, name, body) {
    try {
        const words = await body(browser), bad = complaints(browser.said);
        expect(bad.length === 0, 'the console says: ' + bad.join('\n'));
        passed++;
        console.log(`PASS ${name}${words ? ': ' + words : ''}`);
    } catch (error) {
        failed++;
        console.log(`FAIL ${name}: ${error.stack}`);
    }
}

async function main() {
    const browser = start();
    let done = false;
    const late = setTimeout(() => fail('it took too long'), PATIENCE);
    const fail = (words) => { failed++, console.log(`FAIL ${words}`), browser.child.kill(); };
    browser.child.on('error', (error) => { console.log(`FAIL ${program}: ${error.message}`), process.exit(1); });
    browser.child.on('exit', (code) => {
        if (!done && !failed) failed++, console.log(`FAIL the browser ended by itself: ${code}`);
        console.log(`Pass: ${passed}, fail: ${failed}, skip: 0.`);
        process.exit(failed ? 1 : 0);
    });
    await test(browser, 'mouse on an empty page', mouseOnEmpty);
    await test(browser, 'presets', presets);
    await test(browser, 'phone', phone);
    await test(browser, 'dark', dark);
    await test(browser, 'keyboard', keyboard);
    await test(browser, 'own data: the example', ownExample);
    await test(browser, 'own data: dates, int8, a dialog', ownDates);
    await test(browser, 'own data: a class for each time, dropped', ownDropped);
    await test(browser, 'own data: many channels and classes', ownWide);
    await test(browser, 'own data: what is wrong with it', ownBad);
    await test(browser, 'own data: phone', ownPhone);
    done = true;
    clearTimeout(late);
    browser.child.kill();
}
main();
