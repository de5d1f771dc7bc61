import { pill, text, width } from './canvas.js';
import { number } from './format.js';
import { drawMark } from './marks.js';

// Marks closer than NEAR pixels merge: on-time fires into a line, others into
// one mark of the gravest kind with the number of boundaries it stands for.
// Nothing is sampled away.
const NEAR = 8;
const GRAVEST = ['fired', 'skipped', 'held', 'early', 'burst', 'late', 'caught', 'again'];
const COUNT_COLOUR = { early: 'fire', burst: 'fire', late: 'latetext', caught: 'latetext', again: 'badtext' };

export function drawSchedule(view, lane) {
  const { c, colours } = view, s = lane.schedule, y = lane.middle;
  c.fillStyle = colours.line2;
  c.fillRect(0, Math.round(y), view.width, 1);
  const lines = [], marks = [], on = [];
  for (const piece of view.axis.pieces) {
    const from = Math.max(piece.from, view.axis.time(view.left - 12)), to = Math.min(piece.to, view.axis.time(view.right + 12));
    if (from >= to) continue;
    for (const run of s.runs) layRun(view, lane, run, piece, from, to, lines);
    for (const gap of s.skips) layGap(view, gap, piece, from, to, marks, on);
  }
  for (const fire of s.fires) layFire(view, fire, marks, on);
  for (const hold of s.holds) {
    const x = view.axis.x(hold.t);
    if (x > view.left && x < view.right) marks.push({ x, kind: 'held', count: 1, hold });
  }
  const groups = clusters(marks);
  drawGhosts(view, lane, groups);
  drawLines(view, lane, lines);
  for (const it of on) (it.gap ? drawGap : drawSpread)(view, lane, it);
  for (const fire of s.fires) drawBracket(view, lane, fire);
  for (const cluster of groups) drawCluster(view, lane, cluster);
  drawTries(view, lane);
  for (const turn of s.turns) {
    const x = view.axis.x(turn.t);
    if (x < view.left || x > view.right) continue;
    drawMark(c, turn.kind, x, y - 7, colours, 0.88);
    view.hit(lane, x - 4, x + 4, { type: 'turn', schedule: s, turn, key: turn.key }, 5, y - 7);
  }
}

// layFire lays what fired: all at once, or one by one.
function layFire(view, fire, marks, on) {
  const { axis } = view, from = axis.x(fire.since), to = axis.x(fire.t);
  if (to < view.left - 12 || from > view.right + 12) return;
  if (!fire.spread) {
    marks.push({ x: to, kind: fire.kind, count: fire.count, fire });
  } else if (to - from < NEAR * (fire.count - 1)) {
    on.push({ from, to, fire });
  } else {
    const apart = (fire.t - fire.since) / (fire.count - 1);
    const first = Math.max(0, Math.floor((axis.time(view.left) - fire.since) / apart)), last = Math.min(fire.count - 1, Math.ceil((axis.time(view.right) - fire.since) / apart));
    for (let i = first; i <= last; i++) {
      const t = fire.since + i * apart, boundary = fire.first + i * fire.step;
      marks.push({ x: axis.x(t), kind: fire.kind, count: 1, fire: { ...fire, first: boundary, last: boundary, since: t, t, count: 1, spread: false, key: `${fire.key}/${i}` } });
    }
  }
}

// within are the indexes of the boundaries of a run from one instant to another;
// those of a run without a step are one.
const within = (run, from, to) => (run.step ? [
  Math.max(0, Math.ceil((from - run.first) / run.step)), Math.min(run.count - 1, Math.floor((to - run.first) / run.step)),
] : [0, run.first >= from && run.first <= to ? 0 : -1]);

