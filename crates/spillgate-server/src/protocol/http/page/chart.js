// A line chart of rates over time. Series differ by dash, marker and label, not by colour alone.

import { condense, niceTicks, timeStep } from './axis.js';
import { h, s, setAttribute, setText } from './dom.js';
import { clock, minute, rate } from './format.js';

const HEIGHT = 190;
const PLOT = { top: 12, bottom: 22, left: 44 };
/** Room for the labels at the ends of lines: per letter, and around. */
const LETTER = 7;
const LABEL_PADDING = 16;
const LABEL_HEIGHT = 14;
/** Lines with more points than this many pixels apart hide their dashes. */
const POINT_WIDTH = 3;
/** Paths around 0, 0. */
const MARKERS = {
  circle: 'M-3.500 0a3.500 3.500 0 1 0 7 0a3.500 3.500 0 1 0 -7 0',
  square: 'M-3 -3h6v6h-6z',
  triangle: 'M0 -4l4 7h-8z',
  diamond: 'M0 -4.500l4 4.500l-4 4.500l-4 -4.500z',
  cross: 'M-3.500 -3.500l7 7M3.500 -3.500l-7 7',
};

export class Chart {
  #given = null;
  /** What is drawn: as many points as can be told apart. */
  #data = null;
  #cursor = null;
  #width = 0;

