import { $ } from './dom.js';

const NAMES = { auto: 'Auto', light: 'Light', dark: 'Dark' }, NEXT = { auto: 'light', light: 'dark', dark: 'auto' };
const KEY = 'tickonce-theme';

// theme follows the system, or what was chosen; changed is called for what the
// style sheet does not reach.
export function theme(asked, changed) {
  let chosen = NAMES[asked] ? asked : remembered();
  const apply = (as = chosen) => {
    document.documentElement.dataset.theme = as;
    $('theme').textContent = NAMES[chosen];
    $('theme').setAttribute('aria-label', `Colours: ${NAMES[chosen]}. Change`);
    changed();
  };
  $('theme').addEventListener('click', () => {
    chosen = NEXT[chosen];
    try {
      localStorage.setItem(KEY, chosen);
    } catch { /* a page that may keep nothing */ }
    apply();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => apply());
  matchMedia('print').addEventListener('change', e => apply(e.matches ? 'light' : chosen));
  apply();
}

function remembered() {
  try {
    return NAMES[localStorage.getItem(KEY)] ? localStorage.getItem(KEY) : 'auto';
  } catch {
    return 'auto';
  }
}
