// The table of limits: what each decided, how full it is, and its trend.

import { byId, cell, h, setAttribute, setHidden, setText } from './dom.js';
import { count, percent, plural, rate, visible } from './format.js';
import { SmallHistogram } from './histogram.js';
import { Rows } from './rows.js';
import { Sparkline } from './sparkline.js';

/** Rows until all are asked for. */
const FEW = 10;
const OUTCOMES = [['allowed', 'Allowed'], ['denied', 'Denied'], ['shadow_denied', 'Shadow'], ['shed', 'Shed']];

export class LimitsTable {
  /** What was asked for, and what is shown. */
  #order = null;
  #sortedBy = 'policy';
  #all = false;
  #headings = new Map();
  #view = null;

  /** @param onChoose told which limit to show alone */
  constructor(onChoose) {
    const table = byId('limits-table');
    this.table = table;
    this.body = h('div', { role: 'rowgroup', class: 'rows' });
    const sortBy = (order) => { this.#order = order; this.render(this.#view); };
    const onSort = (order) => sortBy(this.#sortedBy === order ? 'policy' : order);
    byId('limits-sort').addEventListener('change', ({ target }) => sortBy(target.value));
    table.append(h('div', { role: 'rowgroup' }, this.#head(onSort)), this.body);
    this.rows = new Rows(this.body, ({ limit }) => new LimitRow(limit, onChoose));
    byId('limits-filter').addEventListener('input', () => this.render(this.#view));
    byId('limits-more').addEventListener('click', () => { this.#all = !this.#all; this.render(this.#view); });
  }

  #head(onSort) {
    const sortable = (name, text) => {
      const node = h('div', { role: 'columnheader', class: name === 'name' ? 'cell name' : `cell number ${name}` },
        h('button', { type: 'button', class: 'sort', onclick: () => onSort(name) }, text));
      this.#headings.set(name, node);
      return node;
    };
    const plain = (name, text) => h('div', { role: 'columnheader', class: `cell ${name}` }, text);
    return h('div', { role: 'row', class: 'row head' },
      sortable('name', 'Limit'), plain('trend', 'Trend'),
      ...OUTCOMES.map(([name, text]) => sortable(name, text)),
      plain('used', 'Share of quota'), plain('fill', 'Callers in the table'));
  }

  /** @param view `{ status, history, scope }` */
  render(view) {
    this.#view = view;
    if (!view?.status) return;
    const { status, history, scope } = view;
    const order = (this.#sortedBy = this.#order ?? (status.limits.length > FEW ? 'denied' : 'policy'));
    if (byId('limits-sort').value !== order) byId('limits-sort').value = order;
    for (const [name, node] of this.#headings) {
      const direction = name === 'name' ? 'ascending' : 'descending';
      setAttribute(node, 'aria-sort', name === order ? direction : null);
    }
    const some = (is) => status.limits.some(is);
    this.table.classList.toggle('no-shadow', !some((limit) => limit.shadow_denied || limit.mode === 'shadow'));
    this.table.classList.toggle('no-shed', !some((limit) => limit.shed || limit.adaptive));
    const wanted = byId('limits-filter').value.trim().toLowerCase();
    const found = status.limits.filter(({ name }) => name.toLowerCase().includes(wanted));
    const items = sorted(found, order, history).map((limit) => ({ limit, history, scope }));
    const shown = this.#all || wanted ? items : items.slice(0, FEW);
    this.rows.update(shown, ({ limit }) => limit.name);
    this.#foot(status, items.length, shown.length, wanted);
  }

  #foot(status, found, shown, wanted) {
    const left = status.more_limits ? `, and ${count(status.more_limits)} that are less busy` : '';
    const all = status.limits.length;
    setText(byId('limits-count'), `${wanted ? `${count(found)} of ` : ''}${plural(all, 'limit')}${left}`);
    setHidden(byId('limits-filter-field'), all <= FEW && !wanted);
    setHidden(byId('limits-sort-field'), all <= FEW);
    const more = byId('limits-more');
    setHidden(more, Boolean(wanted) || found <= FEW);
    setText(more, shown < found ? `Show all ${count(found)}` : `Show the first ${FEW}`);
  }
}

function sorted(limits, order, history) {
  if (order === 'name') return limits.toSorted((a, b) => a.name.localeCompare(b.name));
  if (order === 'policy') return limits;
  // By the range shown, which moves less than the last second does; then since the start.
  const recent = new Map(limits.map(({ name }) => [name, history?.total(order, name) ?? 0]));
  return limits.toSorted((a, b) => recent.get(b.name) - recent.get(a.name) || b[order] - a[order]);
}

/** Rows that are in view, or nearly: of 200 limits, only their trends are drawn. */
const inView = new WeakSet();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) inView.add(target);
    else inView.delete(target);
  }
}, { rootMargin: '200px' });

class LimitRow {
  #numbers = {};

  constructor(limit, onChoose) {
    const onclick = () => onChoose(limit.name);
    this.choose = h('button', { type: 'button', class: 'name-button', onclick }, visible(limit.name));
    this.badges = h('span', { class: 'badges' });
    this.about = h('span', { class: 'sub' });
    this.spark = new Sparkline();
    this.used = new SmallHistogram();
    this.fill = h('span', { class: 'meter', 'aria-hidden': 'true' }, h('span'));
    this.callers = h('span', { 'data-limit': limit.name, 'data-field': 'callers' });
    this.more = h('span', { class: 'sub' });
    const outcomes = OUTCOMES.map(([name, label]) => {
      const second = h('span', { class: 'now', 'data-limit': limit.name, 'data-field': `${name}-second` });
      const total = h('span', { class: 'sub', 'data-limit': limit.name, 'data-field': name });
      this.#numbers[name] = { second, total };
      return cell(`number ${name}`, label, h('span', { class: 'rate' }, second, h('small', {}, '/s')), total);
    });
    this.node = h('div', { role: 'row', class: 'row', 'data-row': limit.name },
      cell('name', 'Limit', h('span', { class: 'name-line' }, this.choose, this.badges), this.about),
      cell('trend', 'Trend', this.spark.svg), ...outcomes,
      cell('used', 'Share of quota', ...this.used.nodes),
      cell('fill', 'Callers', this.callers, this.fill, this.more));
    observer.observe(this.node);
  }

  update({ limit, history, scope }) {
    const badges = [limit.mode === 'shadow' && 'shadow', limit.adaptive && 'adaptive'].filter(Boolean);
    if (this.badges.dataset.of !== badges.join()) {
      this.badges.dataset.of = badges.join();
      this.badges.replaceChildren(...badges.map((text) => h('span', { class: `badge ${text}` }, text)));
    }
    const about = [limit.quota, `per ${limit.per}`, limit.algorithm.replaceAll('-', ' ')];
    setText(this.about, about.map(visible).join(' · '));
    setAttribute(this.choose, 'aria-pressed', scope === limit.name);
    this.node.classList.toggle('chosen', scope === limit.name);
    for (const [name, { second, total }] of Object.entries(this.#numbers)) {
      setText(second, rate(limit.second[name]));
      setText(total, `${count(limit[name])} total`);
      setAttribute(total, 'data-value', limit[name]);
      const { classList } = second.parentNode.parentNode;
      classList.toggle('zero', limit.second[name] === 0);
      classList.toggle('never', limit[name] === 0);
    }
    const refused = limit.mode === 'shadow' ? 'shadow_denied' : limit.adaptive ? 'shed' : 'denied';
    if (history && inView.has(this.node)) this.spark.update(history.rates('allowed', limit.name), history.rates(refused, limit.name));
    this.used.update(limit.used);
    this.#updateFill(limit);
  }

  #updateFill({ callers, capacity, evictions, held, expired }) {
    setHidden(this.fill, callers == null);
    setText(this.callers, callers == null ? 'in Redis' : `${count(callers)} of ${count(capacity)}`);
    setAttribute(this.callers, 'data-value', callers);
    const width = `${Math.min(100, (100 * (callers ?? 0)) / Math.max(1, capacity))}%`;
    if (this.fill.firstChild.style.width !== width) this.fill.firstChild.style.width = width;
    const notes = [];
    if (held != null) notes.push(`${plural(held, 'permit')} held`);
    if (expired) notes.push(`${count(expired)} expired`);
    if (evictions) notes.push(`${count(evictions)} evicted`);
    else if (callers != null && held == null) notes.push(`${percent(callers, capacity)} full`);
    setText(this.more, notes.join(', '));
    setAttribute(this.more, 'data-evictions', evictions);
    this.more.classList.toggle('warn', Boolean(evictions));
  }
}
