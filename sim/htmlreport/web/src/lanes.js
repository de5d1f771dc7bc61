import { bisector } from 'd3-array';
import { scaleSqrt } from 'd3-scale';
import { pill, text, width } from './canvas.js';
import { visible } from './dom.js';
import { HOUR, MINUTE, clock, duration, number, signed, when } from './format.js';
import { drawMark } from './marks.js';

// MOST_LANES is how many schedules have a lane at once.
export const MOST_LANES = 24;

// TOP is where the lanes begin, below the axis.
export const TOP = 38;

// layOut stacks the lanes; each knows its height and the line its marks are on.
export function layOut(run, schedules, compact) {
  const lanes = [];
  let y = TOP;
  const put = (type, id, height, gap, middle, what) => {
    y += gap;
    lanes.push({ type, id, y, height, middle: y + middle, ...what });
    y += height;
  };
  if (!run.recording) put('faults', 'faults', 30, 0, 15, { label: 'Faults' });
  run.processes.forEach((process, i) => {
    put('process', process.id, compact ? 50 : 41, i ? 0 : 7, compact ? 28 : 15, { process, label: process.name, sub: process.runs ? 'lease, clock' : 'clock' });
  });
  schedules.forEach((schedule, i) => {
    put('schedule', schedule.id, compact ? 38 : 24, i ? 0 : 6, compact ? 27 : 11.5,
      { schedule, label: visible(schedule.name), sub: schedule.spec.replace('@every ', '') });
  });
  run.outboxes.forEach((outbox, i) => {
    put('outbox', outbox.id, compact ? 44 : 34, i ? 0 : 6, compact ? 30 : 19, { outbox, label: visible(outbox.name), sub: 'deliveries' });
  });
  put('depth', 'depth', compact ? 54 : 42, 7, 20, { label: 'Jobs waiting', sub: 'all queues' });
  return { lanes, height: y + 8 };
}

const clipped = (view, a, b) => [Math.max(a, -20), Math.min(b, view.width + 20)];

export function drawFaults(view, lane) {
  const { c, axis, colours, run } = view, y = lane.y + 6;
  const label = faults => faults[0].badge + (faults.length > 1 ? ` +${faults.length - 1}` : '');
  const groups = [];
  for (const f of [...run.faults].sort((a, b) => a.at - b.at)) {
    const from = axis.x(f.at), to = axis.x(f.end), before = groups.at(-1);
    if (to < view.left || from > view.right) continue;
    c.fillStyle = colours.ink;
    c.fillRect(from, lane.y + lane.height - 3, Math.max(2, to - from), 2);
    const w = width(c, f.badge, 10.5, 600) + 9;
    const sticky = Math.min(Math.max(from, view.left + 2), Math.max(from, to - w), view.width - w - 2), x = Math.max(sticky, before ? before.x + before.w + 3 : 0);
    if (x - sticky < w || !before) {
      groups.push({ x, w, from, faults: [f] });
    } else { // too far from where it is: with the ones before it
      before.faults.push(f);
      before.w = width(c, label(before.faults), 10.5, 600) + 9;
    }
  }
  groups.forEach(({ x, w, faults }, i) => {
    c.fillStyle = colours.ink;
    pill(c, x, y, w, 17, 4);
    c.fill();
    text(c, label(faults), x + w / 2, y + 9, { size: 10.5, weight: 600, align: 'center', colour: colours.surface });
    if (faults.length > 1) {
      view.hit(lane, x, x + w, { type: 'faults', faults, key: `faults/${faults[0].key}` }, 3);
      return;
    }
    const short = visible(faults[0].short), long = width(c, short), room = Math.min(groups[i + 1]?.x ?? view.width, view.width) - x - w - 8;
    if (long < room) text(c, short, x + w + 5, y + 9, { colour: colours.ink, halo: colours.surface });
    view.hit(lane, x, x + w + (long < room ? long + 6 : 0), { type: 'fault', fault: faults[0], key: faults[0].key }, 3);
  });
}

export function drawProcess(view, lane) {
  const { c, axis, colours } = view, p = lane.process;
  const bar = lane.y + lane.height - 20, barHeight = 14;
  c.fillStyle = colours.line;
  c.fillRect(0, Math.round(bar + barHeight + 2), view.width, 1);
  drawClock(view, lane);
  for (const away of p.away) drawAway(view, lane, away, bar + barHeight);
  for (const leases of clusters(view, p.leases)) drawLeases(view, lane, leases, bar, barHeight);
  p.bounds.forEach((bound, i) => drawBound(view, lane, bound, i, bar + barHeight));
  let right = -99;
  p.marks.forEach((m, i) => {
    const x = axis.x(m.t);
    if (x < view.left || x > view.right) return;
    const ref = { type: 'mark', process: p, mark: m, key: `${p.id}/mark/${i}` };
    view.hit(lane, x - 5, x + 5, ref, 4);
    if (x - right < 5) return; // under the one before
    drawMark(c, m.kind, x, lane.middle, colours);
    right = x;
  });
}

