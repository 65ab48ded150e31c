'use strict';
/* The made-up series behind the page: its model is trained on them, and its presets show them. Three channels on one
 * clock of 24 hours: `lead` is a sum of waves, `echo` is the lead two hours later and smaller, `mirror` is its negative
 * plus a slow wave of its own. So observations of one channel tell something about the others.
 *
 *     node tools/web/series.js 4000 > events.csv         records for mtan train, the same bytes every time */
(function (root) {
    const CHANNELS = ['lead', 'echo', 'mirror'], HOURS = 24, NOISE = 0.05;

    /* mulberry32: the same draws in every engine. */
    function random(seed) {
        let state = seed >>> 0;
        return function () {
            state = (state + 0x6d2b79f5) >>> 0;
            let z = state;
            z = Math.imul(z ^ (z >>> 15), z | 1);
            z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
            return ((z ^ (z >>> 14)) >>> 0) / 4294967296;
        };
    }

    function normal(uniform) {
        return Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
    }

    /* A wave: cycles per day, height, phase. */
    function wave(uniform, slowest, fastest, height) {
        return [slowest + (fastest - slowest) * uniform(), height * normal(uniform), 2 * Math.PI * uniform()];
    }

    function sum(waves, hour) {
        return waves.reduce((s, [cycles, height, phase]) => s + height * Math.sin(2 * Math.PI * cycles * hour / HOURS + phase), 0);
    }

    /* A series: its value by channel and hour, without noise. */
    function series(seed) {
        const uniform = random(seed);
        const lead = [wave(uniform, 0, 0.3, 0.8), wave(uniform, 0.3, 1, 0.8), wave(uniform, 1, 2, 0.5)];
        const own = [wave(uniform, 0, 0.5, 0.5)];
        const value = (channel, hour) => channel === 0 ? sum(lead, hour)
            : channel === 1 ? 0.7 * sum(lead, hour - 2)
            : -0.8 * sum(lead, hour) + sum(own, hour);
        return { value, uniform };
    }

    /* Observations of a series, so many per channel, at random hours within a range. */
    function observe(one, counts, from, to) {
        const events = { time: [], channel: [], value: [] };
        counts.forEach((n, channel) => {
            for (let i = 0; i < n; i++) {
                const hour = Math.round(100 * (from + (to - from) * one.uniform())) / 100;
                events.time.push(hour);
                events.channel.push(channel);
                events.value.push(Math.round(1000 * (one.value(channel, hour) + NOISE * normal(one.uniform))) / 1000);
            }
        });
        return events;
    }

    /* A record of the training data: few or many observations per channel, independently of the other channels. */
    function record(seed) {
        const one = series(seed), uniform = one.uniform;
        const count = () => Math.floor(([3, 8, 24][Math.floor(3 * uniform())] + 1) * uniform());
        return observe(one, CHANNELS.map(count), 0, HOURS);
    }

    function csv(records) {
        const rows = ['record,time,channel,value'];
        for (let r = 0; r < records; r++) {
            const e = record(r);
            e.time.forEach((t, i) => rows.push(`s${r},${t},${CHANNELS[e.channel[i]]},${e.value[i]}`));
        }
        return rows.join('\n') + '\n';
    }

    const made = { CHANNELS, HOURS, series, observe, csv };
    if (typeof module === 'object' && module.exports) {
        module.exports = made;
        if (require.main === module) process.stdout.write(csv(Number(process.argv[2]) || 1000));
    } else root.series = made;
})(typeof globalThis === 'object' ? globalThis : this);
