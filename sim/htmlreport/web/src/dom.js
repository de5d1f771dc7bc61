// Elements are built node by node and text is only ever text: the page's
// policy forbids markup from strings, so a name cannot become any.
const SVG = 'http://www.w3.org/2000/svg';

export const $ = id => document.getElementById(id);

// h makes an element; an attribute that is null or false is left out, one that
// begins with "on" is a listener.
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

// name is a text from the scenario: whatever its letters, it does not turn the
// text around it.
export const name = text => h('bdi', { class: 'name' }, visible(text));

// isolated is name within a text that is no element's alone.
export const isolated = text => (LEFTWARDS.test(text) ? `\u2068${visible(text)}\u2069` : visible(text));
const LEFTWARDS = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

// visible shows characters that would not be seen as what they are.
export const visible = text => String(text).replace(UNSEEN, shown);

// lines is visible of a text of several lines.
export const lines = text => String(text).replace(UNSEEN, c => (c === '\n' || c === '\t' ? c : shown(c)));

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const shown = c => `\u27e8${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
