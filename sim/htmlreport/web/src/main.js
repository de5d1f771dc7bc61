import { $, h, lines, name, svg, visible } from './dom.js';
import { describer } from './describe.js';
import { duration, exact, number, plural, span, when } from './format.js';
import { MARKS, markIcon } from './marks.js';
import { read } from './model.js';
import { showMultiples } from './multiples.js';
import { Panel, chain } from './panel.js';
import { listenToSearch } from './search.js';
import { bar, shares, showTable } from './table.js';
import { theme } from './theme.js';
import { Timeline } from './timeline.js';

const run = read(JSON.parse($('data').textContent));
const link = new URLSearchParams(location.hash.slice(1));
// MOST_TOLD is how many lines of what a fault led to stand in its story.
const MOST_TOLD = 15;

const sum = (list, of) => list.reduce((total, x) => total + of(x), 0);

function showHead() {
  document.title = `${run.verdict.word || 'What if'}: ${visible(run.title)} · simulate`;
  $('title').append(name(run.title));
  if (!run.file.endsWith(run.title)) $('file').append(visible(run.file));
  const sign = run.verdict.passed
    ? [svg('circle', { cx: 16, cy: 16, r: 15 }), svg('path', { d: 'M9.5 16.5l4.4 4.4 8.6-9.4' })]
    : [svg('path', { d: 'M16 2.2 30.4 28H1.6Z', 'stroke-linejoin': 'round' }), svg('path', { d: 'M16 12v8M16 23.6v.4' })];
  $('verdict').append(h('span', { class: `sign ${run.verdict.passed ? 'ok' : 'bad'}` }, svg('svg', { viewBox: '0 0 32 32', 'aria-hidden': 'true' }, sign)),
    h('span', {}, h('em', {}, run.verdict.word && `${run.verdict.word}. `), visible(run.verdict.says)));
  $('lede').append(...run.verdict.lede.map(part => (part.look ? h('a', { class: 'look', href: '#timeline', onclick: () => goTo(find(part.look)) }, visible(part.text)) : visible(part.text))).flatMap(part => [part, ' ']));
  const facts = run.recording
    ? [['Recorded', duration(run.simulated)], ['From', span(run.start, run.start)], ['Records', number(run.events)]]
    : [['Seed', run.seed], ['Digest', h('code', {}, run.digest)], ['Simulated', duration(run.simulated)], ['From', span(run.start, run.start)], ['Events', number(run.events)], ['Processes', number(run.processes.filter(p => p.runs).length)]];
  $('facts').append(...facts.map(([what, is]) => h('div', {}, h('dt', {}, what), h('dd', {}, is))));
}

function showFigures() {
  const s = run.schedules, total = key => sum(s, x => x[key]), due = total('due');
  const parts = shares({ onTime: total('onTime'), early: total('early'), late: total('late'), firedAgain: total('firedAgain'), skipped: total('skipped') });
  const longest = s.reduce((most, x) => (x.longest > most.longest ? x : most), { longest: 0, name: '' });
  const reasons = Object.entries(run.reasons).filter(([, n]) => n), queues = run.queues.filter(q => !q.outbox), dead = sum(queues, q => q.dead);
  const given = sum(run.outboxes, o => o.dead);
  const checks = sum(run.checks, c => c.count), checked = run.checks.filter(c => c.count).length;
  const card = (title, value, ...below) => h('div', { class: 'card' }, h('h3', {}, title), h('p', { class: 'value' }, value), h('div', { class: 'below' }, below));
  const say = { cap: 'beyond the cap', policy: 'by policy', pause: 'while paused', hours: 'outside active hours', overlap: 'over a live job', missed: 'too late for a run-once' };
  const cards = [
    card('Boundaries due', number(due), bar(parts), h('span', { class: 'parts' }, parts.filter(p => p.count).map(p => h('span', {}, markIcon(p.kind, 11), `${number(p.count)} ${p.say}`)))),
    card('Longest wait', duration(longest.longest), longest.name && total('late') + total('firedAgain') ? name(longest.name) : 'none late'),
    card('Skipped', number(total('skipped')), reasons.map(([why, n]) => `${number(n)} ${say[why]}`).join(', ') || 'none'),
    card('Jobs done', number(sum(queues, q => q.done)), `${plural(sum(queues, q => q.retried), 'failed try', 'failed tries')}, `, dead ? h('b', { class: 'is-bad' }, `${number(dead)} dead`) : 'none dead', `; most waiting ${number(run.deepest)}`),
    run.outboxes.length ? card('Delivered', number(sum(run.outboxes, o => o.delivered)), `${plural(sum(run.outboxes, o => o.retried), 'failed try', 'failed tries')}, `, given ? h('b', { class: 'is-bad' }, `${number(given)} given up`) : 'none given up') : '',
    run.recording ? '' : card('Leases', number(sum(run.processes, p => p.leases.length)), run.leading),
    card('Broken rules', h('span', { class: run.failures.length ? 'is-bad' : null }, number(run.failures.length)), `${number(checks)} checks of ${plural(checked, 'invariant')}`),
  ].filter(Boolean);
  $('figures').style.setProperty('--cards', cards.length - 1);
  $('figures').append(...cards);
}