  /**
   * @param {Element} root
   * @param {string} title
   * @param {{id: string, label: string, marker: string, area?: boolean}[]} series
   * @param {(index: number|null) => void} onCursor told when the reader points at a moment
   */
  constructor(root, title, series, onCursor) {
    this.title = title;
    this.onCursor = onCursor;
    this.readout = h('output', { class: 'chart-time', 'aria-live': 'off' });
    this.legend = h('ul', { class: 'legend' });
    this.grid = s('g', { class: 'chart-grid' });
    this.lines = s('g');
    this.crosshair = s('line', { class: 'crosshair', y1: PLOT.top, y2: HEIGHT - PLOT.bottom, visibility: 'hidden' });
    const parts = [this.grid, this.crosshair, this.lines];
    this.svg = s('svg', { class: 'chart-plot', role: 'img', tabindex: 0, height: HEIGHT }, ...parts);
    this.series = series.map((one) => this.#make(one));
    root.append(h('div', { class: 'chart-head' }, h('h3', {}, title), this.readout), this.legend, this.svg);
    new ResizeObserver(([entry]) => {
      this.#width = Math.floor(entry.contentRect.width);
      this.#paint();
    }).observe(this.svg);
    this.svg.addEventListener('pointermove', (event) => this.#point(event));
    this.svg.addEventListener('pointerleave', () => this.onCursor(null));
    this.svg.addEventListener('keydown', (event) => this.#key(event));
    this.svg.addEventListener('blur', () => { this.readout.setAttribute('aria-live', 'off'); this.onCursor(null); });
  }

  #make(one) {
    const marker = () => s('path', { d: MARKERS[one.marker], class: `marker ${one.id}` });
    const value = h('b', { 'data-series': one.id });
    const swatch = s('svg', { class: 'swatch', width: 26, height: 10, 'aria-hidden': 'true' },
      s('path', { d: 'M0 5h26', class: `line ${one.id}` }), s('g', { transform: 'translate(13 5)' }, marker()));
    const item = h('li', {}, swatch, `${one.label} `, value);
    this.legend.append(item);
    const parts = {
      ...one, item, value,
      area: one.area ? s('path', { class: `area ${one.id}` }) : null,
      line: s('path', { class: `line ${one.id}` }),
      end: s('g', {}, marker()),
      endLabel: s('text', { class: `end-label ${one.id}` }),
    };
    parts.group = s('g', {}, parts.area, parts.line, parts.end, parts.endLabel);
    this.lines.append(parts.group);
    return parts;
  }

  /** @param data `{ start, step, points, values: { id: Float64Array } }`; a series without values is not shown */
  draw(data) {
    this.#given = data;
    this.#paint();
  }

  setCursor(index) {
    this.#cursor = index;
    this.#paintCursor();
  }

  #shown() {
    return this.series.filter(({ id }) => this.#data.values[id]);
  }

  #x(index) {
    const { start, step } = this.#data;
    const at = start + (index + 1) * step;
    const first = this.#given.start + this.#given.step;
    const share = (at - first) / (this.#given.points * this.#given.step - this.#given.step);
    return PLOT.left + this.#plotWidth() * Math.min(1, Math.max(0, share));
  }

  /** Where the plot ends and labels begin. */
  #right() {
    const shown = this.series.filter(({ id }) => this.#given.values[id]);
    const longest = Math.max(...shown.map(({ label }) => label.length));
    return this.#width - longest * LETTER - LABEL_PADDING;
  }

  #plotWidth() {
    return Math.max(1, this.#right() - PLOT.left);
  }

  #y(value) {
    return HEIGHT - PLOT.bottom - ((HEIGHT - PLOT.bottom - PLOT.top) * value) / this.top;
  }

  #paint() {
    if (!this.#given || !this.#width) return;
    this.#data = condense(this.#given, Math.max(1, Math.floor(this.#plotWidth() / POINT_WIDTH)));
    let most = 0;
    for (const { id } of this.#shown()) for (const value of this.#data.values[id]) if (value > most) most = value;
    const ticks = niceTicks(most);
    this.top = ticks.at(-1);
    this.#paintGrid(ticks);
    for (const series of this.series) this.#paintSeries(series);
    this.#paintLabels();
    this.#paintCursor();
  }

  #paintGrid(ticks) {
    const right = this.#right();
    const nodes = ticks.flatMap((tick) => [
      s('line', { x1: PLOT.left, x2: right, y1: this.#y(tick), y2: this.#y(tick), class: tick ? '' : 'base' }),
      s('text', { x: PLOT.left - 8, y: this.#y(tick) + 4, class: 'tick-y' }, rate(tick)),
    ]);
    const { start, step, points } = this.#given;
    const every = timeStep(points * step, right - PLOT.left);
    for (let at = Math.ceil(start / every) * every; at <= start + points * step; at += every) {
      const x = this.#x((at - this.#data.start) / this.#data.step - 1);
      if (x < PLOT.left + 12 || x > right - 4) continue;
      nodes.push(s('line', { x1: x, x2: x, y1: HEIGHT - PLOT.bottom, y2: HEIGHT - PLOT.bottom + 4, class: 'base' }),
        s('text', { x, y: HEIGHT - 5, class: 'tick-x' }, minute(at)));
    }
    this.grid.replaceChildren(...nodes);
  }

  #paintSeries({ id, group, area, line, item }) {
    const values = this.#data.values[id];
    item.hidden = !values;
    setAttribute(group, 'visibility', values ? null : 'hidden');
    if (!values) return;
    let path = '', fill = '', from = -1;
    for (let i = 0; i <= values.length; i++) {
      if (i < values.length && !Number.isNaN(values[i])) {
        path += `${from < 0 ? 'M' : 'L'}${this.#x(i).toFixed(1)} ${this.#y(values[i]).toFixed(1)}`;
        if (from < 0) from = i;
      } else if (from >= 0) {
        // A lone point is seen thanks to the round ends of the line.
        if (from === i - 1) path += 'h0';
        const base = this.#y(0);
        fill += `${path.slice(path.lastIndexOf('M'))}L${this.#x(i - 1).toFixed(1)} ${base}L${this.#x(from).toFixed(1)} ${base}Z`;
        from = -1;
      }
    }
    line.setAttribute('d', path);
    area?.setAttribute('d', fill);
  }

  /** At the end of each line what it is, moved apart where they would overlap. */
  #paintLabels() {
    const labels = [];
    for (const { id, label, end, endLabel } of this.#shown()) {
      const last = lastKnown(this.#data.values[id]);
      setAttribute(end, 'visibility', last < 0 ? 'hidden' : null);
      setText(endLabel, last < 0 ? '' : label);
      if (last < 0) continue;
      const y = this.#y(this.#data.values[id][last]);
      end.setAttribute('transform', `translate(${this.#x(last).toFixed(1)} ${y.toFixed(1)})`);
      labels.push({ endLabel, y });
    }
    labels.sort((a, b) => a.y - b.y);
    for (let i = 1; i < labels.length; i++) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + LABEL_HEIGHT);
    let floor = HEIGHT - PLOT.bottom + 2;
    for (const label of labels.reverse()) {
      label.y = Math.min(label.y, floor);
      floor = label.y - LABEL_HEIGHT;
      label.endLabel.setAttribute('x', this.#right() + 10);
      label.endLabel.setAttribute('y', (label.y + 4).toFixed(1));
    }
  }

  #paintCursor() {
    if (!this.#data || !this.#width) return;
    const { start, step, points, values } = this.#data;
    const index = this.#cursor == null ? null : Math.min(points - 1, Math.max(0, this.#cursor));
    setAttribute(this.crosshair, 'visibility', index == null ? 'hidden' : 'visible');
    if (index != null) {
      const x = this.#x(index).toFixed(1);
      this.crosshair.setAttribute('x1', x);
      this.crosshair.setAttribute('x2', x);
    }
    const said = [];
    for (const { id, label, value } of this.#shown()) {
      const at = index ?? lastKnown(values[id]);
      const number = values[id][at];
      const text = number === undefined || Number.isNaN(number) ? '–' : rate(number);
      setText(value, text);
      said.push(`${label} ${text}`);
    }
    const moment = index == null ? 'latest' : clock(start + (index + 1) * step);
    setText(this.readout, index == null ? 'per second, latest' : `per second, ${moment}`);
    const minutes = Math.round((points * step) / 60);
    setAttribute(this.svg, 'aria-label',
      `${this.title}, last ${minutes} minutes. ${moment}: ${said.join(', ')}. Arrow keys move through time.`);
  }

  #point({ clientX }) {
    if (!this.#data) return;
    const x = clientX - this.svg.getBoundingClientRect().left;
    const share = (x - PLOT.left) / this.#plotWidth();
    this.onCursor(share < -0.02 || share > 1.02 ? null : Math.round(share * (this.#data.points - 1)));
  }

  #key(event) {
    if (!this.#data) return;
    const last = this.#data.points - 1;
    const now = this.#cursor ?? last;
    const moves = { ArrowLeft: now - 1, ArrowRight: now + 1, PageUp: now - 30, PageDown: now + 30, Home: 0, End: last };
    if (event.key === 'Escape' && this.#cursor != null) this.onCursor(null);
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.readout.setAttribute('aria-live', 'polite');
    this.onCursor(Math.min(last, Math.max(0, moves[event.key])));
  }
}

function lastKnown(values) {
  for (let i = values.length - 1; i >= 0; i--) if (!Number.isNaN(values[i])) return i;
  return -1;
}
