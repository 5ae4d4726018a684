// Puts the page together: what the server says goes into the state, and the state is drawn.

import { requireToken, startAccess } from './access.js';
import { AdaptiveList } from './adaptive.js';
import { call, token } from './api.js';
import { CallersTable } from './callers.js';
import { Connection } from './connection.js';
import { startDialogs } from './dialogs.js';
import { byId, h, setHidden, setText } from './dom.js';
import { startExplain } from './explain.js';
import { count, visible } from './format.js';
import { Histogram } from './histogram.js';
import { History } from './history.js';
import { LimitsTable } from './limits.js';
import { Live } from './live.js';
import { Operator } from './operator.js';
import { Notices, Summary } from './summary.js';
import { Traffic } from './traffic.js';
import { UpstreamsTable } from './upstreams.js';
import { renderWelcome, startWelcome } from './welcome.js';

const RANGES = [5, 15, 60];
const RANGE_KEY = 'spillgate-range';

/** What is shown. `scope` is the limit that is shown alone. */
const state = { status: null, history: null, scope: null, range: 5, paused: false };

startDialogs();
startAccess();
startWelcome();
startExplain(requireToken);
const summary = new Summary();
const notices = new Notices();
const traffic = new Traffic();
const limits = new LimitsTable((name) => choose(state.scope === name ? null : name));
const callers = new CallersTable();
const histogram = new Histogram();
const adaptive = new AdaptiveList();
const upstreams = new UpstreamsTable();
const operator = new Operator();
const live = new Live(receive, stateChanged);
const connection = new Connection(live);

function receive(status) {
  connection.received();
  if (state.paused) return;
  state.status = status;
  if (!state.history?.add(status)) loadHistory();
  draw();
}

let loading = null;
let settling = 0;
/**
 * Loads the history of the range, which later statuses are added to. The server's last point is not
 * over yet, so it is loaded once more when it is.
 */
async function loadHistory(isAgain = false) {
  const range = state.range;
  if (loading === range) return;
  loading = range;
  try {
    const answer = await call('GET', `v1/history?minutes=${range}`);
    if (range !== state.range || !state.status) return;
    state.history = new History(answer, state.status);
    draw();
    clearTimeout(settling);
    if (!isAgain) settling = setTimeout(() => { if (!state.paused) loadHistory(true); }, (answer.step + 1) * 1000);
  } catch { /* with the next status again */ } finally {
    if (loading === range) loading = null;
  }
}

let wasLive = false;
function stateChanged() {
  const isLive = live.state === 'live';
  // The server may have been another one, or away for long.
  if (isLive && !wasLive && !state.paused) state.history = null;
  wasLive = isLive;
  connection.render(pausedAt());
  setHidden(byId('locked'), live.state !== 'locked');
  setHidden(byId('content'), live.state === 'locked' || !state.status);
}

const pausedAt = () => (state.paused ? state.status?.time : null);

let scheduled = false;
/** Draws once per frame, and not at all while nobody looks. */
function draw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    if (state.status) render();
  });
}

function render() {
  const { status, history } = state;
  if (state.scope && !status.limits.some(({ name }) => name === state.scope)) state.scope = null;
  const { scope } = state;
  const shown = scope ? status.limits.filter(({ name }) => name === scope) : status.limits;
  setHidden(byId('content'), live.state === 'locked');
  renderScope(status.limits);
  renderWelcome(status);
  notices.render(status);
  summary.render(status);
  if (history) traffic.render(history, scope, shown);
  limits.render(state);
  callers.render(state);
  histogram.render(shown);
  setText(byId('quota-note'), `${scope ? visible(scope) : 'all limits'}, last 5 to 10 min, sampled`);
  adaptive.render(status, scope);
  upstreams.render(status);
  operator.render(status);
  connection.render(pausedAt());
  const { denied } = status.second;
  document.title = denied ? `${count(denied)} denied/s · Spillgate` : 'Spillgate';
}

let scopes = '';
function renderScope(list) {
  const key = list.map(({ name }) => name).join('\n');
  const select = byId('scope');
  if (key !== scopes) {
    scopes = key;
    const options = list.map(({ name }) => h('option', { value: name }, visible(name)));
    select.replaceChildren(h('option', { value: '' }, 'all limits'), ...options);
  }
  if (select.value !== (state.scope ?? '')) select.value = state.scope ?? '';
}

function choose(scope) {
  state.scope = scope || null;
  draw();
}

function chooseRange(range) {
  state.range = range;
  try { localStorage.setItem(RANGE_KEY, range); } catch { /* for this view only */ }
  loadHistory();
}

function startControls() {
  byId('scope').addEventListener('change', ({ target }) => choose(target.value));
  let remembered = null;
  try { remembered = Number(localStorage.getItem(RANGE_KEY)); } catch { /* storage is off */ }
  if (RANGES.includes(remembered)) state.range = remembered;
  for (const input of byId('range').querySelectorAll('input')) {
    input.checked = Number(input.value) === state.range;
    input.addEventListener('change', () => chooseRange(Number(input.value)));
  }
  byId('pause').addEventListener('click', ({ target }) => {
    state.paused = !state.paused;
    target.setAttribute('aria-pressed', state.paused);
    setText(target, state.paused ? 'Resume' : 'Pause');
    connection.render(pausedAt());
    if (!state.paused) loadHistory();
  });
  token.onChange(() => live.start());
  setInterval(() => connection.render(pausedAt()), 1000);
}

startControls();
live.start();
