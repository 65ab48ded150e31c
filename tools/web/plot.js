'use strict';
/* Drawing functions of both views of the page: texts of SVG and HTML. Sizes are pixels. */
(function (root) {
    const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\'': '&#39;' };
    const escape = (text) => String(text).replace(/[&<>"']/g, (c) => ESCAPES[c]); /* names come from files: they are never markup */

    const round = (number) => Math.round(10 * number) / 10;
    const short = (number) => String(Number(number.toPrecision(4)));
    const path = (list) => list.map(([a, b], i) => (i ? 'L' : 'M') + round(a) + ' ' + round(b)).join('');

    /* Round numbers from low to high, about n of them; hours by quarters of a day if that fits. */
    function ticks(low, high, n, hours) {
        const width = (high - low) / n, power = 10 ** Math.floor(Math.log10(width));
        const steps = hours && width > 1 && width < 100 ? [2, 3, 6, 12, 24, 48, 96, 168] : [1, 2, 5, 10].map((k) => k * power);
        const step = steps.find((s) => s >= width) || steps[steps.length - 1], list = [];
        for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) list.push(Number((k * step).toPrecision(12)));
        return list;
    }

    /* An edge of attention: from an observation down to a reference point. */
    function link(from, to, top, bottom, thick, opacity) {
        const a = round(from), b = round(to), half = (top + bottom) / 2;
        return `<path class="link" stroke-width="${round(thick)}" opacity="${opacity.toFixed(2)}" ` +
            `d="M${a} ${top}C${a} ${half} ${b} ${half} ${b} ${bottom}"/>`;
    }

    const nearest = (list, x) => list.reduce((best, t, i) => Math.abs(t - x) < Math.abs(list[best] - x) ? i : best, 0);

    /* The mean over heads of the weights (reference, time) of a channel. */
    function attention(model, events, channel) {
        const heads = model.settings.enc_heads, first = model.attention(events, channel);
        for (let head = 1; head < heads; head++)
            model.attention(events, channel, { head }).weight.forEach((w, i) => { first.weight[i] += w; });
        first.weight.forEach((w, i) => { first.weight[i] = w / heads; });
        return first;
    }

    root.plot = { escape, round, short, path, ticks, link, nearest, attention };
})(typeof globalThis === 'object' ? globalThis : this);