function layRun(view, lane, run, piece, from, to, lines) {
  const [a, b] = within(run, from, to), { c, colours, axis } = view, y = lane.middle;
  if (a > b) return;
  if (run.step * piece.perMS >= NEAR && !piece.folded) {
    c.fillStyle = colours.ink3;
    c.globalAlpha = 0.55;
    for (let i = a; i <= b; i++) c.fillRect(Math.round(axis.x(run.first + i * run.step)), y + 5, 1, 4);
    c.globalAlpha = 1;
    c.fillStyle = colours.fire;
    c.beginPath();
    for (let i = a; i <= b; i++) {
      const t = run.first + i * run.step, x = axis.x(t + (run.least === run.most ? run.most : 0));
      c.moveTo(x + 3, y);
      c.arc(x, y, 3, 0, 2 * Math.PI);
      view.hit(lane, x - 3, x + 3, { type: 'on-time', schedule: lane.schedule, run, boundary: t, key: `${run.key}/${i}` }, 2);
    }
    c.fill();
    return;
  }
  const line = { from: axis.x(run.first + a * run.step), to: axis.x(run.first + b * run.step), runs: [run], thin: piece.folded };
  const before = lines.at(-1);
  if (before && before.thin === line.thin && line.from - before.to < NEAR) {
    before.to = line.to;
    if (before.runs.at(-1) !== run) before.runs.push(run);
  } else {
    lines.push(line);
  }
}

function drawLines(view, lane, lines) {
  const { c, colours } = view;
  c.strokeStyle = colours.fireline;
  c.lineCap = 'round';
  for (const thin of [false, true]) {
    c.lineWidth = thin ? 2.5 : 5;
    c.beginPath();
    for (const line of lines) {
      if (line.thin !== thin) continue;
      c.moveTo(Math.max(line.from, -20), lane.middle);
      c.lineTo(Math.min(Math.max(line.to, line.from + 0.01), view.width + 20), lane.middle);
    }
    c.stroke();
  }
  c.lineCap = 'butt';
  for (const line of lines) {
    view.hit(lane, line.from - 3, line.to + 3, { type: 'runs', schedule: lane.schedule, runs: line.runs, key: line.runs[0].key }, 0);
  }
}

// layGap lays boundaries that did not fire: single ones where there is room.
function layGap(view, gap, piece, from, to, marks, on) {
  const [a, b] = within(gap, from, to);
  if (a > b) return;
  const x = i => view.axis.x(gap.first + i * gap.step);
  if (gap.count === 1 || (gap.step * piece.perMS >= NEAR && !piece.folded)) {
    for (let i = a; i <= b; i++) marks.push({ x: x(i), kind: gap.kind, count: 1, gap, boundary: gap.first + i * gap.step });
  } else {
    on.push({ from: x(a), to: x(b), gap });
  }
}

function drawGap(view, lane, { from, to, gap }) {
  const { c, colours } = view, a = Math.max(from, -20), b = Math.min(Math.max(to, from + 3), view.width + 20), y = lane.middle;
  pill(c, a - 2.7, y - 2.7, b - a + 5.4, 5.4, 2.7);
  c.fillStyle = colours.surface;
  c.fill();
  c.strokeStyle = colours.skip;
  c.lineWidth = 1.2;
  c.stroke();
  const label = b - a > 90 ? `${number(gap.count)} ${gap.kind}` : number(gap.count), w = width(c, label, 10.5, 500);
  const left = Math.max(a, view.left), right = Math.min(b, view.width);
  if (right - left > w + 14) {
    c.fillStyle = colours.surface;
    c.fillRect((left + right - w) / 2 - 4, y - 5, w + 8, 10);
    text(c, label, (left + right) / 2, y + 0.5, { size: 10.5, weight: 500, align: 'center', colour: colours.ink2 });
  } else {
    text(c, label, (left + right) / 2, y - 8, { size: 10.5, weight: 600, align: 'center', colour: colours.ink2, halo: colours.surface });
  }
  view.hit(lane, from - 3, to + 3, { type: 'gap', schedule: lane.schedule, gap, key: gap.key }, 2);
}

