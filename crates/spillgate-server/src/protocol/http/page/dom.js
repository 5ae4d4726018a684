// Elements are built from text only: nothing that came from a caller is ever read as markup.

const SVG = 'http://www.w3.org/2000/svg';

/** An element: `h('td', { class: 'number' }, 'text', child)`. Functions listen: `{ onclick: f }`. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An element of a drawing. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

export const byId = (id) => document.getElementById(id);

/** Touches the document only if something changes, so that a selection or a screen reader stays. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (value == null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

export function setHidden(node, hidden) {
  if (node.hidden !== hidden) node.hidden = hidden;
}

/** A cell of a table whose rows become cards on narrow screens: the label is shown there. */
export function cell(name, label, ...children) {
  return h('div', { role: 'cell', class: `cell ${name}`, 'data-label': label }, ...children);
}

/** A text that a caller chose, on at most a few lines; all of it is in its title. */
export function who(text) {
  return h('bdi', { class: 'who', title: text }, text);
}

/** A small button of a row. Its label also says whom it is about. */
export function rowButton(text, label, onclick) {
  return h('button', { type: 'button', class: 'small', onclick, 'aria-label': label }, text);
}

/** The heading row of such a table. */
export function headings(...names) {
  const cells = names.map(([name, text]) =>
    h('div', { role: 'columnheader', class: `cell ${name}` }, text));
  return h('div', { role: 'row', class: 'row head' }, ...cells);
}
