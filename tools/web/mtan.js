'use strict';
/* mtan in JavaScript: opens a model file and runs it, in a browser or in node. The arithmetic is mtan.wasm's; what is here moves
 * numbers in and out of its memory and turns the data's units into the model's, as the model file says.
 *
 *     const mtan = require('./mtan.js');                              // in a page, as a script: the global mtan
 *     const library = await mtan.load({ simd: bytes, plain: bytes }); // mtan.wasm, mtan-plain.wasm; one of them will do
 *     const model = await library.open(buffer);                       // a safetensors file of `mtan train`
 *     const events = { time: [0.5, 2, 7.25], channel: [0, 2, 0], value: [36.6, 118, 36.9] };
 *     const p = model.classify(events);                               // (C), or (times, C) for a model of classes per time
 *     const { mean, sd } = model.interpolate(events, [0, 1, 2, 3]);   // (times, channels) each
 *     const { time, reference, weight } = model.attention(events, 0); // weight: (reference, time)
 *
 * Events are three arrays of one length, typed or not, in any order. Times and values are in the data's units, channels are
 * numbers (model.channels has their names). Results are new arrays, row after row. Anything wrong is thrown as an Error with a
 * sentence; the model stays usable.
 *
 * The same events, name and samples give what `mtan predict` and `mtan interpolate --backend scalar` print, from both modules.
 * It does not train, fetch, or keep anything outside the model object: each has a memory of its own. */