function showProblems() {
  const most = 5, shrunk = showShrunk();
  const problems = run.failures.slice(0, most).map((f, i) => problem(f, i === 0 ? shrunk : null));
  if (run.failures.length > most) problems.push(h('p', { class: 'note' }, `and ${number(run.failures.length - most)} more; all are on the timeline`));
  if (!run.failures.length && shrunk) problems.push(h('article', { class: 'kept' }, shrunk));
  if (run.shrink) problems.push(h('p', { class: 'note' }, 'The least scenario in which this happens: ', command(run.shrink)));
  if (run.unmet.length) problems.push(h('article', { class: 'problem' }, h('header', {}, h('div', {}, h('h2', {}, 'Not as expected'))), h('ul', {}, run.unmet.map(text => h('li', {}, visible(text))))));
  $('problems').append(...problems);
  $('problems').hidden = !problems.length;
}

// problem is a rule that was broken: what it says, what contradicts it and what
// led to it, beside the least scenario in which it happens.
function problem(f, shrunk) {
  const { causes } = describe({ type: 'failure', failure: f }), led = causes.length > 1;
  const side = (line, i) => h('li', {}, h('h3', {}, ['First', 'Then', 'And yet'][i] || 'Then'), h('time', { class: 'number' }, exact(run.at(line.t))), visible(line.text), rule(line));
  return h('article', { class: 'problem' },
    h('header', {}, markIcon('violation', 20), h('div', {}, h('h2', {}, `This did not hold: ${f.says || f.invariant}.`), h('p', {}, `Check ${f.invariant}${f.schedule ? ', of ' : ''}`, f.schedule && name(f.schedule))),
      h('button', { class: 'button', type: 'button', onclick: () => goTo({ type: 'failure', failure: f, key: f.key }) }, 'Show on the timeline')),
    h('p', { class: 'what' }, `${when(run.at(f.t))}: ${visible(f.detail)}`),
    h('div', { class: shrunk ? 'evidence beside' : 'evidence' }, h('div', {},
      f.sides.length ? h('ol', { class: 'sides' }, f.sides.map(side)) : null,
      led ? [h('h3', {}, 'What led to it'), chain(run, causes.slice(0, -1), false)] : null), shrunk));
}

function showShrunk() {
  const { shrunk } = run;
  if (!shrunk) return null;
  return h('div', {}, h('h3', {}, run.failures.length || run.unmet.length ? 'The least scenario in which it happens' : 'The least scenario that comes to it'), shrunk.says ? h('p', {}, visible(shrunk.says)) : null,
    h('pre', { tabindex: 0 }, h('code', {}, lines(shrunk.text))), h('ul', { class: 'commands' }, shrunk.commands.map(text => h('li', {}, command(text)))));
}

const rule = line => (line.rule ? [' ', h('span', { class: 'rule' }, line.rule)] : null);

