// The two charts of traffic over time. Refusals have a scale of their own: next to what is allowed
// they would often be too small to see.

import { Chart } from './chart.js';
import { byId } from './dom.js';

const ALLOWED = [
  { id: 'allowed', label: 'allowed', marker: 'circle', area: true },
  { id: 'unlimited', label: 'unlimited', marker: 'triangle' },
];
const REFUSED = [
  { id: 'denied', label: 'denied', marker: 'square', area: true },
  { id: 'shadow_denied', label: 'shadow', marker: 'triangle' },
  { id: 'shed', label: 'shed', marker: 'diamond' },
  { id: 'banned', label: 'banned', marker: 'cross' },
  { id: 'blocked', label: 'blocked', marker: 'circle' },
];

export class Traffic {
  constructor() {
    const onCursor = (index) => { for (const chart of this.charts) chart.setCursor(index); };
    this.charts = [
      new Chart(byId('chart-allowed'), 'Allowed', ALLOWED, onCursor),
      new Chart(byId('chart-refused'), 'Refused', REFUSED, onCursor),
    ];
  }

  /** @param limits those that are shown */
  render(history, scope, limits) {
    const always = new Set(['allowed', 'denied']);
    if (limits.some(({ mode }) => mode === 'shadow')) always.add('shadow_denied');
    if (limits.some(({ adaptive }) => adaptive)) always.add('shed');
    if (limits.every(({ mode }) => mode === 'shadow')) always.delete('denied');
    const { start, step, points } = history;
    for (const chart of this.charts) {
      const values = {};
      for (const { id } of chart.series) {
        const rates = history.rates(id, scope);
        if (always.has(id) || rates.some((rate) => rate > 0)) values[id] = rates;
      }
      chart.draw({ start, step, points, values });
    }
  }
}
