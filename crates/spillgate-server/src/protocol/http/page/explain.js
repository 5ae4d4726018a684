// "Try a request": what would be decided, and why.

import { amountOf, reasonOf } from './adaptive.js';
import { call, Problem, token } from './api.js';
import { closable, showResult, wordsOf } from './dialogs.js';
import { byId, h, setHidden } from './dom.js';
import { count, time, visible } from './format.js';

const ANSWERS = {
  'allowed': ['✓', 'Allowed'],
  'denied': ['✕', 'Denied'],
  'blocked': ['✕', 'Blocked'],
  'banned': ['✕', 'Banned'],
  'shed': ['✕', 'Shed: the service can take no more at present'],
  'host-required': ['✕', 'Refused: the policy has limits for hosts, and no host is named'],
};

/** @param requireToken runs what it is given once there is a token */
export function startExplain(requireToken) {
  const dialog = byId('explain-dialog');
  const form = byId('explain-form');
  closable(dialog);
  byId('open-explain').addEventListener('click', () => requireToken(() => {
    dialog.showModal();
    form.elements.path.select();
  }));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const button = form.querySelector('[type=submit]');
    if (button.disabled) return;
    button.disabled = true;
    const [result, problem] = [byId('explain-result'), byId('explain-problem')];
    try {
      const explanation = await call('POST', 'v1/explain', { body: { request: requestOf(form) } });
      showResult(problem, '', true);
      result.replaceChildren(...render(explanation));
      setHidden(result, false);
      result.focus();
    } catch (error) {
      setHidden(result, true);
      const hint = error.status === 401 && !token.isSet ? '. Close this and enter the token again.' : '';
      showResult(problem, visible(wordsOf(error)) + hint, false);
    } finally {
      button.disabled = false;
    }
  });
}

function requestOf(form) {
  const value = (name) => form.elements[name].value.trim();
  const request = { method: value('method'), path: value('path'), headers: headersOf(form.elements.headers.value) };
  if (value('ip')) request.ip = value('ip');
  if (value('host')) request.host = value('host');
  return request;
}

function headersOf(text) {
  const headers = new Map();
  for (const line of text.split('\n').filter((line) => line.trim())) {
    const colon = line.indexOf(':');
    if (colon < 1) throw new Problem(0, `Header “${line.trim()}” has no colon; write it as “name: value”.`);
    const name = line.slice(0, colon).trim().toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()]);
  }
  return Object.fromEntries(headers);
}

function render(explanation) {
  const { answer, limits } = explanation;
  const [sign, words] = ANSWERS[answer] ?? ['?', visible(answer)];
  const facts = factsOf(explanation).flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, visible(text))]);
  return [
    h('p', { class: `answer ${answer === 'allowed' ? 'good' : 'bad'}`, 'data-answer': answer },
      h('span', { 'aria-hidden': 'true' }, sign), ` ${words}`),
    h('dl', { class: 'facts' }, ...facts),
    h('ul', { class: 'explained' }, ...limits.map(renderLimit)),
  ];
}

function factsOf({ caller, tier, priority, listed, ban, ...rest }) {
  const address = rest['client-ip'] ? `${rest['client-ip']}, from ` : '';
  const facts = [
    ['Caller', `${caller}, named by ${rest['named-by']}`],
    ['Address', `${address}${rest['client-ip-from']}`],
  ];
  if (tier) facts.push(['Tier', tier]);
  if (priority) facts.push(['Priority', `${priority.class}, level ${priority.level}, by ${priority['named-by']}`]);
  const range = rest['listed-range'] ? `, as ${rest['listed-range']}` : '';
  if (listed) facts.push(['List', `on the ${listed} list${range}`]);
  const shadow = ban?.mode === 'shadow' ? ' (shadow)' : '';
  if (ban) facts.push(['Ban', `${ban.reason}${shadow}, ends in ${time(ban['ends-in'])}`]);
  return facts;
}

function renderLimit({ name, mode, state, adaptive, 'not-met': notMet }) {
  const verdict = !state ? '– not met' : state.passes ? '✓ passes' : adaptive ? '✕ sheds' : '✕ denies';
  const badge = mode === 'shadow' ? h('span', { class: 'badge shadow' }, 'shadow') : null;
  const title = h('p', {}, h('b', {}, visible(name)), badge,
    h('span', { class: `verdict ${!state ? '' : state.passes ? 'good' : 'bad'}` }, verdict));
  const lines = state ? stateLines(state) : [visible(notMet ?? 'for other requests')];
  if (adaptive) {
    const { kind, reason } = adaptive;
    const [now, min, max] = [adaptive.limit, adaptive.min, adaptive.max].map((amount) => amountOf(kind, amount));
    lines.push(`adaptive: now ${now}, between ${min} and ${max}. ${reasonOf(reason)}`);
  }
  return h('li', { 'data-explained': name }, title, ...lines.map((line) => h('p', { class: 'sub' }, line)));
}

function stateLines({ key, cost, limit, remaining, 'in-flight': flight, 'retry-after': retry, 'reset-after': reset }) {
  const most = count(limit);
  const parts = [flight == null ? `${count(remaining)} of ${most} left` : `${count(flight)} of ${most} in flight`];
  if (retry == null) parts.push('no waiting helps');
  else if (retry > 0) parts.push(`would pass in ${time(retry)}`);
  if (reset > 0) parts.push(`all back in ${time(reset)}`);
  return [`counted under ${visible(key)}, cost ${count(cost)}`, parts.join(' · ')];
}