// drawClock draws how far the process's clock is off, over true time: each
// point has the offset from there on and, in parts per million, its drift.
function drawClock(view, lane) {
  const { c, axis, colours, run } = view, points = lane.process.clock;
  const y = offset => lane.middle - 10 * Math.max(-1, Math.min(1, offset / HOUR));
  c.strokeStyle = colours.ink3;
  c.lineWidth = 1.1;
  c.beginPath();
  c.moveTo(axis.x(0), y(0));
  c.lineTo(axis.x(points[0]?.[0] ?? run.end), y(0));
  points.forEach(([t, offset, drift], i) => {
    const until = points[i + 1]?.[0] ?? run.end, then = offset + ((until - t) / 1e6) * drift;
    c.lineTo(axis.x(t), y(offset));
    c.lineTo(axis.x(until), y(then));
  });
  c.stroke();
  points.forEach(([t, offset, drift], i) => {
    const until = points[i + 1]?.[0] ?? run.end, then = offset + ((until - t) / 1e6) * drift;
    const from = Math.max(axis.x(t), view.left), to = Math.min(axis.x(until), view.width - 4);
    if (Math.abs(then) < MINUTE / 2 || to - from < 44) return;
    text(c, signed(then), drift ? to - 4 : (from + to) / 2, y(drift ? then : offset),
      { size: 10.5, weight: 500, align: drift ? 'right' : 'center', colour: colours.ink, halo: colours.surface });
  });
}

// drawBound dots the time in which the process was throttled, and breaks its
// baseline where it was cut off.
function drawBound(view, lane, bound, i, bottom) {
  const { c, axis, colours } = view, [a, b] = clipped(view, axis.x(bound.from), Math.max(axis.x(bound.from) + 3, axis.x(bound.to)));
  if (b < view.left || a > view.right) return;
  if (bound.kind === 'throttled') {
    c.fillStyle = view.dots();
    c.fillRect(a, lane.y + 4, b - a, bottom - lane.y - 2);
  } else {
    c.fillStyle = colours.surface;
    c.fillRect(a, bottom + 1, b - a, 3);
    c.strokeStyle = colours.ink;
    c.lineWidth = 2;
    c.setLineDash([5, 4]);
    c.beginPath();
    c.moveTo(a, bottom + 2.5);
    c.lineTo(b, bottom + 2.5);
    c.stroke();
    c.setLineDash([]);
  }
  view.hit(lane, a, b, { type: 'bound', process: lane.process, bound, key: `${lane.process.id}/bound/${i}` }, -1, lane.y + 6);
}

function drawAway(view, lane, away, bottom) {
  const { c, axis, colours } = view, [a, b] = clipped(view, axis.x(away.from), Math.max(axis.x(away.from) + 3, axis.x(away.to)));
  if (b < view.left || a > view.right) return;
  const top = lane.y + 4, height = bottom - top + 2;
  c.fillStyle = colours.surface;
  c.fillRect(a, top, b - a, height);
  c.fillStyle = view.hatch(away.kind !== 'pause');
  c.fillRect(a, top, b - a, height);
  c.strokeStyle = colours.ink3;
  c.lineWidth = 1;
  c.strokeRect(Math.round(a) + 0.5, top + 0.5, Math.max(2, Math.round(b - a) - 1), height - 1);
  const label = `${away.kind === 'pause' ? 'paused' : 'down'} ${duration(away.to - away.from)}`, w = width(c, label, 11, 500);
  const from = Math.max(a, view.left), to = Math.min(b, view.width);
  if (to - from > w + 14) {
    const x = (from + to) / 2;
    c.fillStyle = colours.surface;
    pill(c, x - w / 2 - 6, top + 3, w + 12, 16, 4);
    c.fill();
    text(c, label, x, top + 11, { weight: 500, align: 'center', colour: colours.ink });
  }
  view.hit(lane, a, b, { type: 'away', process: lane.process, away, key: `${lane.process.id}/away/${away.from}` }, 1);
}

// clusters are the leases in view; those that are too short and too near each other
// to tell apart are together.
function clusters(view, leases) {
  const list = [], near = 3;
  for (const lease of leases) {
    const from = view.axis.x(lease.from), to = view.axis.x(lease.to), before = list.at(-1);
    if (to < view.left || from > view.right) continue;
    const short = to - from < near;
    if (short && before?.short && from - before.to < near) {
      before.to = to;
      before.leases.push(lease);
    } else {
      list.push({ from, to, short, leases: [lease] });
    }
  }
  return list;
}

