// Rows that are kept by key: a new status changes what they say, never which element they are.

export class Rows {
  #rows = new Map();
  /** A finger does not rest on a row: only a mouse does. */
  #byMouse = false;

  /**
   * @param {Element} body what holds the rows
   * @param {(item) => {node: Element, update: (item) => void}} make builds the row of a new key
   */
  constructor(body, make) {
    this.body = body;
    this.make = make;
    body.addEventListener('pointerover', ({ pointerType }) => { this.#byMouse = pointerType === 'mouse'; });
  }

  /** Shows these items in this order. Under the pointer nothing moves: that waits until it leaves. */
  update(items, keyOf) {
    const held = this.#byMouse && this.body.matches(':hover');
    const wanted = new Map(items.map((item) => [keyOf(item), item]));
    for (const [key, row] of this.#rows) {
      if (wanted.has(key)) continue;
      if (held) {
        row.node.classList.add('gone');
      } else {
        row.node.remove();
        this.#rows.delete(key);
      }
    }
    const nodes = [];
    for (const [key, item] of wanted) {
      let row = this.#rows.get(key);
      if (!row) {
        row = this.make(item);
        this.#rows.set(key, row);
        if (held) this.body.append(row.node);
      }
      row.node.classList.remove('gone');
      row.update(item);
      nodes.push(row.node);
    }
    if (!held) arrange(this.body, nodes);
  }
}

/** Puts nodes in order without moving the one that has the focus, which would lose it. */
function arrange(parent, nodes) {
  const pinned = nodes.findIndex((node) => node.contains(document.activeElement));
  if (pinned < 0) {
    place(parent, nodes, parent.firstChild);
    return;
  }
  place(parent, nodes.slice(0, pinned), parent.firstChild);
  place(parent, nodes.slice(pinned + 1), nodes[pinned].nextSibling);
}

function place(parent, nodes, next) {
  for (const node of nodes) {
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
}
