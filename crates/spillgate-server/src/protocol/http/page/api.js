// Requests to the server that this page came from, with the token if there is one.

const KEY = 'spillgate-token';
const TIMEOUT = 10_000;
const listeners = new Set();
let current = read();

function read() {
  try { return sessionStorage.getItem(KEY); } catch { return null; }
}

function keep(token) {
  current = token;
  try {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
  } catch { /* storage is off: kept in memory only */ }
  for (const listener of listeners) listener();
}

/** What the server says is wrong, in words for people. */
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export const token = {
  get isSet() { return Boolean(current); },
  forget: () => { if (current) keep(null); },
  onChange: (listener) => listeners.add(listener),
  /** Keeps a token that the server accepts; throws what the server says of another. */
  async use(candidate) {
    await call('GET', 'v1/bans', { as: candidate });
    keep(candidate);
  },
};

/** Sends a request and returns the response, whose status is good; throws a Problem otherwise. */
async function send(method, path, { body, signal, accept = 'application/json', as = current } = {}) {
  const headers = { accept };
  if (as) headers.authorization = `Bearer ${as}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store', redirect: 'error', referrerPolicy: 'no-referrer',
    });
  } catch (error) {
    if (error.name === 'TypeError') throw new Problem(0, 'The server cannot be reached.');
    throw error.name === 'TimeoutError' ? new Problem(0, 'The server did not answer in time.') : error;
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  // Another token may have come in the meantime.
  if (response.status === 401 && as && as === current) keep(null);
  throw problem;
}

async function problemOf(response) {
  const fallback = `The server answered ${response.status} ${response.statusText}`.trimEnd();
  try {
    const { detail, title } = JSON.parse(await response.text());
    return new Problem(response.status, String(detail ?? title ?? fallback));
  } catch {
    return new Problem(response.status, fallback);
  }
}

/** Sends a request and returns its JSON, or null if there is none. */
export async function call(method, path, options = {}) {
  const response = await send(method, path, { signal: AbortSignal.timeout(TIMEOUT), ...options });
  return response.status === 204 ? null : response.json();
}

/** Opens a stream of events that has no end by itself. */
export const open = (path, signal) => send('GET', path, { signal, accept: 'text/event-stream' });

/** Asks for callers in clear if the server would tell them. */
export const revealed = (path) => (current ? `${path}${path.includes('?') ? '&' : '?'}reveal=true` : path);

/** A text as one segment of a path. */
export function segment(text) {
  // Browsers read these as steps up the path, however they are escaped.
  if (text === '.' || text === '..') throw new Problem(0, `“${text}” cannot be written in a URL; use the command line.`);
  return encodeURIComponent(text);
}

/** The path of a limit's key: its first value in the path, others in the query. */
export function keyPath(limit, values, end = '') {
  const [first = 'global', ...others] = values;
  const query = others.map((value) => `part=${encodeURIComponent(value)}`).join('&');
  return `v1/limits/${segment(limit)}/keys/${segment(first)}${end}${query && `?${query}`}`;
}
