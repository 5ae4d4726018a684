// Limits that follow load: where each is between its bounds, and why it moved last.

import { byId, h, setHidden, setText } from './dom.js';
import { count, percent, plural, rate, time, visible } from './format.js';
import { Rows } from './rows.js';

const REASONS = {
  'started': 'Nothing was seen yet.',
  'unused': 'Held: less than half of it is in use.',
  'steady': 'Held: it is where it should be.',
  'short-queue': 'Raised: next to nothing waits in the service.',
  'long-queue': 'Lowered: too much waits in the service.',
  'slower-service': 'Raised again: the service itself became slower.',
  'probe': 'Lowered for a moment: to see whether less of a queue completes as many calls.',
  'probed': 'Moved to what the probe has shown.',
  'below-target': 'Raised: the signal is below its target.',
  'above-target': 'Lowered: the signal is above its target.',
  'undone': 'Raised again: lowering it cost more than it gained.',
  'failures': 'Lowered: calls failed.',
  'recovered': 'Raised: calls succeed again.',
  'no-signal': 'Held: the signal is missing.',
};

/** Why a limit moved last, in words; a reason that this page does not know as it is. */
export const reasonOf = (reason) => REASONS[reason] ?? visible(reason);

/** An amount of an adaptive limit: in flight, per second, or a share of all requests. */
export function amountOf(kind, amount) {
  if (kind === 'share') return percent(amount, 1);
  return kind === 'rate' ? `${rate(amount)}/s` : rate(amount);
}

const UNITS = { concurrency: 'in flight', rate: 'per second', share: 'of all requests' };

function signalOf({ signal, 'signal-value': value }) {
  if (value == null) return `${visible(signal)}: missing`;
  const isTime = signal === 'latency' || signal === 'queue-wait';
  return `${visible(signal)} ${isTime ? time(value) : percent(value, 1)}`;
}

export class AdaptiveList {
  constructor() {
    this.rows = new Rows(byId('adaptive-list'), (limit) => new Card(limit));
  }

  render({ limits }, scope) {
    const items = limits.filter(({ adaptive, name }) => adaptive && (!scope || scope === name));
    setHidden(byId('adaptive'), items.length === 0);
    this.rows.update(items, ({ name }) => name);
  }
}

class Card {
  constructor({ name }) {
    this.value = h('b', { class: 'card-value' });
    this.unit = h('span', { class: 'muted' });
    this.reason = h('p', { class: 'card-reason' });
    this.mark = h('span', { class: 'span-mark' });
    this.min = h('span');
    this.max = h('span');
    this.facts = h('p', { class: 'sub' });
    this.node = h('div', { class: 'panel card', 'data-adaptive': name },
      h('h3', {}, visible(name)), h('p', {}, this.value, ' ', this.unit),
      h('div', { class: 'span', 'aria-hidden': 'true' },
        h('span', { class: 'span-line' }, this.mark), h('span', { class: 'span-ends' }, this.min, this.max)),
      this.reason, this.facts);
  }

  update({ adaptive, held }) {
    const { kind, controller, limit, min, max, reason, changes, refused } = adaptive;
    setText(this.value, amountOf(kind, limit));
    const flight = held == null ? '' : `, ${count(held)} held now`;
    setText(this.unit, `${UNITS[kind] ?? visible(kind)}${flight}`);
    setText(this.reason, reasonOf(reason));
    setText(this.min, amountOf(kind, min));
    setText(this.max, amountOf(kind, max));
    const place = `${max > min ? Math.min(100, Math.max(0, (100 * (limit - min)) / (max - min))) : 0}%`;
    if (this.mark.style.left !== place) this.mark.style.left = place;
    const moved = `${plural(changes, 'change')}, ${count(refused)} shed`;
    const facts = [`controller ${visible(controller)}`, signalOf(adaptive), moved];
    setText(this.facts, facts.join(' · '));
  }
}
