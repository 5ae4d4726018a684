// A small trend for a row of a table: what was allowed as an area, what was not as a line.

import { s, setAttribute } from './dom.js';

const WIDTH = 132;
const HEIGHT = 30;
const POINTS = 60;

export class Sparkline {
  constructor() {
    this.area = s('path', { class: 'spark-area' });
    this.line = s('path', { class: 'spark-line' });
    const size = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, preserveAspectRatio: 'none' };
    this.svg = s('svg', { class: 'sparkline', 'aria-hidden': 'true', ...size }, this.area, this.line);
  }

  update(allowed, refused) {
    const [area, line] = [means(allowed), means(refused)];
    const most = Math.max(1, ...area, ...line);
    const x = (i) => ((WIDTH * i) / (POINTS - 1)).toFixed(1);
    const y = (value) => (HEIGHT - 1.5 - ((HEIGHT - 3) * value) / most).toFixed(1);
    const path = (values) => values.map((value, i) => `${i ? 'L' : 'M'}${x(i)} ${y(value)}`).join('');
    setAttribute(this.area, 'd', `${path(area)}L${WIDTH} ${HEIGHT}L0 ${HEIGHT}Z`);
    setAttribute(this.line, 'd', line.some((value) => value > 0) ? path(line) : '');
  }
}

/** As many points as can be told apart; 0 where nothing is known. */
function means(values) {
  const size = values.length / POINTS;
  return Array.from({ length: POINTS }, (_, i) => {
    let sum = 0, known = 0;
    for (let k = Math.floor(i * size); k < Math.max(Math.floor(i * size) + 1, Math.floor((i + 1) * size)); k++) {
      if (values[k] >= 0) { sum += values[k]; known += 1; }
    }
    return known ? sum / known : 0;
  });
}
