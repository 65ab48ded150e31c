'use strict';
/* mtan in JavaScript: opens a model file, float or int8, and runs it, in a browser or in node. mtan.wasm does
 * the preparation and the arithmetic, with the functions of tools/mtan/flat/flat.h; this script moves numbers in and out of
 * its memory.
 *
 *     const mtan = require('./mtan.js');                              // in a page, as a script: the global mtan
 *     const library = await mtan.load({ simd: bytes, plain: bytes }); // mtan.wasm, mtan-plain.wasm; one is enough
 *     const model = await library.open(buffer);                       // a safetensors file of `mtan train` or `mtan quantize`
 *     const pulse = model.channelNamed('pulse');                      // -1: no such channel
 *     const events = { time: [0.5, 2, 7.25], channel: [0, pulse, 0], value: [36.6, 118, 36.9] };
 *     const p = model.classify(events);                               // (C), or (times, C) for a model of classes per time;
 *                                                                     // for a number itself, or low, median, high
 *     const { mean, sd } = model.interpolate(events, [0, 1, 2, 3]);   // (times, channels) each
 *     const { time, reference, weight } = model.attention(events, 0); // weight: (reference, time)
 *     const { farValues } = model.prepare(events);                    // see prepare()
 *     const stream = model.stream();                                  // a record whose observations arrive one by one
 *     stream.push(8, pulse, 121).classify();                          // also interpolate(time), reset()
 *
 * Events are three arrays of equal length, typed or not, in any order, in the data's units; channels are indices. Query times
 * and times of results are on the clock of the events. model.channels and model.classes are the names, model.positive is the
 * class whose probability is reported (-1: none), and model.unit the unit of times. model.ranges[c] = [least, most] and
 * model.span are the ranges of a channel and of times in training, or null. model.fromFirst: times count from the record's
 * first; model.fitted: the file has preprocessing; model.int8: its matrices are integers. Results are new arrays, row-major.
 * Errors are thrown as an Error with a message; the model stays usable.
 *
 * For the same events, name and samples, both modules give the output of `mtan predict` and `mtan interpolate --backend scalar`.
 * The module does not train, fetch, or keep anything outside the model object: each model has its own memory. */
