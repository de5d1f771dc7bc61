import { select } from 'd3-selection';
import 'd3-transition';
import { zoom, zoomIdentity } from 'd3-zoom';
import { Axis } from './axis.js';
import { dotting, hatching, pill, readColours, text, width } from './canvas.js';
import { h } from './dom.js';
import { DAY, MINUTE, SECOND, clock, date, dayOfMonth, duration, millis, month, seconds, weekday } from './format.js';
import { MOST_LANES, TOP, drawDepth, drawFaults, drawOutbox, drawProcess, drawViolations, layOut, nameOfInstant } from './lanes.js';
import { drawSchedule } from './schedulelane.js';
import { Overview } from './overview.js';
import { listen } from './input.js';

const still = matchMedia('(prefers-reduced-motion: reduce)');
const LANES = { faults: drawFaults, process: drawProcess, schedule: drawSchedule, outbox: drawOutbox, depth: drawDepth };

// Timeline draws the run and lets one go through it. What is selected is told
// to its owner, which describes it.
export class Timeline {
  constructor(root, run, schedules, owner) {
    Object.assign(this, { root, run, schedules, owner, page: 0, selected: null, hovered: null, targets: [] });
    this.axis = new Axis(run);
    this.transform = zoomIdentity;
    this.gutter = h('div', { class: 'gutter', 'aria-hidden': 'true' });
    this.base = h('canvas', { class: 'base' });
    this.over = h('canvas', { class: 'over' });
    this.area = h('div', { class: 'area' }, this.base, this.over);
    this.tip = h('div', { class: 'tip', hidden: true });
    this.hint = h('div', { class: 'hint', hidden: true });
    this.overview = new Overview(this);
    root.append(h('div', { class: 'body' }, this.gutter, this.area, this.tip, this.hint), this.overview.root);
    this.c = this.base.getContext('2d');
    this.o = this.over.getContext('2d');
    this.zoom = zoom()
      .filter(e => (e.type === 'wheel' ? e.ctrlKey || e.metaKey : e.touches ? e.touches.length > 1 : !e.button && !e.shiftKey))
      // A trackpad's pinch sends small steps, a notch of a wheel about 100.
      .wheelDelta(e => -e.deltaY * (e.deltaMode === 1 ? 0.05 : e.deltaMode ? 1 : 0.002) * (Math.abs(e.deltaY) < 50 ? 10 : 2))
      .on('zoom', e => {
        this.transform = e.transform;
        this.draw();
        owner.moved(this.axis.range());
      });
    this.zoomed = select(this.over).call(this.zoom).on('dblclick.zoom', null);
    listen(this);
    this.colours = readColours();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(this.area);
  }

  repaint() {
    this.colours = readColours();
    this.hatches = this.dotted = null;
    this.draw();
  }

  // ---- lanes

  get pages() { return Math.ceil(this.schedules.length / MOST_LANES) || 1; }

  turnTo(page) {
    this.page = Math.max(0, Math.min(this.pages - 1, page));
    this.resize();
  }

  // show turns to the page on which the schedule has its lane.
  show(schedule) {
    const page = Math.floor(this.schedules.indexOf(schedule) / MOST_LANES);
    if (page !== this.page) this.turnTo(page);
  }

  resize() {
    const w = this.area.clientWidth;
    if (!w) return;
    const kept = this.width ? this.axis.range() : null;
    this.compact = this.root.clientWidth < 700;
    this.root.classList.toggle('compact', this.compact);
    const shown = this.schedules.slice(this.page * MOST_LANES, (this.page + 1) * MOST_LANES);
    Object.assign(this, layOut(this.run, shown, this.compact));
    this.dpr = Math.min(3, devicePixelRatio || 1);
    this.width = w;
    this.left = this.compact ? 2 : 6;
    this.plotWidth = w - this.left - (this.compact ? 6 : 14);
    this.right = this.left + this.plotWidth + 8;
    this.hatches = this.dotted = null;
    for (const canvas of [this.base, this.over]) {
      canvas.width = w * this.dpr;
      canvas.height = this.height * this.dpr;
      canvas.style.width = `${w}px`;
      canvas.style.height = `${this.height}px`;
    }
    this.area.style.height = `${this.height}px`;
    this.gutter.replaceChildren(...this.lanes.map(lane => {
      const label = h('div', { class: `lane lane-${lane.type}`, title: lane.label }, h('b', {}, h('bdi', {}, lane.label)), lane.sub && !(this.compact && lane.type !== 'depth') ? h('i', {}, lane.sub) : null);
      label.style.top = `${lane.y}px`;
      label.style.height = `${lane.height}px`;
      lane.element = label;
      return label;
    }));
    this.overview.resize();
    this.most = Math.max(1, this.run.end / (2 * SECOND));
    this.zoom.extent([[0, 0], [this.plotWidth, this.height]]).translateExtent([[0, -1e9], [this.plotWidth, 1e9]]).scaleExtent([1, this.most]);
    if (kept && (kept[0] > 0 || kept[1] < this.run.end)) this.look(...kept, false);
    else this.draw();
  }

