import { scaleUtc } from 'd3-scale';
import { DAY, MINUTE } from './format.js';

// Axis maps true time to pixels. It is linear in pieces: with folding, a quiet
// stretch is a narrow column. fold goes from 0, even time, to 1.
export class Axis {
  constructor(run) {
    this.run = run;
    this.fold = 0;
  }

  // place lays the axis out: width pixels, from left on, show the part that the
  // zoom's transform selects.
  place(transform, left, width, compact) {
    Object.assign(this, { k: transform.k, shift: transform.x, left, width });
    const even = [{ from: 0, to: this.run.end, quiet: false, share: 1 }];
    this.pieces = this.fold ? foldedShares(this.run.stretches, compact) : even;
    let folded = 0;
    for (const p of this.pieces) {
      const blend = (t, share) => (1 - this.fold) * (t / this.run.end) + this.fold * share;
      p.x0 = this.xOfShare(blend(p.from, folded));
      folded += p.share;
      p.x1 = this.xOfShare(blend(p.to, folded));
      p.perMS = (p.x1 - p.x0) / (p.to - p.from);
      p.folded = this.fold > 0.5 && p.quiet;
    }
  }

  xOfShare(share) { return this.left + share * this.k * this.width + this.shift; }
  shareOf(t) { return (this.x(t) - this.left - this.shift) / (this.k * this.width); }

  x(t) {
    const p = this.pieces.find(piece => t < piece.to) || this.pieces.at(-1);
    return p.x0 + (t - p.from) * p.perMS;
  }

  time(x) {
    const p = this.pieces.find(piece => x < piece.x1) || this.pieces.at(-1);
    return p.from + (x - p.x0) / p.perMS;
  }

  // range is what is in view.
  range() {
    return [Math.max(0, this.time(this.left)), Math.min(this.run.end, this.time(this.left + this.width))];
  }

  // ticks are the instants to be labelled, with the step between them.
  ticks(apart) {
    const list = [], start = this.run.start, [from, to] = this.range();
    for (const p of this.pieces) {
      const a = Math.max(p.from, from), b = Math.min(p.to, to), px = (b - a) * p.perMS;
      if (p.folded || px < 8) continue;
      let instants = scaleUtc([start + a, start + b], [0, px]).ticks(Math.max(1, px / apart)).map(Number);
      let step = instants.length > 1 ? instants[1] - instants[0] : DAY;
      if (step >= DAY) {
        step = DAY * Math.max(1, Math.ceil(apart / (DAY * p.perMS)));
        instants = [];
        for (let t = Math.ceil((start + a) / DAY) * DAY; t <= start + b; t += DAY) {
          if (Math.round(t / DAY) % (step / DAY) === 0) instants.push(t);
        }
      }
      for (const t of instants) list.push({ t, step, x: this.x(t - start), until: p.x1, midnight: t % DAY === 0 });
    }
    return list;
  }
}

// foldedShares gives each stretch its share of the folded axis.
function foldedShares(stretches, compact) {
  const busy = stretches.reduce((sum, s) => sum + (s.quiet ? 0 : s.to - s.from), 0);
  const most = Math.max(busy, MINUTE) * (compact ? 0.11 : 0.062);
  const weights = stretches.map(s => (s.quiet ? Math.min(s.to - s.from, most) : s.to - s.from));
  const total = weights.reduce((a, b) => a + b, 0);
  return stretches.map((s, i) => ({ ...s, quiet: s.quiet && weights[i] < s.to - s.from, share: weights[i] / total }));
}