// drawBracket joins a late fire with the boundaries that it was late for.
function drawBracket(view, lane, fire) {
  if (fire.spread || fire.t - fire.last <= 0 || fire.kind === 'fired') return;
  const { c, colours, axis } = view, from = axis.x(fire.first), to = axis.x(fire.t), y = lane.middle;
  if (to < view.left || from > view.right || to - from < 9) return;
  if (fire.count > 1) drawDue(view, lane, fire);
  const low = Math.round(y + 8) + 0.5;
  c.save();
  c.strokeStyle = colours.late;
  c.globalAlpha = 0.6;
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(from, y + 2);
  c.lineTo(from, low - 2);
  c.arcTo(from, low, from + 2, low, 2);
  c.lineTo(to - 2, low);
  c.arcTo(to, low, to, low - 2, 2);
  c.lineTo(to, y + 4);
  c.stroke();
  c.restore();
}

// drawGhosts shows where the other run fired, and this one did not: a dotted line,
// or dotted rings once there is room and no other mark is there.
function drawGhosts(view, lane, groups) {
  const { c, colours, axis } = view, y = lane.middle;
  const from = axis.time(view.left - 12), to = axis.time(view.right + 12);
  let right = -99, next = 0;
  const ring = x => {
    while (groups[next]?.to < x - NEAR) next++;
    if (x - right < NEAR / 2 || groups[next]?.from < x + NEAR) return;
    drawMark(c, 'ghost', x, y, colours);
    right = x;
  };
  const lines = new Path2D();
  for (const ghost of lane.schedule.ghosts) {
    if (ghost.last < from || ghost.first > to) continue;
    for (const piece of axis.pieces) {
      const [a, b] = within(ghost, Math.max(piece.from, from), Math.min(piece.to, to));
      if (a > b) continue;
      const x = i => axis.x(ghost.first + i * ghost.step);
      if (!ghost.step || (ghost.step * piece.perMS >= NEAR && !piece.folded)) {
        for (let i = a; i <= b; i++) ring(x(i));
      } else {
        lines.moveTo(x(a), y);
        lines.lineTo(x(b), y);
      }
    }
    view.hit(lane, axis.x(ghost.first) - 3, axis.x(ghost.last) + 3, { type: 'ghost', schedule: lane.schedule, ghost, key: ghost.key }, -1);
  }
  c.save();
  c.strokeStyle = colours.fire;
  c.lineWidth = 2;
  c.lineCap = 'round';
  c.setLineDash([0.01, 4.5]);
  c.stroke(lines);
  c.restore();
}

// drawDue ticks the boundaries that were caught up, once there is room.
function drawDue(view, lane, fire) {
  const { c, colours, axis } = view, [a, b] = within(fire, axis.time(view.left), axis.time(view.right));
  if ((axis.x(fire.last) - axis.x(fire.first)) / (fire.count - 1) < NEAR) return;
  c.fillStyle = colours.late;
  for (let i = a; i <= b; i++) c.fillRect(Math.round(axis.x(fire.first + i * fire.step)), lane.middle + 5, 1, 4);
}

// clusters merges marks that are too near to tell apart.
function clusters(marks) {
  const list = [];
  for (const m of marks.sort((a, b) => a.x - b.x)) {
    const before = list.at(-1);
    if (before && m.x - before.to < NEAR - 1) {
      before.to = m.x;
      before.count += m.count;
      before.marks.push(m);
      if (GRAVEST.indexOf(m.kind) > GRAVEST.indexOf(before.kind)) before.kind = m.kind;
    } else {
      list.push({ from: m.x, to: m.x, kind: m.kind, count: m.count, marks: [m] });
    }
  }
  return list;
}

const STACKED = { late: 'caught', early: 'burst' };

