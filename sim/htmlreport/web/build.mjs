// Builds ../page.html, the page that the package embeds: style, fonts and
// script inside, and a policy that allows these by their hashes and nothing
// else. The same sources give the same bytes; "node build.mjs --check" compares.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import subsetFont from 'subset-font';

const here = new URL('.', import.meta.url);
const read = path => readFileSync(new URL(path, here));
const range = (from, to) => String.fromCodePoint(...Array.from({ length: to - from + 1 }, (_, i) => from + i));
const latin = range(0x20, 0x7e) + range(0xa0, 0xff) + '–—‘’“”…•←→↑↓−×≤≥✓⟨⟩';

const fonts = [
  {
    family: 'Report', weight: '400 650', letters: latin,
    file: 'node_modules/@fontsource-variable/inter/files/inter-latin-opsz-normal.woff2',
    axes: { wght: { min: 400, max: 650 }, opsz: { min: 14, max: 32 } },
  },
  {
    family: 'Report Mono', weight: '400', letters: range(0x20, 0x7e) + '…',
    file: 'node_modules/@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2',
    axes: { wght: 400 },
  },
];

async function face(font) {
  const subset = await subsetFont(read(font.file), font.letters, { targetFormat: 'woff2', variationAxes: font.axes });
  return `@font-face{font-family:"${font.family}";font-weight:${font.weight};font-display:block;` +
    `src:url(data:font/woff2;base64,${Buffer.from(subset).toString('base64')}) format("woff2")}`;
}

async function bundle(entry) {
  const result = await build({
    entryPoints: [entry], absWorkingDir: here.pathname, bundle: true, minify: true, write: false, metafile: true,
    format: 'iife', target: 'es2022', charset: 'utf8', legalComments: 'none',
  });
  return { text: result.outputFiles[0].text.trimEnd(), inputs: Object.keys(result.metafile.inputs) };
}

// licences are the texts of the packages that the page contains, each once.
function licences(inputs) {
  const packages = new Set([...inputs, ...fonts.map(f => f.file)]
    .map(path => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean));
  const texts = new Map();
  for (const name of [...packages].sort()) {
    const { version } = JSON.parse(read(`node_modules/${name}/package.json`));
    const file = ['LICENSE', 'LICENSE.md', 'LICENSE.txt'].map(f => `node_modules/${name}/${f}`).find(f => existsSync(new URL(f, here)));
    const text = read(file).toString().replaceAll('\r\n', '\n').trim();
    texts.set(text, [...(texts.get(text) || []), `${name} ${version}`]);
  }
  return [...texts].map(([text, names]) => `${names.join(', ')}\n\n${text}`).join('\n\n\n');
}

const escape = text => text.replace(/[&<>]/g, c => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);
const hash = text => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const script = await bundle('src/main.js');
const js = script.text.replaceAll('</script', '<\\/script');
const css = (await Promise.all(fonts.map(face))).join('') + (await bundle('src/style.css')).text;
const parts = { STYLE: css, SCRIPT: js, STYLE_HASH: hash(css), SCRIPT_HASH: hash(js), LICENCES: escape(licences(script.inputs)) };
const page = read('src/page.html').toString().replace(/%(\w+)%/g, (whole, part) => parts[part] ?? whole);

const target = new URL('../page.html', here);
if (process.argv.includes('--check')) {
  if (!existsSync(target) || readFileSync(target, 'utf8') !== page) {
    console.error('sim/htmlreport/page.html is not what its sources make: run make report-page');
    process.exit(1);
  }
} else {
  writeFileSync(target, page);
}
