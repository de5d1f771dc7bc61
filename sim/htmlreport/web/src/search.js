import { $, h, visible } from './dom.js';
import { number, span, when } from './format.js';
import { MARKS } from './marks.js';

const MOST = 8;

// listenToSearch finds faults, leases, schedules and what became of them, and
// goes to the one that is chosen.
export function listenToSearch(run, goTo) {
  const entries = index(run), input = $('search'), list = $('found');
  let found = [], chosen = -1;
  const close = () => {
    list.hidden = true;
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
  };
  const choose = i => {
    chosen = i;
    [...list.children].forEach((item, k) => item.setAttribute('aria-selected', String(k === i)));
    if (found[i]) input.setAttribute('aria-activedescendant', `found-${i}`);
  };
  const go = i => {
    close();
    goTo(found[i].ref);
    $('plot').focus({ preventScroll: true });
  };
  input.addEventListener('input', () => {
    const words = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return close();
    found = entries.filter(e => words.every(w => e.text.includes(w))).slice(0, MOST);
    list.replaceChildren(...found.map((e, i) => h('li', { id: `found-${i}`, role: 'option', 'aria-selected': 'false', onpointerdown: event => { event.preventDefault(); go(i); } },
      h('b', {}, e.label), h('small', {}, e.sub))));
    if (!found.length) list.append(h('li', { class: 'none', role: 'option', 'aria-selected': 'false', 'aria-disabled': 'true' }, 'Nothing of that name in this run'));
    list.hidden = false;
    input.setAttribute('aria-expanded', 'true');
    choose(found.length ? 0 : -1);
  });
  input.addEventListener('keydown', e => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (by && found.length) choose((chosen + by + found.length) % found.length);
    else if (e.key === 'Enter' && found[chosen] && !list.hidden) go(chosen);
    else if (e.key === 'Escape') {
      input.value = '';
      close();
    } else return;
    e.preventDefault();
  });
  input.addEventListener('blur', close);
  document.addEventListener('keydown', e => {
    if (e.key !== '/' || e.ctrlKey || e.metaKey || e.target.closest('input,textarea,select')) return;
    e.preventDefault();
    input.focus();
  });
}

function index(run) {
  const entries = [];
  const add = (label, sub, ref, more = '') => entries.push({ label, sub, ref, text: `${label} ${sub} ${more}`.toLowerCase() });
  for (const f of run.faults) add(`${f.badge} ${f.say}`, span(run.at(f.at), run.at(f.end)), { type: 'fault', fault: f, key: f.key }, f.text);
  for (const f of run.failures) add(f.title, when(run.at(f.t)), { type: 'failure', failure: f, key: f.key }, f.detail);
  for (const s of run.schedules) {
    const name = visible(s.name), exceptions = [...s.fires.filter(f => f.kind !== 'fired').map(fire => ({ type: 'fire', fire })), ...s.skips.map(gap => ({ type: 'gap', gap }))];
    const runs = s.runs.length ? { type: 'runs', schedule: s, runs: s.runs, key: s.runs[0].key } : null;
    if (runs) add(name, `${s.spec}, ${number(s.due)} boundaries`, runs, visible(s.queue));
    for (const e of exceptions) {
      const what = e.fire || e.gap;
      add(`${name}: ${number(what.count)} ${MARKS[what.kind].say}`, when(run.at(what.first)), { ...e, schedule: s, key: what.key });
    }
  }
  for (const p of run.processes) {
    for (const lease of p.leases) add(`${p.name}, term ${lease.term}`, when(run.at(lease.from)), { type: 'lease', process: p, lease, key: `${p.id}/lease/${lease.from}` });
    p.marks.forEach((mark, i) => add(mark.text, when(run.at(mark.t)), { type: 'mark', process: p, mark, key: `${p.id}/mark/${i}` }));
  }
  return entries;
}
