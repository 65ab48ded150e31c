'use strict';
/* The page's first view: points in, curves and attention out. Sections: state; model; drawing; pointers and keys; presets. */
(function () {
    const GRID = 145, SAMPLES = 32; /* times of a curve: every ten minutes; draws of the posterior */
    const LOW = -2.6, HIGH = 2.6; /* of a panel: constant and equal for all, so that nothing jumps under the finger */
    const LEFT = 34, RIGHT = 12, TOP = 8, PLOT = 150, STRIP = 64, BOTTOM = 30; /* pixels */
    const REACH = 14, STILL = 4; /* pixels: distance from a point that still selects it; movement that still counts as a
                                  * tap */
    const FAINT = 0.02; /* weights below this fraction of the largest are not drawn */
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const { CHANNELS, HOURS } = series;
    const { round, path, nearest: nearestIn } = plot;
    const element = (id) => document.getElementById(id);
    const times = Array.from({ length: GRID }, (none, i) => HOURS * i / (GRID - 1));

    /* ---- state ---- */

    let model;
    let points = []; /* { time, channel, value }: channel is the panel's */
    let truth = null; /* (channel, hour) -> value of the preset, until a point is changed */
    let seed = 1, chosen = 0; /* number of the series, index of the preset */
    let hour = null; /* under the pointer */
    let cursor = null; /* { time, channel, value } of the keyboard */
    let curve = null, shown = null, attention = []; /* the model's curve; the drawn curve, on its way there; attention
                                                     * by panel */
    let dirty = false, width = 0;
    const spent = { interpolate: [], attention: [] }; /* milliseconds of the last calls */

    const median = (list) => list.slice().sort((a, b) => a - b)[list.length >> 1];

    function timed(name, body) {
        const start = performance.now(), result = body();
        spent[name].push(performance.now() - start);
        if (spent[name].length > 31) spent[name].shift();
        return result;
    }

    /* ---- model ---- */

    const decode = (id) => Uint8Array.from(atob(element(id).textContent.trim()), (c) => c.charCodeAt(0));

    async function open() {
        const library = await mtan.load({ simd: decode('simd'), plain: decode('plain') });
        own.start(library, { model: decode('example'), csv: decode('observations') });
        const bytes = decode('model');
        model = await library.open(bytes);
        model.panel = CHANNELS.map((name) => model.channels.indexOf(name)); /* the model sorts its channels by name */
        element('samples').textContent = SAMPLES;
        numbers(library.simd, bytes.length);
    }

    function events() {
        const each = (field) => points.map((p) => p[field]);
        return { time: each('time'), channel: each('channel').map((c) => model.panel[c]), value: each('value') };
    }

    function think() {
        const list = events();
        curve = timed('interpolate', () => model.interpolate(list, times, { samples: SAMPLES }));
        attention = timed('attention', () => model.panel.map((channel) => plot.attention(model, list, channel)));
    }

    /* ---- drawing ---- */

    const x = (time) => LEFT + (width - LEFT - RIGHT) * time / HOURS;
    const y = (value) => TOP + PLOT * (HIGH - Math.max(LOW, Math.min(HIGH, value))) / (HIGH - LOW);

    function makeLanes() {
        element('lanes').innerHTML = CHANNELS.map((name, c) => `<figure class="lane${c + 1}"><figcaption><b>${name}</b><span></span>` +
            '</figcaption><svg role="img"><g class="back"></g><path class="band"></path><path class="truth"></path>' +
            '<path class="mean"></path><g class="links"></g><g class="guides"></g><g class="points"></g></svg></figure>').join('');
        element('lanes').querySelectorAll('svg').forEach((svg, c) => {
            svg.setAttribute('height', TOP + PLOT + STRIP + BOTTOM);
            svg.setAttribute('aria-label', `Observations of ${CHANNELS[c]} and the curve between them. Arrow keys move a cursor, ` +
                'Enter places an observation there or removes it.');
            svg.setAttribute('tabindex', 0);
            svg.dataset.frame = JSON.stringify({ LEFT, RIGHT, TOP, PLOT, LOW, HIGH, HOURS, GRID }); /* for tests of the
                                                                                                     * page */
            listen(svg, c);
            listenToKeys(svg, c);
        });
    }

    function drawBack(part) {
        const step = width < 500 ? 6 : 3, bottom = TOP + PLOT;
        let text = '';
        for (const value of [-2, -1, 0, 1, 2])
            text += `<path class="grid" d="M${LEFT} ${y(value)}H${width - RIGHT}"/>` +
                `<text class="end" x="${LEFT - 7}" y="${y(value) + 4}">${value}</text>`;
        for (let h = 0; h <= HOURS; h += step)
            text += `<text class="middle" x="${x(h)}" y="${bottom + STRIP + 20}">${h}${h === HOURS ? ' h' : ''}</text>`;
        part.innerHTML = text + `<path class="axis" d="M${LEFT} ${bottom}H${width - RIGHT}"/>`;
    }

    function drawCurve(svg, c) {
        const D = CHANNELS.length, d = model.panel[c], at = (q, sign) => shown.mean[q * D + d] + sign * 2 * shown.sd[q * D + d];
        const upper = times.map((t, q) => [x(t), y(at(q, 1))]), lower = times.map((t, q) => [x(t), y(at(q, -1))]);
        svg.querySelector('.band').setAttribute('d', path(upper.concat(lower.reverse())) + 'Z');
        svg.querySelector('.mean').setAttribute('d', path(times.map((t, q) => [x(t), y(at(q, 0))])));
        svg.querySelector('.truth').setAttribute('d', truth ? path(times.map((t) => [x(t), y(truth(c, t))])) : '');
    }

    function nearestReference() {
        return hour === null ? -1 : nearestIn(attention[0].reference, hour);
    }

    /* Draws links from the observations on the axis down to the reference points. */
    function drawLinks(svg, c, on) {
        const { time, reference, weight } = attention[c], L = time.length, top = TOP + PLOT + 1, bottom = TOP + PLOT + STRIP - 2;
        const most = weight.reduce((a, b) => Math.max(a, b), 0);
        let text = '';
        reference.forEach((r, k) => {
            for (let l = 0; l < L; l++) {
                const share = weight[k * L + l] / (most || 1);
                if (!(share > FAINT)) continue;
                const strong = k === on, opacity = strong ? 0.25 + 0.75 * share : (on < 0 ? 0.6 : 0.12) * share;
                text += plot.link(x(time[l]), x(r), top, bottom, strong ? 1 + 2 * share : 0.6 + share, opacity);
            }
            const [kind, size] = k === on ? ['reference on', 3.2] : ['reference', 1.8];
            text += `<circle class="${kind}" cx="${round(x(r))}" cy="${bottom + 3}" r="${size}"/>`;
        });
        svg.querySelector('.links').innerHTML = text;
    }

    function drawPoints(svg, c, on) {
        const { time, reference, weight } = attention[c], L = time.length, own = points.filter((p) => p.channel === c);
        let rings = '', dots = '';
        for (const p of own) {
            const l = nearestIn(time, p.time);
            const w = on < 0 ? 0 : weight[on * L + l], place = `cx="${round(x(p.time))}" cy="${round(y(p.value))}"`;
            if (w > FAINT) rings += `<circle class="ring" ${place} r="${round(6 + 10 * Math.sqrt(w))}"/>`;
            dots += `<circle class="dot" ${place} r="4.6"/><circle class="hit" ${place} r="${REACH}"/>`;
        }
        svg.querySelector('.points').innerHTML = rings + dots + (points.length ? '' :
            `<text class="hint middle" x="${x(HOURS / 2)}" y="${y(1.5) + 4}">${c === 0 ? 'nothing seen yet: tap anywhere' : ''}</text>`);
        svg.querySelector('.guides').innerHTML = (on < 0 ? '' :
            `<path class="guide" d="M${round(x(reference[on]))} ${TOP}V${TOP + PLOT + STRIP - 6}"/>`) + (cursor && cursor.channel === c ?
            `<circle class="cursor" cx="${round(x(cursor.time))}" cy="${round(y(cursor.value))}" r="9"/>` : '');
        svg.previousElementSibling.lastChild.textContent = own.length === 1 ? '1 observation' : `${own.length || 'no'} observations`;
    }

    function draw() {
        if (element('play').hidden) return;
        const on = nearestReference();
        element('lanes').querySelectorAll('svg').forEach((svg, c) => {
            if (svg.clientWidth !== width || !svg.querySelector('.back').firstChild) {
                width = svg.clientWidth;
                element('lanes').querySelectorAll('.back').forEach(drawBack);
            }
            drawCurve(svg, c);
            drawLinks(svg, c, on);
            drawPoints(svg, c, on);
        });
        element('ms').textContent = median(spent.interpolate).toFixed(2) + ' ms';
        element('ms-attention').textContent = median(spent.attention).toFixed(2) + ' ms';
        element('count').textContent = points.length;
    }

    /* Moves the drawn curves towards the model's. Returns whether they have arrived. */
    function glide() {
        let far = 0;
        if (!shown || calm) shown = { mean: curve.mean.slice(), sd: curve.sd.slice() };
        for (const part of ['mean', 'sd'])
            shown[part].forEach((value, i) => {
                const rest = curve[part][i] - value;
                shown[part][i] = Math.abs(rest) < 0.004 ? curve[part][i] : value + 0.3 * rest;
                far = Math.max(far, Math.abs(curve[part][i] - shown[part][i]));
            });
        return far === 0;
    }

    let waiting = false;
    function frame() {
        waiting = false;
        if (dirty) think();
        dirty = false;
        const there = glide();
        draw();
        if (!there) redraw();
        else element('status').dataset.state = 'ready';
    }

    function redraw() {
        if (!waiting) requestAnimationFrame(frame);
        waiting = true;
    }

    function change(edited) {
        if (edited) truth = null, chosen = -1;
        element('presets').querySelectorAll('[data-preset]').forEach((b, i) => b.setAttribute('aria-pressed', i === chosen));
        element('status').dataset.state = 'busy';
        dirty = true;
        redraw();
    }

    function numbers(simd, bytes) {
        const rows = [['Interpolation', 'ms', `${GRID} times, ${CHANNELS.length} channels, ${SAMPLES} curves`],
            ['Attention', 'ms-attention', `${CHANNELS.length} channels, ${model.settings.enc_heads} heads`],
            ['Observations', 'count', 'at any times, in any order'],
            ['Model', 'bytes', `WebAssembly${simd ? ' with simd128' : ''}`]];
        element('numbers').innerHTML = rows.map(([name, id, note]) =>
            `<div><dt>${name}</dt><dd><span id="${id}"></span><small>${note}</small></dd></div>`).join('');
        element('bytes').textContent = Math.round(bytes / 1024) + ' KB';
    }

    /* ---- pointers and keys ---- */

    function add(c, at) {
        const point = { time: at.time, channel: c, value: at.value };
        points.push(point);
        change(true);
        return point;
    }

    function remove(point) {
        points.splice(points.indexOf(point), 1);
        change(true);
    }

    /* The panel's point within reach of a position on the screen, or null. */
    function nearestPoint(c, at) {
        const apart = (p) => p.channel === c ? Math.hypot(x(p.time) - at.px, y(p.value) - at.py) : Infinity;
        const best = points.reduce((a, p) => !a || apart(p) < apart(a) ? p : a, null);
        return best && apart(best) <= REACH ? best : null;
    }

    /* Arrow keys move a cursor; Enter places an observation there, or removes the one that is there. */
    function listenToKeys(svg, c) {
        const steps = { ArrowLeft: [-0.5, 0], ArrowRight: [0.5, 0], ArrowUp: [0, 0.2], ArrowDown: [0, -0.2] };
        const toggle = () => {
            const found = nearestPoint(c, { px: x(cursor.time), py: y(cursor.value) });
            if (found) remove(found);
            else add(c, cursor);
        };
        svg.addEventListener('keydown', (event) => {
            const step = steps[event.key];
            if (!step && event.key !== 'Enter' && event.key !== ' ') return;
            event.preventDefault();
            if (!cursor || cursor.channel !== c) cursor = { time: HOURS / 2, channel: c, value: 0 };
            else if (!step) toggle();
            else {
                cursor.time = Math.max(0, Math.min(HOURS, cursor.time + step[0]));
                cursor.value = Math.max(LOW, Math.min(HIGH, cursor.value + step[1]));
            }
            hour = cursor.time;
            redraw();
        });
        svg.addEventListener('blur', () => { cursor = null, hour = null, redraw(); });
    }

    function listen(svg, c) {
        let held = null; /* the dragged point; or the place where a finger came down */
        const place = (event) => {
            const box = svg.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
            const time = Math.max(0, Math.min(HOURS, HOURS * (px - LEFT) / (width - LEFT - RIGHT)));
            return { px, py, time, value: Math.max(LOW, Math.min(HIGH, HIGH - (HIGH - LOW) * (py - TOP) / PLOT)) };
        };
        svg.addEventListener('pointerdown', (event) => {
            if (held || !event.isPrimary || event.button !== 0) return;
            const at = place(event), point = nearestPoint(c, at);
            if (!point && at.py > TOP + PLOT + REACH) return; /* the strip of attention is only for viewing */
            svg.setPointerCapture(event.pointerId);
            held = { point, from: at, fresh: false, moved: false };
            if (!point && event.pointerType === 'mouse') held.point = add(c, at), held.fresh = true; /* a finger may be
                                                                                                      * starting to
                                                                                                      * scroll */
        });
        const follow = (event) => {
            const at = place(event);
            hour = at.time;
            redraw();
            if (!held) return;
            held.moved = held.moved || Math.hypot(at.px - held.from.px, at.py - held.from.py) > STILL;
            if (held.point && held.moved) held.point.time = at.time, held.point.value = at.value, change(true);
        };
        svg.addEventListener('pointermove', follow);
        svg.addEventListener('pointerup', (event) => {
            follow(event);
            if (held && !held.moved && !held.point) add(c, held.from);
            else if (held && !held.moved && !held.fresh) remove(held.point);
            if (event.pointerType !== 'mouse') hour = null;
            held = null;
            redraw();
        });
        /* A finger on a point drags it; elsewhere it may scroll. touch-action on a part of an SVG does not reach every browser. */
        svg.addEventListener('touchstart', (event) => {
            if (nearestPoint(c, place(event.touches[0]))) event.preventDefault();
        }, { passive: false });
        const leave = () => { held = null, hour = null, redraw(); };
        svg.addEventListener('pointercancel', leave);
        svg.addEventListener('pointerleave', leave);
    }

    /* ---- presets ---- */

    const PRESETS = [['Few', [4, 3, 3]], ['Many', [14, 12, 12]], ['A gap', [12, 10, 10]], ['Lead alone', [12, 0, 0]]];

    function preset(index) {
        const one = series.series(seed * 1000003), [name, counts] = PRESETS[index];
        const list = series.observe(one, counts, 0, HOURS);
        points = list.time.map((time, i) => ({ time, channel: list.channel[i], value: list.value[i] }));
        if (name === 'A gap') points = points.filter((p) => p.time < 9 || p.time > 17);
        truth = one.value;
        chosen = index;
        change(false);
    }

    function makeButtons() {
        const button = (text, action, name) => {
            const made = document.createElement('button');
            made.type = 'button', made.textContent = text, made.onclick = action;
            if (name) made.dataset.preset = text;
            element('presets').append(made);
        };
        PRESETS.forEach(([name], i) => button(name, () => preset(i), true));
        button('Another series', () => { seed++, preset(chosen < 0 ? 0 : chosen); });
        element('presets').append(document.createElement('span'));
        button('Clear', () => { points = []; change(true); });
    }

    function fail(error) {
        const words = error && error.message || String(error);
        element('status').className = 'failed';
        element('status').dataset.state = 'failed';
        element('status').textContent = 'This page needs a browser with WebAssembly: ' + words;
        console.error(words);
    }

    async function start() {
        makeButtons();
        await open();
        makeLanes();
        new ResizeObserver(redraw).observe(element('lanes'));
        preset(0);
    }

    start().catch(fail);
})();
