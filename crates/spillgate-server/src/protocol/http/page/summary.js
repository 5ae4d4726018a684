// The strip of numbers at the top, what needs attention, and the totals at the bottom.

import { byId, h, setAttribute, setHidden, setText } from './dom.js';
import { count, duration, percent, plural, rate, time, visible } from './format.js';

const TILES = [
  ['allowed', 'Allowed'], ['denied', 'Denied'], ['shadow_denied', 'Shadow denied'], ['shed', 'Shed'],
  ['refused', 'Banned or blocked'], ['decision', 'Decision time'], ['bans', 'Bans'], ['store', 'Store'],
];

/** Shown per second, with their share. */
const RATES = ['allowed', 'denied', 'shadow_denied', 'shed', 'refused'];

const TOTALS = [
  ['allowed', 'Allowed', 'decisions of all limits'], ['denied', 'Denied', 'over a quota'],
  ['shadow_denied', 'Shadow denied', 'would have been denied'], ['shed', 'Shed', 'by adaptive limits'],
  ['unlimited', 'Unlimited', 'no limit matched'], ['blocked', 'Blocked', 'on the block list'],
  ['banned', 'Banned', 'refused by a ban'],
  ['shadow_banned', 'Shadow banned', 'would have been refused by a ban'],
  ['without_host', 'Without a host', 'refused: no clear host'],
  ['store_errors', 'Store errors', 'the store could not answer'],
];

/** How long an eviction stays news. */
const RECENT = 60_000;

export class Summary {
  #tiles = new Map();
  #totals = new Map();

  constructor() {
    for (const [id, label] of TILES) {
      const value = h('span', { 'data-now': id }, '–');
      const note = h('span', { class: 'tile-note' });
      const unit = RATES.includes(id) ? h('small', {}, '/s') : null;
      const node = h('div', { class: `tile ${id}` },
        h('span', { class: 'tile-name' }, label), h('span', { class: 'tile-value' }, value, unit), note);
      this.#tiles.set(id, { node, value, note });
      byId('summary').append(node);
    }
    for (const [id, label, about] of TOTALS) {
      const value = h('dd', { 'data-total': id }, '–');
      this.#totals.set(id, value);
      byId('totals').append(h('div', {}, h('dt', {}, label, h('small', {}, about)), value));
    }
  }

  render(status) {
    const { second, decision, bans, store, limits } = status;
    const rates = { ...second, refused: second.banned + second.blocked };
    const all = rates.allowed + rates.denied + rates.shed + rates.refused;
    for (const id of RATES) this.#tile(id, rate(rates[id]), all ? percent(rates[id], all) : 'nothing asked');
    const hasShadow = limits.some((limit) => limit.mode === 'shadow' || limit.shadow_denied);
    setHidden(this.#tiles.get('shadow_denied').node, !hasShadow);
    setHidden(this.#tiles.get('shed').node, !limits.some((limit) => limit.adaptive || limit.shed));
    if (decision) this.#tile('decision', time(decision.p50), `99 % within ${time(decision.p99)}`);
    else this.#tile('decision', '–', 'no decision lately');
    this.#tile('bans', count(bans.enforced), bans.shadow ? `${count(bans.shadow)} in shadow` : 'in force');
    const name = store ? capital(store.kind) : 'Memory';
    this.#tile('store', store ? `${name} ${store.state}` : name, store ? 'shared counters' : 'of this server');
    this.#tiles.get('store').node.dataset.state = store?.state ?? 'memory';
    this.#renderTotals(status);
  }

  #tile(id, value, note) {
    const tile = this.#tiles.get(id);
    setText(tile.value, value);
    setText(tile.note, note);
    tile.node.classList.toggle('zero', value === '0');
  }

  #renderTotals({ total, limits, uptime, version }) {
    for (const [id, node] of this.#totals) {
      const n = total[id] ?? limits.reduce((sum, limit) => sum + (limit[id] ?? 0), 0);
      setText(node, count(n));
      setAttribute(node, 'data-value', n);
    }
    setText(byId('uptime'), `up for ${duration(uptime)}`);
    setText(byId('version'), visible(version));
  }
}

const capital = (text) => visible(text).replace(/^./, (letter) => letter.toUpperCase());

/** What needs attention. Said once: the list is only touched when it changes. */
export class Notices {
  #shown = '';
  /** By limit: how many evictions there were, and when that last changed. */
  #evictions = new Map();

  /** True if callers were evicted lately. Older evictions are in the table. */
  #isEvicting({ name, evictions }) {
    const [before, at] = this.#evictions.get(name) ?? [evictions, -Infinity];
    const grewAt = evictions > before ? performance.now() : at;
    this.#evictions.set(name, [evictions, grewAt]);
    return performance.now() - grewAt < RECENT;
  }

  render(status) {
    const notices = [];
    const { phase, reload_failure: failure, store, limits } = status;
    if (phase === 'starting') notices.push(['Starting', 'The server does not answer checks yet.']);
    if (phase === 'draining') notices.push(['Draining', 'The server finishes what it has begun, and ends.']);
    if (failure) notices.push(['The new configuration was refused; the old one stays in force', failure]);
    const name = store ? capital(store.kind) : '';
    if (store?.state === 'down') notices.push([`${name} is down`, store.outage ?? 'unavailable']);
    if (store?.mismatch) notices.push([`${name}: servers disagree`, store.mismatch]);
    if (store?.warning) notices.push([`${name}: check its settings`, store.warning]);
    const evicting = limits.filter((limit) => this.#isEvicting(limit));
    if (evicting.length) {
      const some = evicting.slice(0, 3).map((limit) => limit.name).join(', ');
      const more = evicting.length > 3 ? ', …' : '';
      const advice = 'more callers than the table has room for. Raise the capacity.';
      notices.push([`Evictions in ${plural(evicting.length, 'limit')}`, `${some}${more}: ${advice}`]);
    }
    if (this.#evictions.size > 2 * limits.length) this.#evictions.clear(); // of former policies
    const key = JSON.stringify(notices);
    if (key === this.#shown) return;
    this.#shown = key;
    byId('notices').replaceChildren(...notices.map(([title, text]) =>
      h('p', { class: 'notice' }, h('b', {}, visible(title)), ' ', h('span', {}, visible(text)))));
  }
}
