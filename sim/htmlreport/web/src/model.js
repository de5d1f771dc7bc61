import { visible } from './dom.js';
import { HOUR, MINUTE } from './format.js';

// read turns the data of the page into a run: rows become objects, and every
// instant is in milliseconds of true time from the start.
export function read(data) {
  const run = { ...data, end: data.simulated };
  run.at = t => run.start + t;
  for (const said of [...run.log, ...run.faults, ...run.failures, ...run.processes.flatMap(p => p.marks)]) {
    for (const key of ['text', 'say', 'short', 'effect', 'title', 'detail']) if (said[key]) said[key] = visible(said[key]);
  }
  run.faults.forEach((f, i) => Object.assign(f, { index: i, badge: `F${i + 1}`, key: `F${i + 1}` }));
  run.outboxes.forEach((o, i) => {
    Object.assign(o, { id: `outbox-${i}` });
    o.tries = o.tries.map(([t, kind, count, attempt, schedule, boundary, why], k) => ({ kind, t, count, attempt, schedule, boundary, why: visible(why), key: `${o.id}/${k}` }));
  });
  run.processes.forEach((p, i) => Object.assign(p, { index: i, id: `process-${i}` }));
  run.schedules.forEach((s, i) => readSchedule(s, i));
  run.deepest = run.depth.reduce((most, [, n]) => Math.max(most, n), 0);
  run.stretches = stretches(run);
  return run;
}

// The kinds of what became of boundaries: of a mark, one boundary or several.
function readSchedule(s, index) {
  Object.assign(s, { index, id: `schedule-${index}` });
  s.runs = s.runs.map(([first, step, count, least, most], i) => ({
    kind: 'fired', first, step, count, last: first + step * (count - 1), least, most, key: `${s.id}/run/${i}`,
  }));
  s.skips = s.skips.map(([first, step, count, t, reason, cause], i) => ({
    kind: 'skipped', first, step, count, last: first + step * (count - 1), t, reason, cause, key: `${s.id}/skip/${i}`,
  }));
  s.tries = s.tries.map(([t, kind, attempt, boundary, count, why], i) => ({ kind, t, attempt, boundary, count, why: visible(why), key: `${s.id}/try/${i}` })).sort((a, b) => a.t - b.t);
  s.turns.forEach((turn, i) => Object.assign(turn, { text: visible(turn.text), key: `${s.id}/turn/${i}` }));
  s.outcomes = new Map(s.outcomes.map(([boundary, tries, how, why, deliveries]) => [boundary, {
    tries, how, why: visible(why), deliveries: deliveries.map(([outbox, n, came, reason]) => ({ outbox, tries: n, how: came, why: visible(reason) })),
  }]));
  s.holds = s.holds.map(([t, reason, cause], i) => ({ kind: 'held', t, reason, cause, key: `${s.id}/held/${i}` }));
  s.ghosts = (s.ghosts || []).map(([first, step, count], i) => ({ kind: 'ghost', first, step, count, last: first + step * (count - 1), key: `${s.id}/ghost/${i}` })).sort((a, b) => a.first - b.first);
  s.fires = group(s.fires.map(([first, step, count, t, kind, process, term, cause, since], i) => ({
    kind, first, step, count, last: first + step * (count - 1), t, process, term, cause, since, key: `${s.id}/fire/${i}`,
  })));
}

// STACKS are the kinds of a mark for several boundaries that one tick fired.
const STACKS = { late: 'caught', early: 'burst' };

// group makes one of the fires that a tick made of several boundaries.
// Those that are spread over time fired one by one, each as late as the others.
const group = fires => fires.map(f => ({
  ...f, spread: f.since !== undefined, since: f.since ?? f.t, kind: f.count > 1 && f.since === undefined ? STACKS[f.kind] || f.kind : f.kind,
}));

// waited is how long the first boundary of a fire waited.
export const waited = f => f.since - f.first;

// stretches divides the run into what is busy and what is quiet: more than two
// hours, or a tenth of a short run, in which nothing is out of the ordinary.
function stretches(run) {
  const margin = Math.min(30 * MINUTE, run.end / 200), least = Math.min(2 * HOUR, run.end / 10);
  const busy = [];
  const add = (a, b) => busy.push([Math.max(0, a - margin), Math.min(run.end, b + margin)]);
  run.faults.forEach(f => add(f.at, f.end));
  run.failures.forEach(f => add(f.t, f.t));
  run.processes.forEach(p => p.marks.forEach(m => m.t && add(m.t, m.t)));
  for (const s of run.schedules) {
    s.fires.forEach(f => f.kind !== 'fired' && add(Math.min(f.first, f.t), Math.max(f.last, f.t)));
    s.skips.forEach(g => add(g.first, Math.max(g.last, g.t)));
    s.tries.forEach(q => q.kind !== 'failed' && add(q.t, q.t));
    s.turns.forEach(q => add(q.t, q.t));
  }
  const merged = [];
  for (const [from, to] of busy.sort((a, b) => a[0] - b[0])) {
    const before = merged.at(-1);
    if (before && from - before.to < least) before.to = Math.max(before.to, to);
    else merged.push({ from: from < least ? 0 : from, to, quiet: false });
  }
  if (merged.length && run.end - merged.at(-1).to < least) merged.at(-1).to = run.end;
  const list = [];
  let t = 0;
  for (const stretch of merged) {
    if (stretch.from > t) list.push({ from: t, to: stretch.from, quiet: true });
    list.push(stretch);
    t = stretch.to;
  }
  if (t < run.end) list.push({ from: t, to: run.end, quiet: list.length > 0 });
  return list;
}
