// What was set at run time: bans, and quotas of single callers. Only those who have the token see them.

import * as actions from './actions.js';
import { call, token } from './api.js';
import { wordsOf } from './dialogs.js';
import { byId, cell, h, headings, rowButton, setHidden, setText, who } from './dom.js';
import { count, duration, plural, visible } from './format.js';
import { Rows } from './rows.js';

/** Read again after this long, since they also end by themselves. */
const EVERY = 10_000;
/** Rows of each list: a server may have thousands. */
const MOST = 100;

export class Operator {
  #readAt = -Infinity;
  #counts = '';
  #bans = null;
  #overrides = null;
  #problem = '';

  constructor() {
    this.bans = table('bans-table', BanRow, ['reason', 'Reason']);
    this.overrides = table('overrides-table', OverrideRow, ['quota', 'Quota']);
    byId('open-ban').addEventListener('click', () => actions.ban());
    actions.setOnChange(() => this.reload());
    token.onChange(() => { this.#bans = this.#overrides = null; this.reload(); });
  }

  reload() {
    this.#readAt = -Infinity;
    this.render(this.status);
  }

  render(status) {
    this.status = status;
    if (!status) return;
    const counts = JSON.stringify(status.bans);
    if (token.isSet && (performance.now() - this.#readAt > EVERY || counts !== this.#counts)) this.#read(counts);
    this.#renderBans(status.bans);
    this.#renderOverrides();
  }

  async #read(counts) {
    this.#readAt = performance.now();
    this.#counts = counts;
    try {
      const [{ bans }, { overrides }] = await Promise.all([call('GET', 'v1/bans'), call('GET', 'v1/overrides')]);
      const now = performance.now();
      const endsAt = (entry) => ({ ...entry, endsAt: entry.expires_in == null ? null : now + entry.expires_in * 1000 });
      this.#bans = { all: bans.length, shown: bans.slice(0, MOST).map(endsAt) };
      this.#overrides = { all: overrides.length, shown: overrides.slice(0, MOST).map(endsAt) };
      this.#problem = '';
    } catch (error) {
      this.#problem = wordsOf(error);
    }
    this.#renderBans(this.status.bans);
    this.#renderOverrides();
  }

  #renderBans({ enforced, shadow, evicted }) {
    const list = token.isSet ? this.#bans : null;
    const rows = list?.shown ?? [];
    const parts = [`${count(enforced)} enforced`];
    if (shadow) parts.push(`${count(shadow)} in shadow`);
    if (evicted) parts.push(`${count(evicted)} evicted for want of room`);
    setText(byId('bans-note'), parts.join(', '));
    setHidden(byId('open-ban'), !token.isSet);
    this.bans.rows.update(rows, ({ caller }) => caller);
    setHidden(this.bans.table, rows.length === 0);
    let text = '';
    if (this.#problem && token.isSet) text = this.#problem;
    else if (!token.isSet && enforced + shadow > 0) text = 'Enter the token to see who is banned, and to lift bans.';
    else if (!token.isSet || list?.all === 0) text = 'Nobody is banned.';
    else if (list?.all > MOST) text = `The first ${MOST} of ${count(list.all)}; “spillgate ban” lists all.`;
    setText(byId('bans-empty'), text);
    setHidden(byId('bans-empty'), text === '');
  }

  #renderOverrides() {
    const list = this.#overrides;
    setHidden(byId('overrides'), !token.isSet || !list);
    if (!token.isSet || !list) return;
    this.overrides.rows.update(list.shown, ({ limit, key }) => [limit, ...key].join('\n'));
    setHidden(this.overrides.table, list.all === 0);
    setText(byId('overrides-note'), list.all ? plural(list.all, 'override') : '');
    const text = list.all === 0 ? 'Every caller has the quota of its limit. Override one from the top callers.'
      : list.all > MOST ? `The first ${MOST} of ${count(list.all)}; “spillgate override” lists all.` : '';
    setText(byId('overrides-empty'), text);
    setHidden(byId('overrides-empty'), text === '');
  }
}

function table(id, Row, second) {
  const node = byId(id);
  const body = h('div', { role: 'rowgroup', class: 'rows' });
  const head = headings(['caller', 'Caller'], second, ['number ends', 'Ends in'], ['actions', '']);
  node.append(h('div', { role: 'rowgroup' }, head), body);
  return { table: node, rows: new Rows(body, (item) => new Row(item)) };
}

const left = (endsAt) => (endsAt == null ? 'does not end' : duration(Math.max(0, (endsAt - performance.now()) / 1000)));

class BanRow {
  constructor({ caller }) {
    this.reason = h('span', { class: 'clamp' });
    this.sub = h('span', { class: 'sub' });
    this.ends = h('span');
    const name = visible(caller);
    this.node = h('div', { role: 'row', class: 'row', 'data-ban': caller },
      cell('caller', 'Caller', who(name)),
      cell('reason', 'Reason', this.reason, this.sub), cell('number ends', 'Ends in', this.ends),
      cell('actions', '', rowButton('Lift', `Lift the ban of ${name}`, () => actions.lift(caller))));
  }

  update({ reason, limit, count: times, mode, endsAt }) {
    setText(this.reason, visible(reason));
    const notes = [limit ? `by ${visible(limit)}` : 'by an operator'];
    if (times > 1) notes.push(`ban ${times}`);
    if (mode === 'shadow') notes.push('shadow');
    setText(this.sub, notes.join(', '));
    setText(this.ends, left(endsAt));
  }
}

class OverrideRow {
  constructor(item) {
    this.item = item;
    const key = visible(item.key.join(', ') || 'global');
    this.quota = h('span');
    this.sub = h('span', { class: 'sub clamp' });
    this.ends = h('span');
    this.remove = rowButton('Remove', `Remove the quota of ${key}`, () => actions.removeOverride(this.item));
    this.node = h('div', { role: 'row', class: 'row', 'data-override': item.key.join(',') },
      cell('caller', 'Caller', who(key), h('span', { class: 'sub' }, visible(item.limit))),
      cell('quota', 'Quota', this.quota, this.sub), cell('number ends', 'Ends in', this.ends),
      cell('actions', '', this.remove));
  }

  update(item) {
    this.item = item;
    setText(this.quota, visible(item.quota));
    const notes = [item.comment && visible(item.comment), item.source === 'policy' && 'from the policy'];
    setText(this.sub, notes.filter(Boolean).join(', '));
    setText(this.ends, left(item.endsAt));
    setHidden(this.remove, item.source === 'policy');
  }
}