function drawLeases(view, lane, { from, to, leases }, y, height) {
  const { c, colours } = view;
  if (leases.length === 1) return drawLease(view, lane, leases[0], y, height);
  c.fillStyle = colours.leasefill;
  c.fillRect(from, y, to - from, height);
  c.fillStyle = colours.lease;
  for (let x = from; x < to; x += 6) c.fillRect(x, y, 2.5, height);
  const label = `${number(leases.length)} leases`, w = width(c, label, 11, 550);
  if (to - from > w + 16) {
    c.fillStyle = colours.leasefill;
    c.fillRect((from + to - w) / 2 - 4, y, w + 8, height);
    text(c, label, (from + to - w) / 2, y + 7.5, { weight: 550, colour: colours.leasetext });
  }
  view.hit(lane, from, to, { type: 'leases', process: lane.process, leases, key: `${lane.process.id}/leases/${leases[0].from}` }, 0, y + 7);
}

function drawLease(view, lane, lease, y, height) {
  const { c, axis, colours } = view, from = axis.x(lease.from), to = axis.x(lease.to);
  const away = lane.process.away.find(w => w.from >= lease.from && w.from < lease.to);
  const held = away ? axis.x(away.from) : to, [a, b] = clipped(view, from, held);
  c.fillStyle = colours.leasefill;
  pill(c, a, y, Math.max(2, b - a), height, 3);
  c.fill();
  c.fillStyle = colours.lease;
  if (from > -3) c.fillRect(from, y, 2.5, height);
  if (to - held > 1.5) {
    c.save();
    c.globalAlpha = 0.6;
    c.strokeStyle = colours.lease;
    c.setLineDash([3, 2.5]);
    c.lineWidth = 1.2;
    c.strokeRect(held, y + 0.5, Math.min(to, view.width + 20) - held - 0.5, height - 1);
    c.restore();
  }
  const x = Math.max(a + 8, view.left + 4), label = `term ${lease.term}`;
  const fits = [label, String(lease.term)].find(l => Math.min(b, view.width) - x > width(c, l, 11, 550) + 4);
  if (fits) text(c, fits, x, y + 7.5, { weight: 550, colour: colours.leasetext });
  view.hit(lane, from, Math.max(to, from + 3), { type: 'lease', process: lane.process, lease, key: `${lane.process.id}/lease/${lease.from}` }, 0, y + 7);
}

// COLUMN is how wide a bar of an outbox is.
const COLUMN = 4;

// drawOutbox draws how many deliveries came through, upward, and how many tries
// failed, downward: those that were made again, and those that were the last.
export function drawOutbox(view, lane) {
  const { c, axis, colours } = view, base = lane.middle, columns = new Map();
  c.fillStyle = colours.line;
  c.fillRect(0, Math.round(base), view.width, 1);
  for (const q of lane.outbox.tries) {
    const x = Math.floor(axis.x(q.t) / COLUMN) * COLUMN;
    if (x < view.left - COLUMN || x > view.right) continue;
    if (!columns.has(x)) columns.set(x, { delivered: 0, retried: 0, undelivered: 0, tries: [] });
    columns.get(x)[q.kind] += q.count;
    columns.get(x).tries.push(q);
  }
  const most = Math.max(1, ...[...columns.values()].map(q => q.delivered));
  const up = scaleSqrt([0, most], [0, 14]), down = scaleSqrt([0, Math.max(4, most)], [0, 9]);
  for (const [x, q] of columns) {
    const bar = (kind, colour, y, height) => {
      c.fillStyle = colours[colour];
      if (q[kind]) c.fillRect(x + 0.5, y, COLUMN - 1, height);
      return q[kind] ? height : 0;
    };
    const height = Math.max(4, up(q.delivered));
    bar('delivered', 'fireline', base - height, height);
    const retried = bar('retried', 'late', base + 2, Math.max(3, down(q.retried)));
    bar('undelivered', 'bad', base + 2 + retried, Math.max(4, down(q.undelivered)));
    view.hit(lane, x, x + COLUMN, { type: 'deliveries', outbox: lane.outbox, tries: q.tries, key: q.tries.find(t => t.kind !== 'delivered')?.key ?? q.tries[0].key }, q.retried + q.undelivered ? 3 : 1);
  }
}

