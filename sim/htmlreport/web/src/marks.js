import { svg } from './dom.js';

// One vocabulary of marks, drawn from the same paths on the canvas and in the
// legend, the panel and the tables. Paths are centred on 0,0; fill, edge and
// stroke name colours of the style sheet.
const circle = r => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`;
const stack = 'M-4,-5.2h8v2.6h-8ZM-4,-1.3h8v2.6h-8ZM-4,2.6h8v2.6h-8Z';
const cross = r => `M${-r},${-r}L${r},${r}M${r},${-r}L${-r},${r}`;

export const MARKS = {
  fired: { d: circle(3), fill: 'fire', say: 'on time' },
  late: { d: 'M4,0L-2.6,-3.8V3.8Z', fill: 'late', say: 'late' },
  caught: { d: stack, fill: 'late', say: 'caught up at once' },
  early: { d: 'M-4,0L2.6,-3.8V3.8Z', fill: 'early', edge: 'fire', say: 'early' },
  burst: { d: stack, fill: 'early', edge: 'fire', say: 'several early at once' },
  again: { d: circle(4.6) + circle(1.8), stroke: 'bad', width: 1.3, paper: true, say: 'fired again' },
  skipped: { d: circle(2.7), stroke: 'skip', width: 1.3, paper: true, say: 'skipped' },
  ghost: { d: circle(3.4), stroke: 'fire', width: 1.2, dash: [2.3, 1.97], say: 'fired here in the calm run' },
  held: { d: `M-3.4,-3.4h6.8v6.8h-6.8Z${circle(0.8)}`, stroke: 'ink', width: 1.3, paper: true, say: 'row held' },
  failed: { d: cross(2.7), stroke: 'bad', width: 1.7, say: 'a try failed' },
  dead: { d: 'M0,-4.6L4.6,0L0,4.6L-4.6,0Z', fill: 'bad', say: 'job dead' },
  undelivered: { d: 'M0,-4.4L4.4,0L0,4.4L-4.4,0Z', stroke: 'bad', width: 1.6, paper: true, say: 'not delivered' },
  delivered: { d: 'M-2,-4H2V4H-2Z', fill: 'fireline', say: 'delivered' },
  retried: { d: 'M-2,-4H2V4H-2Z', fill: 'late', say: 'delivery failed, tried again' },
  triggered: { d: 'M0,4L-3.8,-2.6H3.8Z', fill: 'fire', say: 'fired by hand' },
  paused: { d: 'M-2.2,-4V4M2.2,-4V4', stroke: 'ink', width: 2, say: 'paused' },
  breaker: { d: 'M-2.2,-4V4M2.2,-4V4', stroke: 'bad', width: 2.4, say: 'paused by its breaker' },
  resumed: { d: 'M-2.6,-4L4,0L-2.6,4Z', stroke: 'ink', width: 1.4, paper: true, say: 'resumed' },
  lease: { d: 'M-7,-3.4h14v6.8h-14Z', fill: 'lease', say: 'leads' },
  refused: { d: circle(4.4) + 'M-3.1,3.1L3.1,-3.1', stroke: 'ink', width: 1.5, paper: true, say: 'write refused' },
  ended: { d: 'M-3.6,-3.6h7.2v7.2h-7.2Z', stroke: 'ink', width: 1.5, paper: true, say: 'runner ended' },
  clock: { d: circle(4.2) + 'M0,-2.6V0L1.9,1.3', stroke: 'ink', width: 1.3, paper: true, say: 'clock moved' },
  crash: { d: cross(3.4), stroke: 'ink', width: 1.9, say: 'crashed' },
  start: { d: 'M-3,-4.2L4.2,0L-3,4.2Z', stroke: 'ink', width: 1.4, paper: true, say: 'started' },
  stray: { d: 'M0,-3.2V3.2M-3.2,0H3.2', stroke: 'ink', width: 1.5, say: 'jobs of no schedule' },
  violation: { d: 'M-3.4,6V-6.2H5L2.8,-3.1L5,0H-2V6Z', fill: 'bad', say: 'rule broken' },
};

export function markIcon(kind, size = 14) {
  const m = MARKS[kind], half = size / 2;
  return svg('svg', { class: 'mark', width: size, height: size, viewBox: `${-half} ${-half} ${size} ${size}`, 'aria-hidden': 'true' },
    svg('path', {
      d: m.d,
      fill: m.fill ? `var(--${m.fill})` : m.paper ? 'var(--surface)' : 'none',
      stroke: m.edge || m.stroke ? `var(--${m.edge || m.stroke})` : null,
      'stroke-width': m.width || 0.9, 'stroke-dasharray': m.dash || null, 'stroke-linecap': 'round', 'stroke-linejoin': 'round',
    }));
}

const paths = {};

export function drawMark(c, kind, x, y, colours, scale = 1) {
  const m = MARKS[kind], path = (paths[kind] ||= new Path2D(m.d));
  c.save();
  c.translate(x, y);
  c.scale(scale, scale);
  c.lineCap = c.lineJoin = 'round';
  const fill = m.fill || (m.paper && 'surface');
  if (fill) {
    c.fillStyle = colours[fill];
    c.fill(path);
  }
  const stroke = m.edge || m.stroke;
  if (stroke) {
    c.strokeStyle = colours[stroke];
    c.lineWidth = m.width || 0.9;
    if (m.dash) c.setLineDash(m.dash);
    c.stroke(path);
  }
  c.restore();
}