  // ---- what is in view

  look(from, to, smooth = true) {
    this.place();
    const a = this.axis.shareOf(Math.max(0, from)), b = this.axis.shareOf(Math.min(this.run.end, to));
    const k = Math.max(1, Math.min(1 / (b - a), this.most)), middle = (a + b) / 2;
    const left = Math.max(0, Math.min(1 - 1 / k, middle - 0.5 / k));
    const target = zoomIdentity.translate(-left * k * this.plotWidth, 0).scale(k);
    (smooth && !still.matches ? this.zoomed.transition().duration(420) : this.zoomed.interrupt()).call(this.zoom.transform, target);
  }

  zoomBy(factor, around) {
    const [a, b] = this.axis.range(), middle = around ?? (a + b) / 2;
    this.look(middle - (middle - a) / factor, middle + (b - middle) / factor);
  }

  panBy(share) {
    const [a, b] = this.axis.range(), by = Math.max(-a, Math.min(this.run.end - b, share * (b - a)));
    this.look(a + by, b + by);
  }

  foldTo(fold) {
    const from = this.axis.fold, [a, b] = this.axis.range(), whole = a <= 1 && b >= this.run.end - 1;
    const step = share => {
      this.axis.fold = share;
      if (whole) this.draw();
      else this.look(a, b, false);
    };
    cancelAnimationFrame(this.folding);
    if (still.matches || this.run.stretches.length < 2) return step(fold);
    const began = performance.now();
    const go = now => {
      const q = Math.min(1, (now - began) / 420), eased = q < 0.5 ? 4 * q ** 3 : 1 - (-2 * q + 2) ** 3 / 2;
      step(from + (fold - from) * eased);
      if (q < 1) this.folding = requestAnimationFrame(go);
    };
    this.folding = requestAnimationFrame(go);
  }

  // ---- drawing

  place() { this.axis.place(this.transform, this.left, this.plotWidth, this.compact); }

  hatch(crossed) {
    this.hatches ||= {};
    return (this.hatches[crossed] ||= hatching(this.c, this.colours.hatch, this.dpr, crossed));
  }

  dots() { return (this.dotted ||= dotting(this.c, this.colours.ink3, this.dpr)); }

  // hit notes that something was drawn there; among near ones the weightier is hit.
  hit(lane, from, to, ref, weight, y = lane.middle) {
    this.targets.push({ lane, from, to, y, ref, weight });
  }

  draw() {
    if (!this.width) return;
    const start = performance.now();
    this.place();
    this.targets = [];
    this.late = [];
    const { c } = this;
    c.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    this.ticks = this.axis.ticks(this.compact ? 58 : 76);
    this.drawGrid();
    this.drawBands();
    for (const lane of this.lanes) LANES[lane.type](this, lane);
    drawViolations(this, this.lanes);
    this.drawAxis();
    for (const draw of this.late) draw();
    this.drawOver();
    this.overview.draw();
    performance.clearMeasures('draw');
    performance.measure('draw', { start });
  }

  drawGrid() {
    const { c, colours } = this;
    for (const p of this.axis.pieces) {
      if (!p.folded) continue;
      c.fillStyle = colours.paper;
      c.fillRect(p.x0, TOP - 2, p.x1 - p.x0, this.height - TOP);
    }
    for (const t of this.ticks) {
      c.fillStyle = t.midnight ? colours.line : colours.line2;
      c.fillRect(Math.round(t.x), TOP - 2, 1, this.height - TOP);
    }
  }

  drawBands() {
    const { c, colours, axis, run } = this;
    c.fillStyle = colours.band;
    for (const f of run.faults) {
      const a = axis.x(f.at), b = axis.x(f.end);
      if (b > this.left - 2 && a < this.right) c.fillRect(a, TOP - 2, Math.max(2, b - a), this.height - TOP);
    }
    if (run.quiet > 0 && run.quiet < run.end) {
      const x = Math.round(axis.x(run.quiet)) + 0.5;
      c.strokeStyle = colours.ink3;
      c.lineWidth = 1;
      c.setLineDash([2, 3]);
      c.beginPath();
      c.moveTo(x, TOP);
      c.lineTo(x, this.height - 4);
      c.stroke();
      c.setLineDash([]);
    }
  }

