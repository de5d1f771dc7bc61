import { pill } from './canvas.js';
import { h } from './dom.js';
import { MINUTE } from './format.js';

const HEIGHT = 30;

// Overview is the strip below the lanes that has the whole run, and what of it
// is in view. It takes the mouse and touch; the keyboard has the timeline's keys.
export class Overview {
  constructor(timeline) {
    this.timeline = timeline;
    this.canvas = h('canvas', {});
    this.root = h('div', { class: 'overview', 'aria-hidden': 'true' }, this.canvas);
    this.c = this.canvas.getContext('2d');
    this.listen();
  }

  resize() {
    const w = this.root.clientWidth, { dpr } = this.timeline;
    this.width = w;
    this.canvas.width = w * dpr;
    this.canvas.height = HEIGHT * dpr;
    this.canvas.style.width = `${w}px`;
    this.canvas.style.height = `${HEIGHT}px`;
  }

  x(t) { return this.left + (t / this.timeline.run.end) * this.timeline.plotWidth; }
  time(x) { return Math.max(0, Math.min(1, (x - this.left) / this.timeline.plotWidth)) * this.timeline.run.end; }

  draw() {
    const { c, timeline } = this, { run, colours, dpr, plotWidth } = timeline;
    this.left = (timeline.compact ? 0 : timeline.gutter.clientWidth) + timeline.left;
    c.setTransform(dpr, 0, 0, dpr, 0, 0);
    c.clearRect(0, 0, this.width, HEIGHT);
    c.fillStyle = colours.fireline;
    c.fillRect(this.left, 14.5, plotWidth, 2);
    c.fillStyle = colours.ink;
    for (const f of run.faults) c.fillRect(this.x(f.at), 4, Math.max(2.5, this.x(f.end) - this.x(f.at)), 3);
    c.fillStyle = colours.late;
    for (const s of run.schedules) {
      for (const f of s.fires) if (f.kind === 'late' || f.kind === 'caught') c.fillRect(this.x(f.t) - 1, 10, 2.5, 11);
    }
    c.fillStyle = colours.bad;
    for (const f of run.failures) c.fillRect(this.x(f.t) - 1, 2, 2.5, 26);
    const [from, to] = timeline.axis.range(), a = this.x(from), b = this.x(to);
    c.fillStyle = colours.surface;
    c.globalAlpha = 0.62;
    c.fillRect(this.left - 3, 0, a - this.left + 3, HEIGHT);
    c.fillRect(b, 0, this.left + plotWidth - b + 4, HEIGHT);
    c.globalAlpha = 1;
    c.strokeStyle = colours.ink3;
    c.lineWidth = 1;
    pill(c, Math.min(a, this.left + plotWidth - 6) - 0.5, 1.5, Math.max(6, b - a) + 1, 27, 4);
    c.stroke();
    c.fillStyle = colours.ink2;
    for (const x of [a, Math.max(b, a + 6)]) {
      pill(c, x - 2, 9, 4, 12, 2);
      c.fill();
    }
  }

  listen() {
    const { canvas, timeline } = this, at = e => e.clientX - canvas.getBoundingClientRect().left;
    let drag = null;
    canvas.addEventListener('pointerdown', e => {
      canvas.setPointerCapture(e.pointerId);
      const x = at(e), [from, to] = timeline.axis.range(), a = this.x(from), b = this.x(to);
      const whole = to - from > timeline.run.end * 0.99;
      if (Math.abs(x - a) < 9) drag = { fixed: to };
      else if (Math.abs(x - b) < 9) drag = { fixed: from };
      else if (x > a && x < b && !whole) drag = { moves: this.time(x), from, to };
      else drag = { fixed: this.time(x) };
    });
    canvas.addEventListener('pointermove', e => {
      if (!drag) return;
      const t = this.time(at(e));
      if (drag.moves === undefined) {
        const a = Math.min(drag.fixed, t), b = Math.max(drag.fixed, t);
        if (b - a > Math.min(MINUTE, timeline.run.end / 100)) timeline.look(a, b, false);
        return;
      }
      const by = Math.max(-drag.from, Math.min(timeline.run.end - drag.to, t - drag.moves));
      timeline.look(drag.from + by, drag.to + by, false);
    });
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { drag = null; });
  }
}
