// What the lanes draw with: colours from the style sheet, text, hatchings.
export const FONT = '"Report",system-ui,-apple-system,"Segoe UI",Roboto,sans-serif';

const TOKENS = [
  'paper', 'surface', 'ink', 'ink2', 'ink3', 'line', 'line2', 'fire', 'fireline', 'early', 'late', 'latetext', 'skip',
  'bad', 'badtext', 'lease', 'leasetext', 'leasefill', 'band', 'hatch', 'depth',
];

// readColours resolves the style sheet's colours for the theme in force.
export function readColours() {
  const probe = document.body.appendChild(document.createElement('i')), colours = {};
  for (const token of TOKENS) {
    probe.style.color = `var(--${token})`;
    colours[token] = getComputedStyle(probe).color;
  }
  probe.remove();
  return colours;
}

export function text(c, string, x, y, { size = 11, weight = 450, align = 'left', colour, halo } = {}) {
  c.font = `${weight} ${size}px ${FONT}`;
  c.textAlign = align;
  c.textBaseline = 'middle';
  if (halo) {
    c.strokeStyle = halo;
    c.lineWidth = 3.5;
    c.lineJoin = 'round';
    c.strokeText(string, x, y);
  }
  c.fillStyle = colour;
  c.fillText(string, x, y);
}

export function width(c, string, size = 11, weight = 450) {
  c.font = `${weight} ${size}px ${FONT}`;
  return c.measureText(string).width;
}

export function pill(c, x, y, w, h, r) {
  c.beginPath();
  c.roundRect(x, y, w, h, r);
}

// dotting makes a pattern of dots.
export function dotting(c, colour, dpr) {
  const size = 5, tile = document.createElement('canvas');
  tile.width = tile.height = size * dpr;
  const k = tile.getContext('2d');
  k.scale(dpr, dpr);
  k.fillStyle = colour;
  k.beginPath();
  k.arc(size / 2, size / 2, 0.9, 0, 7);
  k.fill();
  return repeated(c, tile, dpr);
}

// hatching makes a pattern of diagonal lines, crossed or not.
export function hatching(c, colour, dpr, crossed) {
  const size = 7, tile = document.createElement('canvas');
  tile.width = tile.height = size * dpr;
  const k = tile.getContext('2d');
  k.scale(dpr, dpr);
  k.strokeStyle = colour;
  k.lineWidth = 1.1;
  k.beginPath();
  for (const o of [-size, 0, size]) {
    k.moveTo(o - 1, size + 1);
    k.lineTo(o + size + 1, -1);
    if (crossed) {
      k.moveTo(o - 1, -1);
      k.lineTo(o + size + 1, size + 1);
    }
  }
  k.stroke();
  return repeated(c, tile, dpr);
}

function repeated(c, tile, dpr) {
  const pattern = c.createPattern(tile, 'repeat');
  pattern.setTransform(new DOMMatrix().scale(1 / dpr));
  return pattern;
}