  drawAxis() {
    const { c, colours, axis, run, ticks } = this, start = run.at(axis.range()[0]), fine = ticks.some(t => t.step < DAY);
    c.fillStyle = colours.surface;
    c.fillRect(0, 0, this.width, 35.5);
    c.fillStyle = colours.line;
    c.fillRect(0, 35, this.width, 1);
    const heads = []; // where the upper row is taken
    const head = (string, x, weight = 550) => {
      heads.push([x, x + width(c, string) * 1.1]);
      text(c, string, x, 11, { weight, colour: colours.ink2 });
    };
    let headed = -99;
    if (!fine) head(month(start), this.left, 450);
    else {
      const first = ticks.find(t => t.midnight);
      if (!first || first.x > this.left + 84) {
        head(date(start), this.left);
        headed = this.left + 80;
      }
    }
    let right = -99;
    for (const t of ticks) {
      if (t.x < this.left - 1) continue;
      const label = t.step >= DAY ? (this.compact ? dayOfMonth(t.t) : weekday(t.t))
        : t.step < SECOND ? millis(t.t).slice(6) : t.step < MINUTE && t.t % MINUTE ? `:${seconds(t.t).slice(6)}` : clock(t.t);
      const w = width(c, label);
      if (fine && t.midnight && t.x > headed) {
        head(date(t.t), t.x + 4);
        headed = t.x + 84;
      }
      if (t.x + 4 < right || t.x + 4 + w > Math.min(this.width, axis.fold > 0.5 ? t.until : Infinity)) continue;
      text(c, label, t.x + 4, 25, { colour: colours.ink2 });
      c.fillStyle = colours.line;
      c.fillRect(Math.round(t.x), 19, 1, 17);
      right = t.x + 4 + w + 8;
    }
    for (const p of axis.pieces) if (p.folded) this.drawFolded(p);
    const x = axis.x(run.quiet);
    const room = [x + 5, x - 72].find(at => at > this.left && at < this.right - 55 && heads.every(([from, to]) => at > to + 4 || at + 55 < from - 4));
    if (run.quiet > 0 && run.quiet < run.end && x > this.left && x < this.right && room && !this.compact) {
      text(c, 'faults end', room, 11, { size: 10.5, colour: colours.ink3, halo: colours.surface });
    }
  }

  drawFolded(piece) {
    const { c, colours } = this, w = piece.x1 - piece.x0, label = duration(piece.to - piece.from, w < 60);
    text(c, w > width(c, label, 10.5) + 4 ? label : '·', (piece.x0 + piece.x1) / 2, 25, { size: 10.5, align: 'center', colour: colours.ink3 });
    c.strokeStyle = colours.ink3;
    c.lineWidth = 1;
    c.beginPath();
    for (const x of [piece.x0, piece.x1]) {
      c.moveTo(x, 30);
      c.lineTo(x - 2, 32);
      c.lineTo(x + 2, 34);
      c.lineTo(x, 36);
    }
    c.stroke();
  }