function showAgainst() {
  const { calm, whatIf, differences, why } = run.against;
  $('calm').hidden = $('calm-link').hidden = run.recording;
  const [first, second] = [calm ? 'Calm run' : 'As it is', whatIf ? 'What if' : 'This run'];
  $('calm-title').textContent = $('calm-link').textContent = calm ? 'Against the calm run' : 'Against the run as it is';
  $('compared').textContent = calm ? 'The calm run is the same scenario without its faults.' : 'The same scenario without the faults that were added.';
  const more = d => (d.second > d.first ? '+' : '−') + number(Math.abs(d.second - d.first));
  const row = d => h('tr', {}, h('th', { scope: 'row' }, d.what, d.by ? h('small', {}, ` by up to ${duration(d.by)}`) : null),
    h('td', { class: 'number' }, number(d.first)), h('td', { class: 'number' }, number(d.second)), h('td', { class: 'number difference' }, d.first === d.second ? h('span', { class: 'zero' }, 'same') : more(d)));
  const table = (caption, bodies) => h('table', { class: 'plain' }, h('caption', { class: 'unseen' }, caption),
    h('thead', {}, h('tr', {}, h('td', {}), [first, second, 'Difference'].map(t => h('th', { scope: 'col' }, t)))), bodies);
  const names = [...new Set(differences.map(d => d.schedule).filter(Boolean))], total = differences.filter(d => !d.schedule);
  if (total.length) $('differences').append(table('All schedules', h('tbody', {}, total.map(row))));
  else $('differences').append(h('p', { class: 'muted' }, run.faults.length ? 'Nothing came to anything else.' : 'This is the calm run: nothing went wrong in it.'));
  if (names.length) {
    $('differences').append(h('details', { open: names.length === 1 || whatIf && names.length <= 8 }, h('summary', {}, 'By schedule'), table('By schedule', names.map(n => h('tbody', {},
      h('tr', { class: 'group' }, h('th', { scope: 'rowgroup', colspan: 4 }, name(n))), differences.filter(d => d.schedule === n).map(row))))));
  }
  const told = line => h('li', { class: line.grave ? 'grave' : null }, h('time', { class: 'number' }, when(run.at(line.t))), visible(line.text), rule(line));
  const story = (head, lines) => h('article', { class: 'story' }, h('header', {}, head), h('ul', {}, lines));
  const all = lines => [...lines.slice(0, MOST_TOLD).map(told), lines.length > MOST_TOLD ? h('li', {}, `and ${number(lines.length - MOST_TOLD)} more`) : null];
  $('stories').append(...run.faults.map((f, i) => story([h('button', { type: 'button', class: 'badge', 'aria-label': `Show ${f.badge} on the timeline`, onclick: () => goTo({ type: 'fault', fault: f, key: f.key }) }, f.badge), h('h3', {}, visible(f.say)), h('span', { class: 'number' }, span(run.at(f.at), run.at(f.at)))],
    run.stories[i].length ? all(run.stories[i]) : h('li', {}, f.effect))));
  const others = run.stories.at(-1);
  if (others.length) $('stories').append(story(h('h3', {}, 'Other differences, traced to no single fault'), all(others)));
  $('why').hidden = !why.length;
  $('rules').append(...why.map(line => h('li', {}, visible(line.text), rule(line))));
}

function showChecks() {
  const broken = new Map();
  for (const f of run.failures) broken.set(f.invariant, (broken.get(f.invariant) || 0) + 1);
  const made = run.checks.filter(c => c.count), idle = run.checks.filter(c => !c.count);
  $('checked').append(`${plural(made.length, 'invariant')} checked ${number(sum(made, c => c.count))} times; ${broken.size ? `${number(broken.size)} broken` : 'none broken'}.`);
  const row = c => h('li', {}, h('span', { class: broken.has(c.name) ? 'check no' : 'check', role: 'img', 'aria-label': broken.has(c.name) ? 'broken' : 'held' }),
    h('span', {}, c.about, h('small', {}, c.name)), h('span', { class: 'number' }, broken.has(c.name) ? `${number(broken.get(c.name))} of ${number(c.count)}` : number(c.count)));
  $('invariants').append(h('ol', { class: 'invariants' }, made.map(row)),
    idle.length ? h('p', { class: 'note' }, `Never checked, since nothing in this run called for it: ${idle.map(c => c.name).join(', ')}.`) : '');
  if (run.recording) return;
  const [reached, missed] = [run.marks.filter(m => m.reached), run.marks.filter(m => !m.reached)];
  const list = marks => h('ul', { class: 'reached' }, marks.map(m => h('li', { class: m.reached ? null : 'missed' }, m.about, m.reached ? h('small', {}, ` ${number(m.reached)}`) : null)));
  $('marks').append(h('h3', { class: 'sub' }, 'States of affairs that a test is worth little without ever reaching'),
    reached.length ? list(reached) : h('p', { class: 'muted' }, 'This run reached none of them.'),
    missed.length ? h('details', {}, h('summary', {}, `${number(missed.length)} that this run did not reach`), list(missed)) : '');
}

