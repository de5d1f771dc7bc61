import { scaleLinear, scaleLog } from 'd3-scale';
import { $, h, name, svg, visible } from './dom.js';
import { DAY, duration, number, plural } from './format.js';
import { waited } from './model.js';

// MOST_ROWS is how many schedules the table has before one asks for all.
const MOST_ROWS = 100;

const count = (n, css) => h('span', { class: n ? css : 'zero' }, number(n));
const MISSED = { all: 'all, ≤ 64', latest: 'latest', grace: 'grace', none: 'none' };

// bar shows shares; the rarest has a width that can be seen.
export function bar(parts) {
  const total = parts.reduce((sum, p) => sum + p.count, 0), shown = parts.filter(p => p.count);
  const label = shown.map(p => `${number(p.count)} ${p.say}`).join(', ') || 'nothing came due';
  return h('span', { class: 'bar', role: 'img', 'aria-label': label }, shown.map(p => {
    const part = h('i', { class: `bar-${p.kind}` });
    part.style.flexGrow = Math.max(p.count / total, 0.012);
    return part;
  }));
}

export const shares = s => [
  { kind: 'fired', count: s.onTime, say: 'on time' },
  { kind: 'early', count: s.early, say: 'early' },
  { kind: 'late', count: s.late, say: 'late' },
  { kind: 'again', count: s.firedAgain, say: 'fired again' },
  { kind: 'skipped', count: s.skipped, say: 'skipped' },
];

// The columns: by what they sort, and whether the greatest comes first.
const columns = run => [
  { key: 'name', label: 'Schedule', by: s => s.name, cell: s => [h('button', { type: 'button', class: 'to-lane' }, name(s.name)), h('small', {}, name(s.queue)), s.policy ? h('small', { class: 'policies', title: s.rules.map(r => r.text).join('; ') }, visible(s.policy)) : null], css: 'named' },
  { key: 'every', label: 'Every', by: s => s.every, cell: s => s.spec.replace('@every ', ''), css: 'right number' },
  { key: 'policy', label: 'If missed', by: s => s.missed, cell: s => MISSED[s.missed] ?? s.missed, css: 'policy' },
  { key: 'due', label: 'Due', by: s => s.due, cell: s => number(s.due), css: 'right number due', falls: true },
  { key: 'share', label: 'What became of them', by: s => s.due - s.onTime, cell: s => bar(shares(s)), css: 'share', falls: true },
  { key: 'early', label: 'Early', by: s => s.early, cell: s => count(s.early), css: 'right number early', falls: true },
  { key: 'late', label: 'Late', by: s => s.late, cell: s => count(s.late), css: 'right number late', falls: true },
  { key: 'skipped', label: 'Skipped', by: s => s.skipped, cell: s => count(s.skipped), css: 'right number skips', falls: true },
  { key: 'longest', label: 'Longest wait', by: s => s.longest, cell: s => h('span', { class: s.late ? 'is-late' : null }, duration(s.longest)), css: 'right number longest', falls: true },
  { key: 'spark', label: 'Lateness over the run', by: s => s.longest, cell: s => spark(run, s), css: 'sparks', falls: true },
  { key: 'failed', label: 'Failed tries', by: s => s.failed, cell: s => count(s.failed), css: 'right number failed', falls: true },
  { key: 'dead', label: 'Dead', by: s => s.dead, cell: s => count(s.dead, 'is-bad'), css: 'right number dead', falls: true },
  ...(run.outboxes.length ? [{ key: 'undelivered', label: 'Undelivered', by: s => s.undelivered, cell: s => count(s.undelivered, 'is-bad'), css: 'right number undelivered', falls: true }] : []),
];

function spark(run, s) {
  const w = 132, height = 26, base = height - 3;
  const x = scaleLinear([0, run.end], [1, w - 1]), y = scaleLog([100, DAY], [base, 3]).clamp(true);
  const late = s.fires.filter(f => waited(f) > 0).map(f => `M${x(f.t).toFixed(1)},${base}V${y(waited(f)).toFixed(1)}`).join('');
  const gaps = s.skips.map(g => `M${x(g.first).toFixed(1)},${base}H${(x(g.last) + 1.5).toFixed(1)}`).join('');
  return svg('svg', { class: 'spark', width: w, height, viewBox: `0 0 ${w} ${height}`, role: 'img', 'aria-label': `Lateness over the run: longest ${duration(s.longest)}` },
    svg('path', { d: `M1,${base}H${w - 1}`, stroke: 'var(--fireline)', 'stroke-width': 2 }),
    svg('path', { d: gaps, stroke: 'var(--surface)', 'stroke-width': 3 }), svg('path', { d: gaps, stroke: 'var(--skip)', 'stroke-width': 1 }),
    svg('path', { d: late, stroke: 'var(--late)', 'stroke-width': 2.2, 'stroke-linecap': 'round' }));
}

// showTable fills the table of schedules; one that is chosen is shown.
export function showTable(run, show) {
  const list = columns(run), [head, body] = [$('table').tHead, $('table').tBodies[0]];
  let sort = { column: list[0], falls: false }, all = run.schedules.length <= MOST_ROWS;
  if (run.schedules.some(s => s.due > s.onTime)) sort = { column: list[4], falls: true };
  const order = (a, b) => {
    const [x, y] = [sort.column.by(a), sort.column.by(b)], less = x < y ? -1 : x > y ? 1 : 0;
    return (sort.falls ? -less : less) || a.index - b.index;
  };
  function draw() {
    head.replaceChildren(h('tr', {}, list.map(c => h('th', { scope: 'col', class: c.css, 'aria-sort': sort.column === c ? (sort.falls ? 'descending' : 'ascending') : null },
      h('button', { type: 'button', 'data-key': c.key, onclick: () => by(c) }, c.label, h('span', { class: 'arrow', 'aria-hidden': 'true' }, sort.column === c ? (sort.falls ? '↓' : '↑') : ''))))));
    const rows = [...run.schedules].sort(order).slice(0, all ? undefined : MOST_ROWS);
    body.replaceChildren(...rows.map(s => h('tr', { onclick: () => show(s) }, list.map((c, i) => h(i ? 'td' : 'th', { class: c.css, scope: i ? null : 'row' }, c.cell(s))))));
    if (!all) {
      body.append(h('tr', { class: 'more' }, h('td', { colspan: list.length }, h('button', { type: 'button', class: 'button', onclick: () => { all = true; draw(); } },
        `Show all ${plural(run.schedules.length, 'schedule')}`))));
    }
    $('sorting').value = sort.column.key;
  }
  function by(column) {
    sort = { column, falls: sort.column === column ? !sort.falls : Boolean(column.falls) };
    draw();
    head.querySelector(`[data-key=${column.key}]`)?.focus();
  }
  $('sorting').append(...list.filter(c => c.key !== 'spark').map(c => h('option', { value: c.key }, c.label)));
  $('sorting').addEventListener('change', e => by(list.find(c => c.key === e.target.value)));
  draw();
}