  // drawOver draws what changes with the pointer and the selection.
  drawOver() {
    const { o: c, colours } = this;
    c.setTransform(this.dpr, 0, 0, this.dpr, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    if (this.box) {
      c.fillStyle = colours.band;
      c.fillRect(Math.min(...this.box), TOP - 2, Math.abs(this.box[1] - this.box[0]), this.height);
    }
    if (this.selected) this.drawCauses(this.selected.causes);
    if (this.hovered && this.hovered.ref.key !== this.selected?.ref.key) this.drawRing(this.hovered, 1.4);
    const chosen = this.selected && this.targets.find(t => t.ref.key === this.selected.ref.key);
    if (chosen) this.drawRing(chosen, 2);
    if (this.cursor == null) return;
    const [a, b] = this.axis.range();
    c.fillStyle = colours.ink;
    c.globalAlpha = 0.28;
    c.fillRect(Math.round(this.cursor), TOP - 2, 1, this.height);
    c.globalAlpha = 1;
    const label = nameOfInstant(this.run, this.axis.time(this.cursor), b - a), w = width(c, label, 11, 550) + 12;
    const x = Math.max(0, Math.min(this.width - w, this.cursor - w / 2));
    pill(c, x, 17, w, 17, 4);
    c.fill();
    text(c, label, x + 6, 26, { weight: 550, colour: colours.surface });
  }

  // drawCauses joins the links of a chain of causes by curves.
  drawCauses(causes) {
    const { o: c, colours } = this;
    const points = causes.map(link => ({ lane: this.lanes.find(l => l.id === link.lane), t: link.t }))
      .filter(p => p.lane).map(p => ({ x: this.axis.x(p.t), y: p.lane.type === 'faults' ? p.lane.y + p.lane.height - 2 : p.lane.middle }));
    c.strokeStyle = c.fillStyle = colours.ink;
    c.lineWidth = 1.4;
    c.globalAlpha = 0.75;
    points.forEach((q, i) => {
      const p = points[i - 1];
      if (!p) return;
      const dx = q.x - p.x, dy = q.y - p.y, bow = -14 - Math.min(14, Math.abs(dy) / 14);
      c.beginPath();
      c.moveTo(p.x, p.y);
      if (Math.abs(dy) < 2) c.bezierCurveTo(p.x + dx * 0.2, p.y - 9, q.x - dx * 0.2, q.y - 9, q.x, q.y);
      else if (Math.abs(dx) < 16) c.bezierCurveTo(p.x + bow, p.y + dy * 0.3, q.x + bow, q.y - dy * 0.3, q.x, q.y);
      else c.bezierCurveTo(p.x + dx * 0.5, p.y, q.x - dx * 0.5, q.y, q.x, q.y);
      c.stroke();
    });
    c.globalAlpha = 1;
    for (const p of points.slice(0, -1)) {
      c.beginPath();
      c.arc(p.x, p.y, 2.6, 0, 7);
      c.fill();
    }
  }

  drawRing(target, lineWidth) {
    const { o: c } = this, { lane, y } = target, a = Math.max(target.from, 0), b = Math.min(target.to, this.width);
    c.strokeStyle = this.colours.ink;
    c.lineWidth = lineWidth;
    if (target.ref.type.startsWith('lease')) pill(c, a - 1.5, y - 8.5, b - a + 3, 17, 4);
    else if (target.ref.type === 'away') pill(c, a - 1.5, lane.y + 2.5, b - a + 3, lane.height - 6, 4);
    else pill(c, a - 3, y - (lane.type === 'faults' ? 11 : 7.5), b - a + 6, lane.type === 'faults' ? 22 : 15, 7);
    c.stroke();
  }

  // ---- choosing

  at(x, y) {
    const lane = this.lanes.find(l => y >= l.y && y < l.y + l.height), slop = this.touched ? 16 : 7;
    let best = null, least = Infinity;
    for (const t of this.targets) {
      if (t.lane !== lane) continue;
      const away = Math.max(t.from - x, x - t.to, 0), cost = away * 1.6 + Math.abs(y - t.y) * 0.35 - t.weight * 3;
      if (away <= slop && cost < least) [best, least] = [t, cost];
    }
    return best;
  }

  select(ref, target) {
    for (const lane of this.lanes) lane.element.classList.remove('on');
    if (!ref) {
      this.selected = null;
    } else {
      const t = target || this.targets.find(q => q.ref.key === ref.key), words = this.owner.describe(ref);
      const lane = t?.lane || this.lanes.find(l => l.id === words.lane);
      this.selected = { ref, words, lane, x: t ? (t.from + t.to) / 2 : null, causes: words.causes.filter(cause => cause.lane) };
      lane?.element.classList.add('on');
    }
    this.drawOver();
    this.owner.selected(this.selected);
  }

  // inLane are the targets of a lane in view, from left to right.
  inLane(lane) {
    return this.targets.filter(t => t.lane === lane && t.ref.type !== 'depths' && t.to >= this.left && t.from <= this.right).sort((a, b) => a.from - b.from || a.weight - b.weight);
  }

  step(by) {
    const lane = this.selected?.lane || this.lanes[0], list = this.inLane(lane);
    if (!list.length) return;
    const at = list.findIndex(t => t.ref.key === this.selected?.ref.key);
    const next = at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.max(0, Math.min(list.length - 1, at + by));
    this.select(list[next].ref, list[next]);
  }

  stepLane(by) {
    const x = this.selected?.x ?? this.left;
    for (let i = this.lanes.indexOf(this.selected?.lane || this.lanes[0]) + by; this.lanes[i]; i += by) {
      const distance = t => Math.max(t.from - x, x - t.to, 0) - t.weight / 100;
      const nearest = this.inLane(this.lanes[i]).reduce((a, b) => (a && distance(a) <= distance(b) ? a : b), null);
      if (nearest) {
        this.select(nearest.ref, nearest);
        this.selected.x = x;
        return;
      }
    }
  }

  stepFault(by) {
    const faults = this.run.faults;
    if (!faults.length) return;
    const at = this.selected?.ref.type === 'fault' ? this.selected.ref.fault.index + by : by > 0 ? 0 : -1;
    this.owner.goTo({ type: 'fault', fault: faults[(at + faults.length) % faults.length], key: faults[(at + faults.length) % faults.length].key });
  }

  showTip(x, y) {
    this.tip.hidden = !this.hovered;
    if (!this.hovered) return;
    const words = this.owner.describe(this.hovered.ref, true);
    this.tip.replaceChildren(h('b', {}, words.title), h('span', {}, words.when), words.sub ? h('span', {}, words.sub) : '');
    const w = this.tip.offsetWidth, at = this.area.offsetLeft + x;
    const left = at + 16 + w > this.root.clientWidth - 4 ? at - w - 14 : at + 16;
    this.tip.style.transform = `translate(${Math.max(0, left)}px,${Math.max(TOP, y + 14)}px)`;
  }
}