function showAgain() {
  $('commands').append(...run.commands.map(text => h('li', {}, command(text))));
  if (run.recording) $('again-title').textContent = 'Replay it again';
  $('again').hidden = !run.commands.length && !run.scenario;
  $('scenario').append(lines(run.scenario));
  $('scenario').closest('details').hidden = !run.scenario;
}

const command = text => [h('code', {}, visible(text)), h('button', { type: 'button', class: 'button', onclick: e => copy(text, e.target) }, 'Copy')];

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = 'Selected';
  }
  setTimeout(() => { button.textContent = 'Copy'; }, 1200);
}

function showLegend() {
  const has = new Set(run.recording ? [] : ['lease']);
  for (const s of run.schedules) {
    if (s.runs.length) has.add('fired');
    if (s.skips.length) has.add('skipped');
    if (s.ghosts.length) has.add('ghost');
    for (const x of [...s.fires, ...s.tries, ...s.holds, ...s.turns]) has.add(x.kind);
  }
  for (const p of run.processes) p.marks.forEach(m => has.add(m.kind));
  for (const o of run.outboxes) for (const q of o.tries) has.add(q.kind);
  if (run.failures.length) has.add('violation');
  if (run.strays.length) has.add('stray');
  const bounds = new Set(run.processes.flatMap(p => p.bounds).map(b => b.kind));
  const line = (d, w, colour, width) => svg('svg', { width: w, height: 12, 'aria-hidden': 'true' }, svg('path', { d, fill: 'none', stroke: `var(--${colour})`, 'stroke-width': width, 'stroke-linecap': 'round' }));
  const away = run.processes.flatMap(p => p.away);
  if (run.merged) $('legend').before(h('p', { class: 'merged' }, `${number(run.merged.of)} marks are drawn as ${number(run.merged.rows)}: what happened within the same minutes is one mark with its count. The trace of the run has all.`));
  $('legend').append(
    ...Object.keys(MARKS).filter(kind => has.has(kind)).map(kind => h('span', {}, kind === 'lease' ? h('i', { class: 'swatch leads' }) : markIcon(kind), kind === 'ghost' && !run.against.calm ? 'fired here in the run as it is' : MARKS[kind].say)),
    has.has('fired') ? h('span', {}, line('M3 6H23', 26, 'fireline', 5), 'many, merged') : '',
    away.some(a => a.kind !== 'pause') ? h('span', {}, h('i', { class: 'swatch down' }), 'down') : '',
    away.some(a => a.kind === 'pause') ? h('span', {}, h('i', { class: 'swatch pause' }), 'paused') : '',
    bounds.has('throttled') ? h('span', {}, h('i', { class: 'swatch throttled' }), 'throttled') : '',
    bounds.has('cut off') ? h('span', {}, h('i', { class: 'swatch cut' }), 'cut off from the store') : '',
    run.processes.some(p => p.clock.length) ? h('span', {}, line('M1 9h5V3h6v6h5', 18, 'ink2', 1.1), 'clock offset') : '');
}

// Lanes are in the scenario's order or, where they are many, those first to
// which something happened.
const busy = s => s.due > s.onTime || s.dead > 0 || s.undelivered > 0 || s.holds.length > 0;
const order = run.schedules.length > 24 ? [...run.schedules].sort((a, b) => busy(b) - busy(a) || a.index - b.index) : run.schedules;
const describe = describer(run);
const panel = {};
const timeline = new Timeline($('plot'), run, order, {
  describe,
  goTo: ref => goTo(ref),
  entered: () => view.enter(),
  fold: () => setFold(!timeline.axis.fold),
  moved,
  selected: selected => {
    panel.show?.(selected);
    $('said').textContent = selected ? `${selected.words.title}. ${selected.words.when}.` : '';
  },
});
Object.assign(panel, { show: selected => view.show(selected) });
const view = new Panel(run, timeline, ref => goTo(ref));

