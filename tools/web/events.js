'use strict';
/* People's own data in JavaScript: reads a CSV of observations like tools/data/own.h, for a page or node.
 *
 *     const data = events.read(text);                      // { records: [{ name, rows }], channels, clock, observations, notes }
 *     const one = events.record(data, 0, model);           // { name, events, start, unknown, left }: events for mtan.js
 *
 * The first row names the columns, in any order: record,time,channel,value, or the other names of LAYOUTS. If it has no
 * columns for channel and value, each column except the record's and the time's is a channel: record,time,hr,bp,... A
 * time is a number or an ISO-8601 date, and a file has only one of these kinds; dates become hours since the record's
 * first observation. A row whose value is empty, NaN, NA or null is left out. The rows of a record may be scattered.
 * Errors are thrown as an Error with `line`, the physical line in which the row begins, or 0 if the error concerns no
 * line. */
(function (root) {
    const LAYOUTS = [['record', 'time', 'channel', 'value'], ['subject_id', 'time', 'code', 'numeric_value'],
        ['unique_id', 'ds', null, 'y'], ['time_series_id', 'timestamp', 'channel_id', 'value']];
    const LABELS = ['label', 'boolean_value']; /* columns of another file */
    const LARGEST = 3.4028234663852886e38; /* of a float */
    const TICKS = 1e7, TICKS_PER_HOUR = 36e9; /* of 100 ns: in a second, in an hour */
    const SHOWN = 40; /* characters of a field in a message */

    function fail(line, words) {
        throw Object.assign(new Error(words), { line });
    }

    const quote = (text) => '"' + (text.length > SHOWN ? text.slice(0, SHOWN) + '...' : text).replace(/[\x00-\x1f\x7f]/g, '?') + '"';
    const trim = (text) => text.replace(/^[ \t]+|[ \t]+$/g, '');

    /* ---- CSV: csv.h ---- */

    /* The fields of a row that has quotes. */
    function quotedFields(row, line) {
        const fields = [], field = /[ \t]*(?:"((?:[^"]|"")*)"[ \t]*|([^,]*))(,|$)/y;
        for (let more = true; more;) {
            const from = field.lastIndex, match = field.exec(row);
            if (!match) fail(line, 'text behind a closing quote');
            if (match[1] === undefined && match[2].includes('"'))
                fail(line, /^[ \t]*"/.test(row.slice(from)) ? 'text behind a closing quote'
                    : 'a quote inside a field that does not begin with one');
            fields.push(match[1] === undefined ? trim(match[2]) : match[1].replace(/""/g, '"'));
            more = match[3] === ',';
        }
        return fields;
    }

    const oddQuotes = (text) => text.includes('"') && text.split('"').length % 2 === 0;

    /* Calls take(fields, line) for each row; blank lines are skipped. */
    function eachRow(text, take) {
        const lines = text.replace(/^\ufeff/, '').split('\n');
        for (let i = 0; i < lines.length; i++) {
            const line = i + 1;
            let row = lines[i].replace(/\r$/, '');
            while (oddQuotes(row)) {
                if (++i === lines.length) fail(line, 'a quote that is never closed');
                row += '\n' + lines[i].replace(/\r$/, '');
            }
            if (row.includes('\r')) fail(line, 'a carriage return inside a line: lines end with LF or CRLF');
            if (row.includes('\0')) fail(line, 'a zero byte: this is no text');
            if (trim(row) !== '') take(row.includes('"') ? quotedFields(row, line) : row.split(',').map(trim), line);
        }
    }

    /* ---- fields: field.h ---- */

    const isMissing = (text) => /^(|nan|na|null)$/i.test(text);
    const isNumber = (text) => /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) && Number.isFinite(Number(text));
    const DATE = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:Z|([-+])(\d\d):?(\d\d)?)?)?$/;

    /* { time: whole seconds since 1970, ticks: further units of 100 ns }, since one double could not hold both; null:
     * not a date. */
    function date(text) {
        const match = DATE.exec(text);
        if (!match) return null;
        const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part || 0));
        const made = new Date(0);
        made.setUTCFullYear(year, month - 1, day);
        if (year < 1 || made.getUTCMonth() !== month - 1 || made.getUTCDate() !== day) return null;
        const [east, offHour, offMinute] = [match[8] === '-' ? -1 : 1, Number(match[9] || 0), Number(match[10] || 0)];
        if (hour > 23 || minute > 59 || second > 59 || offHour > 23 || offMinute > 59) return null;
        const clock = 3600 * hour + 60 * minute + second - east * 60 * (60 * offHour + offMinute);
        return { time: made.getTime() / 1000 + clock, ticks: Number((match[7] || '').padEnd(7, '0').slice(0, 7)) };
    }

    /* ---- a file ---- */

    /* The columns of the record, the time and the channels in a wide file; null: it is not a wide file. */
    function wideColumns(header, names, line) {
        const find = (role) => names.findIndex((name) => LAYOUTS.some((list) => list[role] === name));
        const [record, time] = [find(0), find(1)];
        const isLong = LAYOUTS.some((list) => list[2] && (names.includes(list[2]) || names.includes(list[3])));
        if (record < 0 || time < 0 || header.length < 3 || isLong) return null;
        const cells = header.map((channel, at) => ({ channel, at })).filter(({ at }) => at !== record && at !== time);
        cells.forEach(({ channel, at }) => {
            const fault = channel === '' ? 'has no name: it would be the channel\'s'
                : LABELS.includes(names[at]) ? 'is no channel: labels have a file of their own'
                    : header.indexOf(channel) !== at || names[at] === names[record] || names[at] === names[time] ? 'is there twice' : '';
            if (fault) fail(line, `column ${at + 1}, ${quote(channel)}, ${fault}`);
        });
        return { rows: (fields) => cells.filter(({ at }) => !isMissing(fields[at]))
            .map(({ channel, at }) => [fields[record], fields[time], channel, fields[at]]), record, statics: false, count: header.length };
    }

    function columnsOf(header, line) {
        const names = header.map((name) => name.toLowerCase());
        const layout = LAYOUTS.find((list) => list.every((name) => name === null || names.includes(name)));
        const wide = layout ? null : wideColumns(header, names, line);
        if (wide) return wide;
        if (!layout && header.some((name) => /[\t;]/.test(name)))
            fail(line, `the columns are separated by ${header.some((name) => name.includes(';')) ? 'semicolons' : 'tabs'}: ` +
                'this reader takes commas alone');
        if (!layout)
            fail(line, `no column "${LAYOUTS[0].find((name) => !names.includes(name))}": the first line has to name the columns ` +
                LAYOUTS.map((list) => list.filter(Boolean).join()).join(' or ') + ', or record,time and one column per channel');
        const twice = layout.find((name) => name !== null && names.indexOf(name) !== names.lastIndexOf(name));
        if (twice) fail(line, `two columns are called "${twice}"`);
        const at = layout.map((name) => names.indexOf(name));
        return { rows: (fields) => [at.map((i) => i < 0 ? 'y' : fields[i])], record: at[0], statics: layout[3] === 'numeric_value',
            count: header.length };
    }

    function readTime(data, text, line) {
        const dated = /^\d{4}-/.test(text), clock = dated ? 'dates' : 'numbers';
        const found = dated ? date(text) : isNumber(text) ? { time: Number(text), ticks: 0 } : null;
        if (!found) fail(line, `${quote(text)} is no time: a number, or a date as 2024-05-31 or 2024-05-31T23:59:00Z`);
        if (data.clock && data.clock !== clock)
            fail(line, `${quote(text)} is a ${dated ? 'date' : 'number'}, but the times before are ${data.clock}`);
        data.clock = clock;
        return found;
    }

    function addRecord(data, name, line) {
        if (name === '') fail(line, 'the record\'s name is empty');
        if (!data.byName.has(name)) data.byName.set(name, data.records.length), data.records.push({ name, rows: [] });
    }

    /* Adds an observation, unless it has no value. Rows without a time, which only MEDS allows, stand at time 0. */
    function addRow(data, columns, [name, time, channel, value], line) {
        if (channel === '') fail(line, 'the channel\'s name is empty');
        if (isMissing(value)) return void data.missing++;
        if (!isNumber(value) || Math.abs(Number(value)) > LARGEST)
            fail(line, `${quote(value)} is no value: a number that a float can hold, or nothing`);
        const at = columns.statics && isMissing(time) ? { time: NaN, ticks: 0 } : readTime(data, time, line);
        if (!data.channelNumber.has(channel)) data.channelNumber.set(channel, data.channels.length), data.channels.push(channel);
        data.records[data.byName.get(name)].rows.push({ ...at, channel: data.channelNumber.get(channel), value: Number(value), line });
        data.observations++;
    }

    function read(text) {
        const data = { records: [], channels: [], clock: '', observations: 0, missing: 0, byName: new Map(), channelNumber: new Map() };
        let columns = null;
        eachRow(text, (fields, line) => {
            if (!columns) return void (columns = columnsOf(fields, line));
            if (fields.length !== columns.count)
                fail(line, `${fields.length} field${fields.length === 1 ? '' : 's'}, but the header has ${columns.count}`);
            addRecord(data, fields[columns.record], line);
            columns.rows(fields).forEach((row) => addRow(data, columns, row, line));
        });
        if (!columns) fail(0, 'empty, without so much as a header');
        if (data.records.length === 0) fail(0, 'no row behind the header');
        return data;
    }

    /* ---- a record ---- */

    /* As in the command: dates are hours, numbers are not. */
    function checkUnit(data, model) {
        const wants = model.unit === 'hours' && model.fromFirst ? 'dates' : 'numbers';
        if (!data.clock || !model.fitted || data.clock === wants || (data.clock === 'dates' && model.unit === 'hours')) return;
        fail(0, wants === 'dates' ? 'its times are numbers, the model was trained on dates'
            : `its times are dates, the model was trained on ${model.unit || 'numbers without a unit'}`);
    }

    /* Sorts by time, and counts times as the model does. */
    function count(data, rows, model) {
        const dated = data.clock === 'dates', timed = rows.filter((row) => !Number.isNaN(row.time));
        const least = (a, b) => a.time - b.time || a.ticks - b.ticks || a.line - b.line;
        const first = timed.reduce((best, row) => least(row, best) < 0 ? row : best, timed[0]) || { time: 0, ticks: 0 };
        const zero = dated || model.fromFirst ? first : { time: 0, ticks: 0 };
        const placed = rows.map((row) => Number.isNaN(row.time) ? { ...row, time: zero.time, ticks: zero.ticks } : row).sort(least);
        const hour = (row) => dated ? ((row.time - zero.time) * TICKS + row.ticks - zero.ticks) / TICKS_PER_HOUR : row.time - zero.time;
        return { first, rows: placed.map((row) => ({ ...row, raw: row.time, time: hour(row) })) };
    }

    /* The record's observations of the model's channels. start: the date from which hours are counted; unknown: names
     * of channels that the model does not have; left: the number of rows left out for that. */
    function record(data, index, model) {
        checkUnit(data, model);
        const { name, rows } = data.records[index], number = data.channels.map((channel) => model.channelNamed(channel));
        const { first, rows: kept } = count(data, rows.filter((row) => number[row.channel] >= 0), model);
        const lost = rows.filter((row) => number[row.channel] < 0);
        kept.forEach((row, i) => {
            const before = kept[i - 1];
            if (i > 0 && data.clock === 'numbers' && !model.fromFirst && row.time > before.time &&
                Math.fround(row.time) === Math.fround(before.time))
                fail(Math.max(row.line, before.line), `the times ${before.raw} and ${row.raw} of record ${quote(name)} are one in float`);
        });
        return {
            name, left: lost.length, unknown: Array.from(new Set(lost.map((row) => data.channels[row.channel]))),
            start: data.clock === 'dates' && kept.length ? new Date(1000 * first.time).toISOString().replace('.000Z', 'Z') : '',
            events: { time: kept.map((row) => row.time), channel: kept.map((row) => number[row.channel]),
                value: kept.map((row) => row.value) }
        };
    }

    const made = { read, record };
    if (typeof module === 'object' && module.exports) module.exports = made;
    else root.events = made;
})(typeof globalThis === 'object' ? globalThis : this);
