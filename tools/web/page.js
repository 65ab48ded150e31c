'use strict';
/* Makes one file of the page: index.html with its scripts, modules and model inside. It must then open from disk with no network.
 *
 *     node tools/web/page.js build/wasm       reads the modules and the model there, writes index.html there
 */
const fs = require('fs'), path = require('path');
const build = process.argv[2] || 'build/wasm';

function script(name) {
    const text = fs.readFileSync(path.join(__dirname, name), 'utf8');
    if (/<\/script/i.test(text)) throw new Error(`${name}: would end its own element`);
    return `<script>\n${text}</script>`;
}

function binary(id, name) {
    return `<script type="text/plain" id="${id}">${fs.readFileSync(path.join(build, name)).toString('base64')}</script>`;
}

const page = fs.readFileSync(path.join(__dirname, 'index.html'), 'utf8')
    .replace(/<script src="([a-z_]+\.js)"><\/script>/g, (all, name) => script(name))
    .replace(/<script type="text\/plain" id="([a-z]+)" data-file="([a-z.-]+)"><\/script>/g, (all, id, name) => binary(id, name));
if (/<script[^>]+(src|data-file)=/.test(page)) throw new Error('index.html: something is still outside');
fs.writeFileSync(path.join(build, 'index.html'), page);
console.log(`${path.join(build, 'index.html')}: ${page.length} bytes`);