(function (root) {
    const EVENT = 12, REAL = 4; /* bytes: time, channel, value; a float */
    const TEXT_MOST = 1 << 20; /* of a setting or a metadata value */
    const USUAL_SAMPLES = 20; /* of an interpolation, as the command has it */
    const LARGEST = 3.4028234663852886e38; /* of a float */
    const MISSING = -7; /* MTAN_ERR_MISSING */

    /* The smallest module that uses simd128: () { i8x16.popcnt(i8x16.splat(0)) } */
    const PROBE = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15,
        253, 98, 11]);

    /* ---- units: prep.h, in floats as there ---- */

    function numbers(text, n, otherwise) {
        if (text === undefined) return new Array(n).fill(otherwise);
        const words = { inf: Infinity, '-inf': -Infinity, nan: NaN };
        const list = text.trim().split(/ +/).map((word) => word in words ? words[word] : Number(word));
        if (list.length !== n) throw new Error(`the model file has ${list.length} numbers where ${n} are due`);
        return list;
    }

    function readUnits(text, channels) {
        const floats = (key, otherwise) => numbers(text(key), channels, otherwise).map(Math.fround);
        const units = {
            offset: floats('mtan.prep.offset', 0), scale: floats('mtan.prep.scale', 1),
            low: floats('mtan.prep.low', -Infinity), high: floats('mtan.prep.high', Infinity),
            missing: floats('mtan.prep.missing', NaN),
            time: numbers(text('mtan.time.scale'), 3, 1)[2] /* of training, validation and new records */
        };
        if (!(units.time > 0) || units.scale.some((s) => !(s < 0 || s > 0)))
            throw new Error('the model file has a scale of zero');
        return units;
    }

    const between = (x, low, high) => x < low ? low : x > high ? high : x;
    const modelTime = (u, t) => between(Math.fround(Math.fround(t) / Math.fround(u.time)), -LARGEST, LARGEST);

    function modelValue(u, c, x) {
        const clipped = between(Math.fround(x), u.low[c], u.high[c]);
        return between(Math.fround(Math.fround(clipped - u.offset[c]) / u.scale[c]), -LARGEST, LARGEST);
    }

    /* ---- a model ---- */

    function Model(exports) {
        this.wasm = exports;
        this.bounds = { events: 0, times: 0, samples: -1 };
    }

    Model.prototype = {
        /* Something failed: the library's sentence. */
        check(status) {
            if (status >= 0) return status;
            const bytes = new Uint8Array(this.wasm.memory.buffer), from = this.wasm.message(status);
            throw new Error(new TextDecoder().decode(bytes.slice(from, bytes.indexOf(0, from))));
        },

        take(bytes) {
            const at = this.wasm.take(bytes) >>> 0;
            if (at === 0) throw new Error('the memory that a page may have is used up');
            return at;
        },

        put(bytes) {
            const at = this.take(bytes.length);
            new Uint8Array(this.wasm.memory.buffer).set(bytes, at);
            return at;
        },

        reals(at, n) {
            return new Float32Array(this.wasm.memory.buffer, at, n).slice();
        },

        /* A setting ("enc_heads") or a metadata value of the file ("mtan.time.unit"); undefined: none. */
        text(key) {
            const name = this.put(new TextEncoder().encode(key + '\0'));
            try {
                for (let size = 256; ; size *= 16) {
                    const at = this.take(size), status = this.wasm.text(name, at, size);
                    const bytes = new Uint8Array(this.wasm.memory.buffer, at, size);
                    if (status === MISSING) return undefined;
                    if (status === 0) return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
                    if (size >= TEXT_MOST) this.check(status);
                }
            } finally {
                this.wasm.release(name);
            }
        },

        /* The events in the model's units, written to the arena; those of a missing code are left out. */
        putEvents(events) {
            const n = events.time.length, u = this.units, at = this.take(n * EVENT);
            const real = new Float32Array(this.wasm.memory.buffer, at, 3 * n);
            const whole = new Int32Array(this.wasm.memory.buffer, at, 3 * n);
            let kept = 0;
            for (let i = 0; i < n; i++) {
                const c = events.channel[i], known = Number.isInteger(c) && c >= 0 && c < this.settings.channels;
                if (!known) throw new Error(`channel ${c}: the model has channels 0 to ${this.settings.channels - 1}`);
                if (Math.fround(events.value[i]) === u.missing[c]) continue;
                real[3 * kept] = modelTime(u, events.time[i]);
                whole[3 * kept + 1] = c;
                real[3 * kept + 2] = modelValue(u, c, events.value[i]);
                kept++;
            }
            return { at, n: kept };
        },

        /* The predictor grows with the largest record seen. Growing takes back the arena behind the model. */
        fit(events, times, samples) {
            const b = this.bounds;
            if (events <= b.events && times <= b.times && samples === b.samples) return;
            const more = (n, had) => Math.max(16, n <= had ? had : n + (n >> 1));
            const next = { events: more(events, b.events), times: more(times, b.times), samples };
            this.bounds = { events: 0, times: 0, samples: -1 };
            this.check(this.wasm.fit(next.events, next.times, samples));
            this.bounds = next;
        },

        /* Puts a record and runs body(distinct times); what was taken is given back. */
        withRecord(events, at, options, samples, body) {
            const n = events.time.length;
            if (events.channel.length !== n || events.value.length !== n)
                throw new Error('time, channel and value must have the same length');
            this.fit(n, Math.max(n, at ? at.length : 0), samples);
            const floor = this.take(0);
            try {
                const list = this.putEvents(events), noise = options.noise || [];
                const bytes = (array) => new Uint8Array(Float32Array.from(array).buffer);
                const times = at ? this.put(bytes(Array.from(at, (t) => modelTime(this.units, t)))) : 0;
                const draws = noise.length ? this.put(bytes(noise)) : 0;
                const name = new TextEncoder().encode(options.name || '');
                this.wasm.record(list.at, list.n, times, at ? at.length : 0, draws, noise.length, this.put(name), name.length,
                    options.seed || 0);
                return body(this.check(this.wasm.times()));
            } finally {
                this.wasm.release(floor);
            }
        },

        samplesOf(options, usual) {
            return options.samples === undefined ? usual : options.samples;
        },

        /* Class probabilities. options: times (query times of a model of classes per time), samples, name, seed, noise. */
        classify(events, options = {}) {
            const s = this.settings, per_time = s.classify === 'time';
            if (s.classify === 'none') throw new Error('this model does not classify');
            return this.withRecord(events, per_time ? options.times : null, options, this.samplesOf(options, s.predict_samples),
                (distinct) => {
                    const n = (per_time ? (options.times ? options.times.length : distinct) : 1) * s.classes;
                    const at = this.take(n * REAL);
                    this.check(this.wasm.classify(at));
                    return this.reals(at, n);
                });
        },

        /* Mean and standard deviation over samples of the latent state at ascending times, (times, channels) as doubles.
         * options: samples (20; 0: the posterior's mean, sd 0), name (a record's draws depend on it), seed, noise. */
        interpolate(events, times, options = {}) {
            const D = this.settings.channels, n = times.length * D, u = this.units;
            if (this.settings.kind !== 'full') throw new Error('this model classifies and does not interpolate');
            return this.withRecord(events, times, options, this.samplesOf(options, USUAL_SAMPLES), () => {
                const mean = this.take(n * REAL), sd = this.take(n * REAL);
                this.check(this.wasm.interpolate(mean, sd));
                return {
                    mean: Float64Array.from(this.reals(mean, n), (x, i) => x * u.scale[i % D] + u.offset[i % D]),
                    sd: Float64Array.from(this.reals(sd, n), (x, i) => x * Math.abs(u.scale[i % D]))
                };
            });
        },

        /* The encoder's attention of one head (0) to one channel: weight (reference, time), rows sum to 1, or to 0 where the
         * channel was never seen. time: the distinct times of all events; reference: the times of the rows. */
        attention(events, channel, options = {}) {
            const s = this.settings, own = s.reference === 'observed';
            const at = own && s.kind === 'enc' ? options.times : null;
            return this.withRecord(events, at, options, Math.max(0, this.bounds.samples), (distinct) => {
                const u = this.units, time = distinctTimes(events, u);
                const reference = own ? Array.from(at || time) : Array.from(this.points, (t) => t * u.time);
                const n = reference.length * distinct, weight = this.take(n * REAL);
                this.check(this.wasm.attention(options.head || 0, channel, weight));
                return { time, reference, weight: this.reals(weight, n) };
            });
        }
    };

    /* Ascending, as the model counts them: two times that it cannot tell apart are one. */
    function distinctTimes(events, u) {
        const kept = Array.from(events.time).filter((t, i) => Math.fround(events.value[i]) !== u.missing[events.channel[i]]);
        kept.sort((a, b) => a - b);
        return kept.filter((t, i) => i === 0 || modelTime(u, t) !== modelTime(u, kept[i - 1]));
    }

    function names(text) {
        return text === undefined ? [] : JSON.parse(text);
    }

    /* K points that the model was given, or K even ones from 0 to 1, in the model's units. */
    function referencePoints(model) {
        const K = model.settings.ref_points, at = model.wasm.reference();
        return at ? model.reals(at, K) : Array.from({ length: K }, (none, k) => K > 1 ? k / (K - 1) : 0);
    }

    const SETTINGS = ['kind', 'classify', 'reference', 'channels', 'classes', 'enc_heads', 'ref_points', 'predict_samples'];

    function openModel(exports, file) {
        const model = new Model(exports), bytes = new Uint8Array(file);
        if (exports._initialize) exports._initialize();
        model.check(exports.open(model.put(bytes), bytes.length));
        model.settings = {};
        for (const key of SETTINGS) {
            const text = model.text(key);
            model.settings[key] = /^\d+$/.test(text) ? Number(text) : text;
        }
        model.units = readUnits((key) => model.text(key), model.settings.channels);
        model.unit = model.text('mtan.time.unit') || '';
        model.channels = names(model.text('mtan.names.channels'));
        model.classes = names(model.text('mtan.names.classes'));
        model.points = referencePoints(model);
        return model;
    }

    /* ---- the library ---- */

    /* Takes the bytes (ArrayBuffer or typed array) of one or both modules: simd where the engine can run it. */
    async function load(modules) {
        const simd = modules.simd && (!modules.plain || WebAssembly.validate(PROBE));
        const code = await WebAssembly.compile(simd ? modules.simd : modules.plain);
        return {
            simd: Boolean(simd),
            /* file: an ArrayBuffer or typed array with a safetensors model; it is copied. */
            open: async (file) => openModel((await WebAssembly.instantiate(code, {})).exports, file)
        };
    }

    const made = { load };
    if (typeof module === 'object' && module.exports) module.exports = made;
    else root.mtan = made;
})(typeof globalThis === 'object' ? globalThis : this);
