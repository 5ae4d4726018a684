// How close calls come to their quota.

import { byId, h, s, setAttribute, setText } from './dom.js';
import { count, percent, plural } from './format.js';

/** Up to 10 %, 20 %, … 100 %, and over. */
const BUCKETS = 11;
const OVER = BUCKETS - 1;
const NAMES = Array.from({ length: BUCKETS }, (_, i) => (i === OVER ? 'over' : `${(i + 1) * 10}`));

/** The histogram of one limit, or of all together. */
export class Histogram {
  #bars = NAMES.map((name, i) => {
    const number = h('span', { class: 'bar-count' });
    const bar = h('span', { class: 'bar-fill' });
    const label = h('span', { class: 'bar-name', 'aria-hidden': 'true' }, name);
    const spoken = h('span', { class: 'unseen' }, i === OVER ? 'over the quota: ' : `up to ${name} %: `);
    const space = h('span', { class: 'bar-space', 'aria-hidden': 'true' }, bar);
    const item = h('li', { class: i === OVER ? 'over' : '' }, spoken, number, space, label);
    return { number, bar, item };
  });

  constructor() {
    byId('histogram').append(...this.#bars.map(({ item }) => item));
  }

  render(limits) {
    const used = new Array(BUCKETS).fill(0);
    for (const limit of limits) limit.used.forEach((n, i) => { used[i] += n; });
    const most = Math.max(...used);
    this.#bars.forEach(({ number, bar }, i) => {
      setText(number, short(used[i]));
      number.title = count(used[i]);
      const height = `${most ? (100 * used[i]) / most : 0}%`;
      if (bar.style.height !== height) bar.style.height = height;
      bar.classList.toggle('none', used[i] === 0);
    });
    setText(byId('histogram-text'), sentence(used));
  }
}

function sentence(used) {
  const all = used.reduce((sum, n) => sum + n, 0);
  if (!all) return 'Each bar will count calls by the share of its quota that the caller had used, in percent.';
  const [over, near] = [percent(used[OVER], all), percent(used[OVER - 1], all)];
  return `Of about ${plural(all, 'call')}, ${over} went over the quota and ${near} used its last tenth.`;
}

/** At most four letters. */
function short(n) {
  if (n < 1000) return String(n);
  const [size, unit] = n < 999_500 ? [1e3, 'k'] : n < 999_500_000 ? [1e6, 'M'] : [1e9, 'G'];
  return `${(n / size).toFixed(n < 9.95 * size ? 1 : 0)}${unit}`;
}

/** The same as a small drawing for a row of a table. */
export class SmallHistogram {
  static WIDTH = 98;
  static HEIGHT = 26;
  #last = '';

  constructor() {
    this.within = s('path', { class: 'small-within' });
    this.over = s('path', { class: 'small-over' });
    const { WIDTH, HEIGHT } = SmallHistogram;
    const attributes = { class: 'small-histogram', width: WIDTH, height: HEIGHT, role: 'img' };
    this.svg = s('svg', attributes, this.within, this.over);
    this.text = h('span', { class: 'sub' });
    this.nodes = [this.svg, this.text];
  }

  update(used) {
    const key = used.join();
    if (key === this.#last) return;
    this.#last = key;
    const most = Math.max(1, ...used);
    const bar = (n, i) => {
      const height = n ? Math.max(2, (SmallHistogram.HEIGHT * n) / most) : 1;
      return `M${i * 9} ${SmallHistogram.HEIGHT}v${-height}h7v${height}z`;
    };
    const bars = used.map(bar);
    setAttribute(this.within, 'd', bars.slice(0, OVER).join(''));
    setAttribute(this.over, 'd', bars[OVER]);
    setAttribute(this.svg, 'aria-label', sentence(used));
    const all = used.reduce((sum, n) => sum + n, 0);
    setText(this.text, all ? `${percent(used[OVER], all)} over` : 'no calls yet');
  }
}