function moved([a, b]) {
  $('range').textContent = `${duration(b - a)} in view`;
  $('whole').disabled = b - a > run.end * 0.995;
}

function goTo(ref, look = true) {
  if (!ref) return;
  if (ref.schedule) timeline.show(ref.schedule);
  if (look) timeline.look(...describe(ref).span, Boolean(timeline.selected));
  timeline.select(ref);
  $('timeline').scrollIntoView({ block: 'start' });
  view.enter();
}

// find is what a link's key means: a fault, a failure, or what became of a
// boundary of a schedule.
function find(key) {
  const fault = run.faults.find(f => f.key === key), failure = run.failures.find(f => f.key === key);
  if (fault) return { type: 'fault', fault, key };
  if (failure) return { type: 'failure', failure, key };
  for (const schedule of run.schedules) {
    const fire = schedule.fires.find(f => f.key === key), gap = schedule.skips.find(g => g.key === key);
    if (fire) return { type: 'fire', schedule, fire, key };
    if (gap) return { type: 'gap', schedule, gap, key };
    const attempt = schedule.tries.find(q => q.key === key);
    if (attempt) return { type: 'tries', schedule, tries: [attempt], key };
  }
  return null;
}

function setFold(on) {
  timeline.foldTo(on ? 1 : 0);
  $('even').setAttribute('aria-pressed', String(!on));
  $('fold').setAttribute('aria-pressed', String(Boolean(on)));
}

function showSchedule(s) {
  const grave = [...s.skips.map(gap => ({ type: 'gap', schedule: s, gap, key: gap.key, n: gap.count })), ...s.fires.filter(f => f.kind !== 'fired').map(fire => ({ type: 'fire', schedule: s, fire, key: fire.key, n: fire.count }))];
  const runs = s.runs.length ? { type: 'runs', schedule: s, runs: s.runs, key: s.runs[0].key } : null;
  goTo(grave.sort((a, b) => b.n - a.n)[0] || runs);
}

function showPages() {
  if (timeline.pages < 2) return;
  const told = h('span', { class: 'number' });
  const turn = by => { timeline.turnTo(timeline.page + by); tell(); };
  const tell = () => {
    const from = timeline.page * 24;
    told.textContent = `Schedules ${number(from + 1)} to ${number(Math.min(from + 24, order.length))} of ${number(order.length)}`;
  };
  $('legend').before(h('div', { class: 'pager' }, h('button', { type: 'button', class: 'button', onclick: () => turn(-1) }, 'Before'), told, h('button', { type: 'button', class: 'button', onclick: () => turn(1) }, 'Next')));
  tell();
}

moved(timeline.axis.range());
showHead();
showFigures();
showProblems();
showLegend();
showPages();
showTable(run, showSchedule);
showMultiples(run);
$('shading').hidden = !run.faults.length;
showAgainst();
showChecks();
showAgain();
listenToSearch(run, goTo);
const recolour = theme(link.get('theme'), () => timeline.repaint());
$('zoom-in').addEventListener('click', () => timeline.zoomBy(2));
$('zoom-out').addEventListener('click', () => timeline.zoomBy(0.5));
$('whole').addEventListener('click', () => timeline.look(0, run.end));
$('even').addEventListener('click', () => setFold(false));
$('fold').addEventListener('click', () => setFold(true));
document.addEventListener('keydown', e => { if (e.key === 'Escape' && timeline.selected && !e.target.closest('input')) timeline.select(null); });
// On paper the timeline is as wide as the sheet, light, and nothing is folded up.
const opened = [];
function paper(on) {
  document.body.classList.toggle('paper', on);
  if (on) opened.push(...document.querySelectorAll('main details:not([open])'));
  for (const details of opened) details.open = on;
  if (!on) opened.length = 0;
  timeline.resize();
  recolour();
}
addEventListener('beforeprint', () => paper(true));
addEventListener('afterprint', () => paper(false));
document.fonts.ready.then(() => timeline.draw());

// A link may say what to look at: #from=T&to=T&sel=KEY&fold=1&theme=dark
if (link.get('fold')) setFold(true);
const at = key => Date.parse(link.get(key)) - run.start;
const [from, to] = [at('from'), at('to')];
if (link.get('sel')) goTo(find(link.get('sel')), !(to > from));
if (to > from) timeline.look(from, to, false);
