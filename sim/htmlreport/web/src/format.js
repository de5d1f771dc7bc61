// Words for numbers, instants and durations. Instants are Unix milliseconds.
export const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const pad = (x, width = 2) => String(x).padStart(width, '0');

export const number = x => String(Math.round(x)).replace(/\B(?=(\d{3})+$)/g, ',');
export const plural = (k, one, many = one + 's') => `${number(k)} ${k === 1 ? one : many}`;

const utc = t => new Date(t);
export const weekday = t => `${WEEKDAYS[utc(t).getUTCDay()]} ${utc(t).getUTCDate()}`;
export const date = t => `${weekday(t)} ${MONTHS[utc(t).getUTCMonth()]}`;
export const month = t => `${MONTHS[utc(t).getUTCMonth()]} ${utc(t).getUTCFullYear()}`;
export const dayOfMonth = t => String(utc(t).getUTCDate());
export const clock = t => `${pad(utc(t).getUTCHours())}:${pad(utc(t).getUTCMinutes())}`;
export const seconds = t => `${clock(t)}:${pad(utc(t).getUTCSeconds())}`;
export const millis = t => `${seconds(t)}.${pad(utc(t).getUTCMilliseconds(), 3)}`;
export const exact = t => (t % SECOND ? millis(t) : seconds(t));
export const when = t => `${date(t)}, ${exact(t)}`;

export function span(a, b) {
  if (b - a < 1) return when(a);
  const fine = b - a < 2 * MINUTE ? seconds : clock;
  return date(a) === date(b)
    ? `${date(a)}, ${fine(a)} – ${fine(b)}`
    : `${date(a)}, ${fine(a)} – ${date(b)}, ${fine(b)}`;
}

// duration says a duration in at most two units; short in one.
export function duration(x, short = false) {
  const ms = Math.abs(x);
  if (ms < 0.5) return '0\u00a0s';
  if (ms < SECOND) return `${Math.round(ms)}\u00a0ms`;
  if (ms < 2 * MINUTE) return `${+(ms / SECOND).toFixed(ms < 10 * SECOND ? 1 : 0)}\u00a0s`;
  const [[big, bigWord], [small, smallWord]] =
    ms < HOUR ? [[MINUTE, 'min'], [SECOND, 's']]
      : ms < 2 * DAY ? [[HOUR, 'h'], [MINUTE, 'min']]
        : [[DAY, 'd'], [HOUR, 'h']];
  if (short || (ms >= 10 * MINUTE && ms < HOUR)) return `${Math.round(ms / big)}\u00a0${bigWord}`;
  const rounded = Math.round(ms / small) * small;
  const rest = Math.round((rounded % big) / small);
  return `${Math.floor(rounded / big)}\u00a0${bigWord}` + (rest ? ` ${rest}\u00a0${smallWord}` : '');
}

export const signed = x => (x < 0 ? '−' : '+') + duration(x);
