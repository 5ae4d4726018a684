// What operators change: each asks first.

import { call, keyPath, segment } from './api.js';
import { ask } from './dialogs.js';
import { clock } from './format.js';

const WHO = 'Caller: an address, key:NAME or user:NAME';
const TTL = { name: 'ttl', label: 'For how long', placeholder: '1h' };

/** Told after every change, so that lists are read again. */
let onChange = () => {};
export const setOnChange = (listener) => { onChange = listener; };

async function change(...request) {
  try {
    return await call(...request);
  } finally {
    onChange();
  }
}

export function reset({ limit, caller, values }) {
  ask({
    title: 'Reset a caller',
    text: values.length
      ? `Gives back all that this caller has spent under ${limit}: its next calls are its first ones again.`
      : `${limit} counts everyone together: gives back all that anyone has spent under it.`,
    subject: values.length ? caller : limit,
    submit: 'Reset',
    async run() {
      await change('DELETE', keyPath(limit, values));
      return `Reset: nothing is spent under ${limit} any more.`;
    },
  });
}

export function override({ limit, caller, values }) {
  ask({
    title: 'Give a caller its own quota',
    text: values.length
      ? `Counts in place of the quota of ${limit}, for this caller only.`
      : `${limit} counts everyone together: counts in place of its quota, for everyone.`,
    subject: values.length ? caller : limit,
    fields: [
      { name: 'quota', label: 'Quota', placeholder: '100/s burst 200', required: true },
      { ...TTL, label: 'For how long (empty: until it is removed)' },
      { name: 'comment', label: 'Why', maxlength: 256 },
    ],
    submit: 'Set quota',
    async run({ quota, ttl, comment }) {
      const body = { quota, ...(ttl && { ttl }), ...(comment && { comment }) };
      await change('PUT', keyPath(limit, values, '/override'), { body });
      return `Set: ${quota} under ${limit}${ttl ? `, for ${ttl}` : ''}.`;
    },
  });
}

export function removeOverride({ limit, key }) {
  ask({
    title: 'Remove a quota',
    text: `The quota of ${limit} counts again for this caller.`,
    subject: key.join(', '),
    submit: 'Remove',
    async run() {
      await change('DELETE', keyPath(limit, key, '/override'));
      return `Removed: the quota of ${limit} counts again.`;
    },
  });
}

/** Bans a caller; asks whom if none is named. */
export function ban(caller) {
  ask({
    title: 'Ban a caller',
    text: 'Refuses every request of this caller until the ban ends or is lifted.',
    subject: caller,
    fields: [
      ...(caller ? [] : [{ name: 'caller', label: WHO, placeholder: '203.0.113.7', required: true }]),
      { ...TTL, value: '1h', required: true },
      { name: 'reason', label: 'Why', maxlength: 256 },
    ],
    submit: 'Ban',
    async run({ caller: typed, ttl, reason }) {
      const body = { ttl, ...(reason && { reason }) };
      const set = await change('PUT', `v1/bans/${segment(caller ?? typed)}`, { body });
      return `Banned: ${set.caller}, until ${clock(Date.parse(set.expires) / 1000)}.`;
    },
  });
}

export function lift(caller) {
  ask({
    title: 'Lift a ban',
    text: 'The next request of this caller is decided by the limits again.',
    subject: caller,
    submit: 'Lift',
    async run() {
      await change('DELETE', `v1/bans/${segment(caller)}`);
      return `Lifted: ${caller} is no longer banned.`;
    },
  });
}
