// Who is denied most, and who is busiest.

import * as actions from './actions.js';
import { call, revealed, token } from './api.js';
import { byId, cell, h, headings, rowButton, setAttribute, setHidden, setText, who } from './dom.js';
import { count, duration, visible } from './format.js';
import { Rows } from './rows.js';

/** Rows until all are asked for. */
const FEW = 10;
/** A status names the top callers of all limits together; of a single limit the server knows more. */
const TOP_OF_LIMIT = 20;
const EVERY = 3000;

export class CallersTable {
  #all = false;
  #view = null;
  /** The answer about the limit that is shown alone. */
  #top = null;
  #asked = 0;

  constructor() {
    const table = byId('callers-table');
    this.table = table;
    this.body = h('div', { role: 'rowgroup', class: 'rows' });
    const head = headings(['caller', 'Caller'], ['limit', 'Limit'], ['number denied', 'Denied'],
      ['number shadow_denied', 'Shadow'], ['number allowed', 'Allowed'], ['actions', '']);
    table.append(h('div', { role: 'rowgroup' }, head), this.body);
    this.rows = new Rows(this.body, (item) => new CallerRow(item));
    byId('callers-by').addEventListener('change', () => this.render(this.#view));
    byId('callers-more').addEventListener('click', () => { this.#all = !this.#all; this.render(this.#view); });
  }

  /** @param view `{ status, scope, paused }` */
  render(view) {
    this.#view = view;
    if (!view?.status) return;
    const { status, scope, paused } = view;
    if (!paused) this.#ask(scope);
    const isBusiest = byId('callers-by').querySelector(':checked').value === 'busiest';
    const seconds = Math.min(status.top.seconds, status.uptime);
    const items = listed(status.top, scope, scope ? this.#top : null, isBusiest);
    const shown = this.#all ? items : items.slice(0, FEW);
    const most = Math.max(1, ...items.map((item) => measure(item, isBusiest)));
    this.table.classList.toggle('no-shadow', !items.some((item) => item.shadow_denied));
    this.table.classList.toggle('no-actions', !token.isSet);
    const withShare = shown.map((item) => ({ ...item, share: measure(item, isBusiest) / most, isBusiest }));
    this.rows.update(withShare, ({ limit, caller }) => `${limit}\n${caller}`);
    setHidden(this.table, items.length === 0);
    const empty = byId('callers-empty');
    setHidden(empty, items.length > 0);
    const by = scope ? ` by ${visible(scope)}` : '';
    setText(empty, `Nobody was ${isBusiest ? 'allowed' : 'denied'}${by} in the last ${duration(seconds)}.`);
    const masked = token.isSet ? '' : ', secrets as fingerprints';
    setText(byId('callers-note'), items.length ? `last ${duration(seconds)}${masked}` : '');
    const more = byId('callers-more');
    setHidden(more, items.length <= FEW);
    setText(more, this.#all ? `Show the first ${FEW}` : `Show all ${count(items.length)}`);
  }

  /** Asks now and then for more about a single limit. */
  async #ask(scope) {
    if (this.#top?.limit !== scope) this.#top = null;
    if (!scope || performance.now() - this.#asked < EVERY) return;
    this.#asked = performance.now();
    const path = revealed(`v1/top?limit=${encodeURIComponent(scope)}&count=${TOP_OF_LIMIT}`);
    const answer = await call('GET', path).catch(() => null); // the status still names some
    this.#top = answer?.limits?.find(({ limit }) => limit === scope) ?? null;
  }
}

const measure = (item, isBusiest) => (isBusiest ? item.allowed ?? 0 : item.denied + item.shadow_denied);

const NONE = { denied: 0, shadow_denied: 0, error: 0, allowed: null };

/** The callers to show, most first: of a status, and of what the server said of a limit. */
function listed({ callers, busiest = [] }, scope, top, isBusiest) {
  const items = new Map();
  const add = (item) => {
    const key = JSON.stringify([item.limit, item.caller]);
    const [known, merged] = [items.get(key) ?? NONE, { ...NONE, ...item }];
    // The status comes first, and is newer.
    for (const field of Object.keys(NONE)) merged[field] = known[field] || merged[field];
    items.set(key, merged);
  };
  const isWanted = ({ limit }) => !scope || limit === scope;
  for (const item of [...callers, ...busiest].filter(isWanted)) add(item);
  for (const field of ['denied', 'shadow_denied', 'allowed']) {
    const error = field === 'allowed' ? 0 : top?.[field]?.error ?? 0;
    for (const { count: n, ...caller } of top?.[field]?.callers ?? []) add({ limit: scope, ...caller, error, [field]: n });
  }
  const found = [...items.values()].filter((item) => measure(item, isBusiest) > 0);
  return found.sort((a, b) => measure(b, isBusiest) - measure(a, isBusiest));
}

class CallerRow {
  #item = null;

  constructor({ limit, caller }) {
    this.denied = h('span');
    this.shadow = h('span');
    this.allowed = h('span');
    this.bar = h('span', { class: 'meter who-meter denied', 'aria-hidden': 'true' }, h('span'));
    const name = visible(caller);
    const button = (text, run) => rowButton(text, `${text} ${name}`, () => run(this.#item));
    this.reset = button('Reset', actions.reset);
    this.override = button('Override', actions.override);
    this.ban = button('Ban', ({ ban }) => actions.ban(ban));
    this.node = h('div', { role: 'row', class: 'row', 'data-caller': caller, 'data-of-limit': limit },
      cell('caller', 'Caller', who(name), this.bar), cell('limit', 'Limit', visible(limit)),
      cell('number denied', 'Denied', this.denied), cell('number shadow_denied', 'Shadow', this.shadow),
      cell('number allowed', 'Allowed', this.allowed),
      cell('actions', '', this.reset, this.override, this.ban));
  }

  update(item) {
    this.#item = item;
    const { denied, shadow_denied: shadow, error, allowed, values, ban, share, isBusiest } = item;
    setText(this.denied, error && denied ? `${count(denied)}–${count(denied + error)}` : count(denied));
    setAttribute(this.denied, 'data-value', denied);
    setText(this.shadow, error && shadow ? `${count(shadow)}–${count(shadow + error)}` : count(shadow));
    this.shadow.parentNode.classList.toggle('never', shadow === 0);
    setText(this.allowed, allowed == null ? '–' : `≈ ${count(allowed)}`);
    const width = `${100 * share}%`;
    this.bar.classList.toggle('denied', !isBusiest);
    if (this.bar.firstChild.style.width !== width) this.bar.firstChild.style.width = width;
    setHidden(this.reset, !values);
    setHidden(this.override, !values);
    setHidden(this.ban, !ban);
  }
}