function drawCluster(view, lane, cluster) {
  const { c, colours } = view, y = lane.middle, wide = cluster.to - cluster.from;
  const kind = cluster.count > 1 ? STACKED[cluster.kind] || cluster.kind : cluster.kind;
  const colour = colours[COUNT_COLOUR[cluster.kind] || 'ink2'];
  if (wide > 14) drawTube(view, cluster, y);
  else drawMark(c, kind, cluster.from + wide / 2, y, colours);
  if (cluster.count > 1) {
    const left = cluster.kind === 'burst' && !view.compact;
    text(c, number(cluster.count), left ? cluster.from - 6 : cluster.to + 7, y - 6.5,
      { size: 10.5, weight: 600, align: left ? 'right' : 'left', colour, halo: colours.surface });
  }
  view.hit(lane, cluster.from - 4, cluster.to + 4, reference(lane.schedule, cluster), kind === 'fired' ? 2 : 4);
}

// drawSpread draws many that fired one by one, too near each other to tell apart.
function drawSpread(view, lane, { from, to, fire }) {
  drawTube(view, { from, to, kind: fire.kind }, lane.middle);
  const x = (Math.max(from, view.left) + Math.min(to, view.width)) / 2;
  text(view.c, number(fire.count), x, lane.middle - 8, { size: 10.5, weight: 600, align: 'center', colour: view.colours[COUNT_COLOUR[fire.kind] || 'ink2'], halo: view.colours.surface });
  view.hit(lane, from - 3, to + 3, { type: 'fire', schedule: lane.schedule, fire, key: fire.key }, 2);
}

function drawTube(view, cluster, y) {
  const { c, colours } = view, a = Math.max(cluster.from, -20), b = Math.min(cluster.to, view.width + 20);
  const [fill, edge] = {
    late: ['late', 'late'], caught: ['late', 'late'], early: ['early', 'fire'], burst: ['early', 'fire'],
    fired: ['fireline', 'fireline'], again: ['surface', 'bad'],
  }[cluster.kind] || ['surface', 'skip'];
  pill(c, a - 2.4, y - 2.4, b - a + 4.8, 4.8, 2.4);
  c.fillStyle = colours[fill];
  c.fill();
  c.strokeStyle = colours[edge];
  c.lineWidth = 0.9;
  c.stroke();
}

// reference says what a cluster stands for.
function reference(schedule, cluster) {
  const [m] = cluster.marks;
  if (cluster.marks.length > 1) return { type: 'several', schedule, marks: cluster.marks, key: `several/${markKey(m)}` };
  if (m.fire) return { type: 'fire', schedule, fire: m.fire, key: m.fire.key };
  if (m.hold) return { type: 'hold', schedule, hold: m.hold, key: m.hold.key };
  return { type: 'gap', schedule, gap: m.gap, boundary: m.boundary, key: m.gap.count > 1 ? `${m.gap.key}/${m.boundary}` : m.gap.key };
}

const markKey = m => (m.fire || m.hold || m.gap).key;

const WORST = ['failed', 'undelivered', 'dead'];

function drawTries(view, lane) {
  const { c, colours, axis } = view, y = lane.middle + 7.5, groups = [];
  for (const attempt of lane.schedule.tries) {
    const x = axis.x(attempt.t);
    if (x < view.left || x > view.right) continue;
    const before = groups.at(-1);
    if (before && x - before.to < NEAR - 1) {
      before.to = x;
      before.tries.push(attempt);
      if (WORST.indexOf(attempt.kind) > WORST.indexOf(before.kind)) before.kind = attempt.kind;
    } else {
      groups.push({ from: x, to: x, kind: attempt.kind, tries: [attempt] });
    }
  }
  for (const g of groups) {
    drawMark(c, g.kind, (g.from + g.to) / 2, y, colours, 0.88);
    view.hit(lane, g.from - 4, g.to + 4, { type: 'tries', schedule: lane.schedule, tries: g.tries, key: g.tries[0].key }, 3, y);
  }
}