(function (root) {
    const DOUBLE = 8; /* bytes */
    const TEXT_MOST = 1 << 20; /* of a setting */
    const USUAL_SAMPLES = 20; /* of an interpolation, as curve_samples.h has it */

    /* The smallest module that uses simd128: () { i8x16.popcnt(i8x16.splat(0)) } */
    const PROBE = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15,
        253, 98, 11]);

    /* ---- a model ---- */

    function Model(exports) {
        this.wasm = exports;
        this.bounds = { events: 0, times: 0, samples: -1 };
        this.origin = 0; /* origin of the last record's times */
    }

    Model.prototype = {
        /* The zero-terminated text at an address, undefined at null. */
        string(at) {
            const bytes = new Uint8Array(this.wasm.memory.buffer);
            return at ? new TextDecoder().decode(bytes.slice(at >>> 0, bytes.indexOf(0, at >>> 0))) : undefined;
        },

        /* Throws the module's message if the result is not 0. */
        check(status) {
            if (status !== 0) throw new Error(this.string(this.wasm.message()));
        },

        /* Throws the module's message if the count is -1. */
        count(n) {
            this.check(n < 0 ? 1 : 0);
            return n;
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

        /* Copies numbers of that type into the module's memory. */
        putList(Type, list) {
            return this.put(new Uint8Array(Type.from(list).buffer));
        },

        doubles(at, n) {
            return new Float64Array(this.wasm.memory.buffer, at, n).slice();
        },

        /* Runs body, then releases everything that it took. */
        giveBack(body) {
            const floor = this.take(0);
            try {
                return body();
            } finally {
                this.wasm.release(floor);
            }
        },

        putText(text) {
            return this.put(new TextEncoder().encode(text + '\0'));
        },

        /* A setting of the model: "enc_heads". */
        setting(key) {
            return this.giveBack(() => {
                const name = this.putText(key);
                for (let size = 256; ; size *= 16) {
                    const at = this.take(size), status = this.wasm.text(name, at, size);
                    if (status === 0) return this.string(at);
                    if (size >= TEXT_MOST) this.check(status);
                }
            });
        },

        /* The channel of that name, or -1. */
        channelNamed(name) {
            return this.giveBack(() => this.wasm.channel_named(this.putText(name)));
        },

        /* Is it outside of the training range by more than the width of that range? The usual reason is a wrong unit.
         * Times are on the last record's clock. */
        isFarValue(channel, value) { return this.wasm.far_value(channel, value) !== 0; },
        isFarTime(time) { return this.wasm.far_time(time - this.origin) !== 0; },

        /* Grows the predictor to the largest record seen. Growing releases the arena after the model. */
        fit(events, times, samples) {
            const b = this.bounds;
            if (events <= b.events && times <= b.times && samples === b.samples) return;
            const more = (n, had) => Math.max(16, n <= had ? had : n + (n >> 1));
            const next = { events: more(events, b.events), times: more(times, b.times), samples };
            this.bounds = { events: 0, times: 0, samples: -1 };
            this.check(this.wasm.room(next.events, next.times, samples));
            this.bounds = next;
        },

        checkChannel(c) {
            const D = this.settings.channels;
            if (!(Number.isInteger(c) && c >= 0 && c < D)) throw new Error(`channel ${c}: the model has channels 0 to ${D - 1}`);
        },

        /* The origin of these events' clock. Events with NaN as value are ignored. */
        originOf(events) {
            if (!this.fromFirst) return 0;
            return Array.from(events.time).reduce((first, t, i) => t < first && !Number.isNaN(events.value[i]) ? t : first, Infinity);
        },

        /* Copies the observations of a record unchanged. */
        putRecord(events, name) {
            const n = events.time.length, D = this.settings.channels;
            if (events.channel.length !== n || events.value.length !== n)
                throw new Error('time, channel and value must have the same length');
            for (const c of events.channel) this.checkChannel(c);
            this.origin = this.originOf(events);
            this.check(this.wasm.record(this.putText(name), n, D, this.putText(this.channels.join('\0')),
                this.putList(Float64Array, events.time), this.putList(Int32Array, events.channel), this.putList(Float64Array, events.value)));
        },

        /* The preparation of the observations: the number of events that the model sees, of codes of missing values
         * that were left out, of repeats that were averaged, of channels that were filled, of values and times far from
         * training; and the origin of times. */
        prepare(events) {
            return this.giveBack(() => {
                this.putRecord(events, '');
                const counts = this.take(6 * 4), origin = this.take(DOUBLE);
                this.check(this.wasm.found(counts, origin));
                const n = new Int32Array(this.wasm.memory.buffer, counts, 6);
                return { events: n[0], missing: n[1], repeats: n[2], filled: n[3], farValues: n[4], farTimes: n[5],
                    origin: this.doubles(origin, 1)[0] };
            });
        },

        /* Copies a record, query times and noise, and calls body(number of distinct times). */
        withRecord(events, times, options, samples, body) {
            const most = events.time.length + this.settings.channels;
            this.fit(most, most + (times ? times.length : 0), samples);
            return this.giveBack(() => {
                this.putRecord(events, options.name || '');
                if (times) this.wasm.queries(times.length, this.putList(Float64Array, Array.from(times, (t) => t - this.origin)));
                if (options.noise) this.wasm.noise(options.noise.length, this.putList(Float32Array, options.noise));
                return body(this.count(this.wasm.times(0)));
            });
        },

        /* The distinct times of the record, as in its events: two times that the model cannot distinguish count as
         * one. */
        distinctTimes(events, distinct) {
            const at = this.take(distinct * DOUBLE), all = this.take(events.time.length * DOUBLE + this.settings.channels * DOUBLE);
            this.wasm.times(at);
            const n = this.wasm.event_times(all), model = Array.from(new Set(this.doubles(all, n))), raw = new Map();
            for (const t of events.time) {
                const key = this.wasm.model_time(t - this.origin);
                if (!(raw.get(key) <= t)) raw.set(key, t);
            }
            return Array.from(this.doubles(at, distinct), (t, i) => raw.has(model[i]) ? raw.get(model[i]) : t + this.origin);
        },

        samplesOf(options, usual) {
            return options.samples === undefined ? usual : options.samples;
        },

        /* Probabilities, or numbers in the data's unit. options: times (query times of a model of classes per time), samples, name, seed, noise. */
        classify(events, options = {}) {
            const s = this.settings, per_time = s.classify === 'time';
            if (s.classify === 'none') throw new Error('this model does not classify');
            return this.withRecord(events, per_time ? options.times : null, options, this.samplesOf(options, s.predict_samples),
                (distinct) => {
                    const n = (per_time ? (options.times ? options.times.length : distinct) : 1) * this.outputs;
                    const at = this.take(n * DOUBLE);
                    this.check(this.wasm.predict(-1, options.seed || 0, at));
                    return this.doubles(at, n);
                });
        },

        /* Mean and standard deviation over samples of the latent state at ascending times, (times, channels) as doubles.
         * options: samples (default: 20, or the model's own number if its variance is learned; 0: the posterior's mean), name (a record's draws depend on it), seed, noise. */
        interpolate(events, times, options = {}) {
            const s = this.settings, n = times.length * s.channels;
            if (s.kind !== 'full') throw new Error('this model classifies and does not interpolate');
            return this.withRecord(events, times, options, this.samplesOf(options, s.variance === 'learned' ? s.predict_samples : USUAL_SAMPLES), () => {
                const mean = this.take(n * DOUBLE), sd = this.take(n * DOUBLE);
                this.check(this.wasm.interpolate(-1, options.seed || 0, mean, sd));
                return { mean: this.doubles(mean, n), sd: this.doubles(sd, n) };
            });
        },

        /* The attention of one encoder head (0) to one channel: weight (reference, time), whose rows sum to 1, or to 0
         * if the channel was never observed. time: the distinct times of all events; reference: the times of the
         * rows. */
        attention(events, channel, options = {}) {
            const s = this.settings, own = s.reference === 'observed';
            const at = own && s.kind === 'enc' ? options.times : null;
            return this.withRecord(events, at, options, Math.max(0, this.bounds.samples), (distinct) => {
                const time = this.distinctTimes(events, distinct), K = own ? (at || time).length : s.ref_points;
                const weight = this.take(K * distinct * DOUBLE), points = this.take(K * DOUBLE);
                this.check(this.wasm.attention(options.head || 0, channel, weight, points));
                const reference = own ? Array.from(at || time) : Array.from(this.doubles(points, K), (t) => t + this.origin);
                return { time, reference, weight: this.doubles(weight, K * distinct) };
            });
        },

        /* A record whose observations arrive one by one, in any order, in constant memory. There may be any number of
         * streams, and they last as long as the model. options: samples, name, seed. */
        stream(options = {}) {
            this.wasm.drop(); /* this also drops the predictor */
            this.bounds = { events: 0, times: 0, samples: -1 };
            const at = this.wasm.stream_new(this.putText(options.name || ''), this.samplesOf(options, -1), options.seed || 0) >>> 0;
            this.check(at === 0 ? 1 : 0);
            return new Stream(this, at);
        }
    };

    /* ---- a stream of the model ---- */

    function Stream(model, at) {
        this.model = model;
        this.at = at;
    }

    Stream.prototype = {
        /* Adds an observation. Times are on one clock, which starts at the first time if the model counts from there;
         * NaN is no value. */
        push(time, channel, value) {
            const m = this.model;
            m.checkChannel(channel);
            m.giveBack(() => m.check(m.wasm.stream_push(this.at, time, m.putText(m.channels[channel]), value)));
            return this;
        },

        /* Like the model's own; time: for a model of classes per time. */
        classify(time = NaN) {
            const m = this.model;
            return m.giveBack(() => {
                const out = m.take(m.outputs * DOUBLE);
                m.check(m.wasm.stream_predict(this.at, time, out));
                return m.doubles(out, m.outputs);
            });
        },

        /* (channels) each. */
        interpolate(time) {
            const m = this.model, D = m.settings.channels;
            return m.giveBack(() => {
                const mean = m.take(D * DOUBLE), sd = m.take(D * DOUBLE);
                m.check(m.wasm.stream_interpolate(this.at, time, mean, sd));
                return { mean: m.doubles(mean, D), sd: m.doubles(sd, D) };
            });
        },

        /* Forgets everything. */
        reset() { this.model.check(this.model.wasm.stream_reset(this.at)); }
    };

    /* ---- contents of the file ---- */

    /* n names; a model without names calls its channels or classes 0, 1, 2, ... */
    const names = (model, name, n) => Array.from({ length: n }, (none, i) => model.string(name(i)) || String(i));

    /* [least, most], or null if not known. */
    const range = (model, channel) => model.giveBack(() => {
        const ends = model.take(2 * DOUBLE);
        return model.wasm.range(channel, ends) === 0 ? Array.from(model.doubles(ends, 2)) : null;
    });

    const SETTINGS = ['kind', 'classify', 'encoder', 'reference', 'channels', 'classes', 'enc_heads', 'ref_points', 'predict_samples', 'task', 'variance'];

    function openModel(exports, file) {
        const model = new Model(exports), bytes = new Uint8Array(file);
        if (exports._initialize) exports._initialize();
        model.check(exports.open(model.put(bytes), bytes.length));
        model.settings = {};
        for (const key of SETTINGS) {
            const text = model.setting(key);
            model.settings[key] = /^\d+$/.test(text) ? Number(text) : text;
        }
        const { channels, classes } = model.settings;
        model.channels = names(model, exports.channel, channels);
        model.classes = names(model, exports.class, classes);
        model.outputs = exports.outputs();
        model.positive = exports.positive();
        model.unit = model.string(exports.unit());
        model.fromFirst = exports.from_first() !== 0;
        model.fitted = exports.fitted() !== 0;
        model.int8 = exports.is_int8() !== 0;
        model.ranges = model.channels.map((name, c) => range(model, c));
        model.span = range(model, -1);
        return model;
    }

    /* ---- the library ---- */

    /* Takes the bytes (ArrayBuffer or typed array) of one or both modules, and uses simd if the engine can run it. */
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
