import { $ } from './dom.js';

const NAMES = { auto: 'Auto', light: 'Light', dark: 'Dark' }, NEXT = { auto: 'light', light: 'dark', dark: 'auto' };
const KEY = 'tickonce-theme';

// theme follows the system, or what was chosen, and on paper is light; changed is
// called for what the style sheet does not reach. It answers what looks again.
export function theme(asked, changed) {
  const print = matchMedia('print');
  let chosen = NAMES[asked] ? asked : remembered();
  const apply = () => {
    document.documentElement.dataset.theme = print.matches || document.body.classList.contains('paper') ? 'light' : chosen;
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
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply);
  print.addEventListener('change', apply);
  apply();
  return apply;
}

function remembered() {
  try {
    return NAMES[localStorage.getItem(KEY)] ? localStorage.getItem(KEY) : 'auto';
  } catch {
    return 'auto';
  }
}
