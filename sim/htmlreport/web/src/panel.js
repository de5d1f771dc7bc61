import { h, $, visible } from './dom.js';
import { exact, span } from './format.js';
import { MARKS, markIcon } from './marks.js';

const KEYS = [['← →', 'next'], ['F', 'fault'], ['+ − 0', 'zoom'], ['↑ ↓', 'lane'], ['Z', 'fold'], ['/', 'search']];

// chain lists causes, oldest first; the last is what they led to, or one of them.
export const chain = (run, causes, ends = true) => h('ol', { class: 'chain' }, causes.map((link, i) => h('li', { class: ends && i === causes.length - 1 ? 'self' : null },
  h('span', { class: 'link' }, link.fault >= 0 && link.kind === 'fault' ? h('span', { class: 'badge' }, run.faults[link.fault].badge) : MARKS[link.kind] ? markIcon(link.kind, 16) : h('span', { class: 'dot' })),
  h('span', {}, h('time', { class: 'number' }, exact(run.at(link.t))), link.text, link.rule ? [' ', h('span', { class: 'rule' }, link.rule)] : null))));

// Panel has the details of what is selected or, with nothing selected, the
// faults of the run.
export class Panel {
  constructor(run, timeline, goTo) {
    Object.assign(this, { run, timeline, goTo, root: $('panel') });
    this.show(null);
  }

  show(selected) {
    const within = this.root.contains(document.activeElement);
    document.body.classList.toggle('selected', Boolean(selected));
    this.root.replaceChildren(...(selected ? this.details(selected) : this.faults()));
    this.root.scrollTop = 0;
    if (within && !selected) this.leave();
    else if (within) this.root.focus({ preventScroll: true });
  }

  // enter moves the focus into the details where they cover the page, and leave
  // moves it back.
  enter() {
    if (getComputedStyle(this.root).position !== 'fixed' || this.root.contains(document.activeElement)) return;
    this.before = document.activeElement;
    this.root.focus({ preventScroll: true });
  }

  leave() {
    const { before } = this;
    (before?.isConnected && before !== document.body ? before : this.timeline.root).focus({ preventScroll: true });
    this.before = null;
  }

  faults() {
    const { run } = this, most = 40;
    const list = run.faults.slice(0, most).map(f => h('li', {}, h('button', { type: 'button', onclick: () => this.goTo({ type: 'fault', fault: f, key: f.key }) },
      h('span', { class: 'badge' }, f.badge), h('span', {}, h('b', {}, f.say), h('small', {}, span(run.at(f.at), run.at(f.end)))))));
    return [
      h('div', { class: 'head' }, h('h3', {}, run.faults.length ? 'Faults in this run' : run.recording ? 'What is recorded' : 'No faults in this run'), h('p', {}, run.faults.length ? 'Choose one, or anything on the timeline.' : 'Choose anything on the timeline.')),
      h('ol', { class: 'faults' }, list),
      run.faults.length > most ? h('p', { class: 'note' }, `and ${run.faults.length - most} more; F goes through all of them`) : null,
      h('div', { class: 'keys' }, h('h4', {}, 'Keyboard'), h('dl', {}, KEYS.filter(([key]) => key !== 'F' || run.faults.length).map(([keys, what]) =>
        h('div', {}, h('dt', {}, keys.split(' ').map(k => h('kbd', {}, k))), h('dd', {}, what))))),
    ].filter(Boolean);
  }

  details({ words }) {
    const { run, timeline } = this;
    const icon = words.badge ? h('span', { class: 'badge' }, words.badge) : MARKS[words.kind] ? markIcon(words.kind, 18) : null;
    return [
      h('div', { class: 'head' },
        h('button', { type: 'button', class: 'close', 'aria-label': 'Close details', onclick: () => timeline.select(null) }, '×'),
        icon, h('h3', {}, words.title), h('p', { class: 'number' }, words.when)),
      h('div', { class: 'actions' }, h('button', { type: 'button', onclick: () => timeline.look(...words.span) }, 'Zoom to it')),
      words.facts.length ? h('dl', { class: 'details' }, words.facts.map(([what, is]) => h('div', {}, h('dt', {}, what), h('dd', {}, h('bdi', {}, is))))) : null,
      words.note ? h('p', { class: 'note' }, words.note) : null,
      words.causes.length ? h('h4', {}, words.chain || 'Why') : null,
      words.causes.length ? chain(run, words.causes, !words.chain) : null,
      words.story?.length ? h('ul', { class: 'effects' }, words.story.map(line => h('li', {}, visible(line.text), line.rule ? [' ', h('span', { class: 'rule' }, line.rule)] : null))) : null,
    ].filter(Boolean);
  }
}

