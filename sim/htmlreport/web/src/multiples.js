import { scaleLinear, scaleLog, scaleSqrt } from 'd3-scale';
import { area, curveStepAfter, line } from 'd3-shape';
import { $, h, name, svg, visible } from './dom.js';
import { DAY, HOUR, MINUTE, SECOND, duration, number, plural } from './format.js';
import { waited } from './model.js';

const WIDTH = 250, HEIGHT = 74;

// MOST is how many schedules and queues have a picture of their own.
const MOST = 20;

// showMultiples draws lateness by schedule and jobs waiting by queue, the worst
// of many.
export function showMultiples(run) {
  const x = scaleLinear([0, run.end], [0, WIDTH]);
  const worst = [...run.schedules].sort((a, b) => b.longest - a.longest || b.skipped - a.skipped || a.index - b.index).slice(0, MOST).sort((a, b) => a.index - b.index);
  $('late').replaceChildren(...worst.map(s => lateness(run, x, s)));
  const fullest = [...run.queues].sort((a, b) => peak(b) - peak(a)).slice(0, MOST).sort((a, b) => run.queues.indexOf(a) - run.queues.indexOf(b));
  $('queues').replaceChildren(...fullest.map(q => waiting(run, x, q)));
  const left = run.schedules.length - worst.length;
  if (left) $('late').after(h('p', { class: 'note' }, `${plural(left, 'schedule')} that waited no longer ${left === 1 ? 'is' : 'are'} not drawn; the table has all.`));
}

const figure = (title, aside, grid, y, picture) => h('figure', {}, h('figcaption', {}, h('b', {}, title), h('span', { class: 'number' }, aside)),
  h('div', { class: 'small' }, grid.map(([value, label]) => {
    const tick = h('span', { 'aria-hidden': 'true' }, label);
    tick.style.top = `${((y(value) / HEIGHT) * 100).toFixed(1)}%`;
    return tick;
  }), picture));

const frame = (run, x, label, grid, y, ...paths) => svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
  run.faults.map(f => svg('rect', { x: x(f.at).toFixed(1), y: 0, width: Math.max(1, x(f.end) - x(f.at)).toFixed(1), height: HEIGHT, fill: 'var(--band)' })),
  grid.map(([value]) => svg('path', { d: `M0,${y(value).toFixed(1)}H${WIDTH}`, stroke: 'var(--line2)', 'vector-effect': 'non-scaling-stroke' })), ...paths);

function lateness(run, x, s) {
  const y = scaleLog([100, DAY], [HEIGHT - 4, 6]).clamp(true), grid = [[SECOND, '1 s'], [MINUTE, '1 min'], [HOUR, '1 h']];
  const height = ms => y(Math.max(100, ms)).toFixed(1), at = t => x(t).toFixed(1);
  const stroke = (d, colour, width) => svg('path', { d, fill: 'none', stroke: `var(--${colour})`, 'stroke-width': width, 'stroke-linecap': 'round', 'vector-effect': 'non-scaling-stroke' });
  const onTime = s.runs.flatMap(r => (x(r.step) - x(0) > 4
    ? Array.from({ length: r.count }, (_, i) => `M${at(r.first + i * r.step)},${height(r.most)}h.01`)
    : [`M${at(r.first)},${height(r.most)}H${(x(r.last) + 0.01).toFixed(1)}`])).join('');
  const late = s.fires.filter(f => waited(f) > 0)
    .map(f => `M${at(f.since)},${(y(waited(f)) - 0.01).toFixed(1)}L${at(f.t)},${height(f.t - f.last)}`).join('');
  const early = s.fires.filter(f => waited(f) < 0).map(f => `M${at(f.since)},${HEIGHT - 4}H${(x(f.t) + 0.01).toFixed(1)}`).join('');
  const gaps = s.skips.map(g => svg('rect', {
    x: (x(g.first) - 2).toFixed(1), y: 2.5, width: (x(g.last) - x(g.first) + 4).toFixed(1), height: 4.6, rx: 2.3,
    fill: 'var(--surface)', stroke: 'var(--skip)', 'stroke-width': 1.1, 'vector-effect': 'non-scaling-stroke',
  }));
  const told = s.late ? duration(s.longest) : 'on time';
  return figure(name(s.name), s.skipped ? `${told}, ${number(s.skipped)} skipped` : told, grid, y,
    frame(run, x, `${visible(s.name)}: longest wait ${duration(s.longest)}, ${number(s.skipped)} skipped`, grid, y,
      stroke(onTime, 'fireline', 4), stroke(early, 'fire', 4), stroke(late, 'late', 4), gaps));
}

const peak = q => q.depth.reduce((most, [, n]) => Math.max(most, n), 0);

function waiting(run, x, q) {
  const most = peak(q), y = scaleSqrt([0, Math.max(1, run.deepest)], [HEIGHT - 4, 6]);
  const grid = [[1, '1'], [10, '10'], [100, '100'], [1000, '1,000']].filter(([n]) => n < run.deepest);
  const steps = [[0, 0], ...q.depth, [run.end, q.depth.at(-1)?.[1] ?? 0]];
  return figure([name(q.name), q.outbox ? h('small', {}, ' outbox') : null], most ? `most ${number(most)}` : 'none waited', grid, y,
    frame(run, x, `${q.outbox ? 'Outbox' : 'Queue'} ${visible(q.name)}: at most ${number(most)} waiting`, grid, y,
      svg('path', { d: area().x(p => x(p[0])).y0(HEIGHT - 4).y1(p => y(p[1])).curve(curveStepAfter)(steps), fill: 'var(--depth)' }),
      svg('path', { d: line().x(p => x(p[0])).y(p => y(p[1])).curve(curveStepAfter)(steps), fill: 'none', stroke: 'var(--ink2)', 'stroke-width': 1.1, 'vector-effect': 'non-scaling-stroke' })));
}
