// What to try on a server that nobody has asked yet.

import { byId, setHidden, setText } from './dom.js';

export function startWelcome() {
  const copy = byId('copy');
  setHidden(copy, !navigator.clipboard);
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(byId('welcome-command').textContent);
      setText(copy, 'Copied');
    } catch {
      setText(copy, 'Not allowed');
    }
    setTimeout(() => setText(copy, 'Copy'), 2000);
  });
}

export function renderWelcome({ limits, total, upstreams }) {
  const counted = limits.some((limit) => limit.allowed + limit.denied + limit.shadow_denied + limit.shed > 0)
    || Object.values(total).some((n) => n > 0);
  setHidden(byId('welcome'), counted);
  if (counted) return;
  const isProxy = upstreams.length > 0;
  setText(byId('welcome-text'), isProxy
    ? 'Send requests through the proxy, and they appear here. What a request would meet, without sending it:'
    : 'Ask more often than a limit allows, and watch it deny:');
  setText(byId('welcome-command'), isProxy ? explainCommand() : checkCommand(limits));
}

const bearer = () => (isLoopback() ? '' : ' -H "authorization: Bearer $SPILLGATE_TOKEN"');
const isLoopback = () => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(location.hostname);
const base = () => new URL('.', location.href).href;

/** A key of a limit, by what it is counted per. */
const KEYS = { caller: '203.0.113.7', ip: '203.0.113.7', user: '42', global: undefined };

function checkCommand(limits) {
  const simple = limits.find(({ per }) => per in KEYS);
  const body = simple ? { limit: simple.name, key: KEYS[simple.per] } : { request: { path: '/', ip: '203.0.113.7' } };
  return `for i in $(seq 30); do\n  curl -s --json '${JSON.stringify(body)}'${bearer()} ${base()}v1/check; echo\ndone`;
}

const explainCommand = () => 'curl --json \'{"request":{"path":"/","ip":"203.0.113.7"}}\' \\\n'
  + `  -H "authorization: Bearer $SPILLGATE_TOKEN" ${base()}v1/explain`;