export function drawDepth(view, lane) {
  const { c, axis, colours, run } = view, steps = run.depth, bottom = lane.y + lane.height - 3, top = lane.y + (view.compact ? 18 : 8);
  const y = scaleSqrt([0, Math.max(1, run.deepest)], [bottom, top]);
  c.fillStyle = colours.line;
  c.fillRect(0, bottom, view.width, 1);
  view.hit(lane, view.left, view.right, { type: 'depths', key: 'depth' }, 0);
  drawStrays(view, lane, top);
  if (!steps.length) return;
  const at = bisector(step => step[0]), [from, to] = axis.range();
  const shown = steps.slice(Math.max(0, at.right(steps, from) - 1), at.right(steps, to));
  if (!shown.length) return;
  const area = new Path2D(), line = new Path2D();
  let last = Math.max(-20, axis.x(shown[0][0])), height = y(shown[0][1]), peak = shown[0];
  area.moveTo(last, bottom);
  area.lineTo(last, height);
  line.moveTo(last, height);
  for (const [t, n] of shown) {
    const x = axis.x(t);
    if (n > peak[1]) peak = [t, n];
    for (const path of [area, line]) {
      path.lineTo(x, height);
      path.lineTo(x, y(n));
    }
    height = y(n);
  }
  last = Math.min(view.width + 20, axis.x(run.end));
  area.lineTo(last, height);
  area.lineTo(last, bottom);
  c.fillStyle = colours.depth;
  c.fill(area);
  line.lineTo(last, height);
  if (shown.length > view.width) return labelPeak(view, lane, peak, y); // the outline would cover it all
  c.save();
  c.beginPath();
  c.rect(0, top - 6, view.width, bottom - top + 5);
  c.clip();
  c.strokeStyle = colours.ink2;
  c.lineWidth = 1;
  c.stroke(line);
  c.restore();
  labelPeak(view, lane, peak, y);
}

// drawStrays marks where jobs of no schedule came in.
function drawStrays(view, lane, y) {
  const marks = [];
  for (const [t, n] of view.run.strays) {
    const x = view.axis.x(t), before = marks.at(-1);
    if (x < view.left || x > view.right) continue;
    if (before && x - before.x < 9) Object.assign(before, { to: t, n: before.n + n });
    else marks.push({ x, from: t, to: t, n });
  }
  for (const m of marks) {
    drawMark(view.c, 'stray', m.x, y, view.colours);
    view.hit(lane, m.x - 4, m.x + 4, { type: 'strays', ...m, key: `strays/${m.from}/${m.to}` }, 3, y);
  }
}

function labelPeak(view, lane, [t, n], y) {
  const { c, axis, colours, run } = view, x = axis.x(t), flip = x > view.width - 110;
  if (n < 2 || x < view.left) return;
  text(c, `${number(n)} at ${clock(run.at(t))}`, x + (flip ? -6 : 7), Math.max(lane.y + (view.compact ? 20 : 5), y(n) - 2),
    { size: 10.5, weight: 500, align: flip ? 'right' : 'left', colour: colours.ink, halo: colours.surface });
  view.hit(lane, x - 6, x + 6, { type: 'depth', t, n, key: `depth/${t}` }, 3);
}

// drawViolations draws a red line through all lanes, with a flag in the axis.
export function drawViolations(view, lanes) {
  const { c, axis, colours, run } = view;
  let right = -1e9;
  for (const failure of run.failures) {
    const x = Math.min(Math.max(axis.x(failure.t), -9), view.width - 2);
    if (axis.x(failure.t) < view.left - 2 || axis.x(failure.t) > view.right + 20) continue;
    c.fillStyle = colours.bad;
    c.fillRect(x - 1, 36, 2, view.height - TOP);
    const lane = lanes.find(l => l.id === failure.lane);
    if (lane) {
      c.beginPath();
      c.arc(x, lane.middle, 4, 0, 7);
      c.fill();
      c.strokeStyle = colours.surface;
      c.lineWidth = 1.5;
      c.stroke();
      view.hit(lane, x - 8, x + 8, { type: 'failure', failure, key: failure.key }, 9);
    }
    const label = failure.word, w = width(c, label, 11, 600) + 14;
    const at = x + w > view.width ? x - w + 1 : x - 1;
    if (at < right) continue;
    right = at + w;
    view.late.push(() => {
      c.fillStyle = colours.bad;
      pill(c, at, 18, w, 17, 4);
      c.fill();
      text(c, label, at + 7, 27, { weight: 600, colour: colours.surface });
    });
  }
}

export const nameOfInstant = (run, t, inView) =>
  inView < 20 * MINUTE ? when(run.at(t)) : inView < 48 * HOUR ? when(run.at(Math.round(t / 1000) * 1000)) : when(run.at(Math.round(t / MINUTE) * MINUTE)).slice(0, -3);
