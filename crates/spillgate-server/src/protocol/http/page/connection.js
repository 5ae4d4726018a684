// Whether what is shown is what is happening.

import { byId, setHidden, setText } from './dom.js';
import { clock, duration, visible } from './format.js';

/** Older numbers are marked. */
const STALE = 3500;

export class Connection {
  #receivedAt = null;
  #said = '';

  constructor(live) {
    this.live = live;
    byId('retry').addEventListener('click', () => live.retryNow());
    addEventListener('online', () => live.retryNow());
  }

  received() {
    this.#receivedAt = performance.now();
  }

  /** @param pausedAt the server's time that is shown while the page is paused */
  render(pausedAt) {
    const { state, retryAt, reason, isAnswer } = this.live;
    const age = this.#receivedAt == null ? Infinity : performance.now() - this.#receivedAt;
    const isStale = Number.isFinite(age) && age > STALE;
    let [shown, text] = [state, ''];
    if (state === 'locked') text = 'Token required';
    else if (pausedAt != null && state === 'live') [shown, text] = ['paused', `Paused at ${clock(pausedAt)}`];
    else if (state === 'live' && isStale) [shown, text] = ['stale', `No news for ${duration(age / 1000)}`];
    else if (state === 'live') text = 'Live';
    else if (state === 'connecting') text = 'Connecting';
    else {
      const wait = Math.max(0, Math.ceil((retryAt - performance.now()) / 1000));
      const old = isStale ? `Numbers are ${duration(age / 1000)} old. ` : '';
      const why = isAnswer ? `${visible(reason)}. ` : '';
      text = `${why}${old}${wait ? `Reconnecting in ${wait} s` : 'Reconnecting'}`;
    }
    const node = byId('connection');
    node.dataset.state = shown;
    node.title = state === 'lost' ? visible(reason) : '';
    setText(byId('connection-text'), text);
    setHidden(byId('retry'), state !== 'lost');
    document.body.classList.toggle('stale', state !== 'locked' && isStale);
    this.#announce(state === 'lost' ? `Connection lost. ${visible(reason)}` : state === 'live' ? 'Connected' : '');
  }

  /** For screen readers: changes only, never each number. */
  #announce(text) {
    if (!text || text === this.#said) return;
    // The first connection is what everyone expects.
    if (this.#said || text !== 'Connected') setText(byId('announce'), text);
    this.#said = text;
  }
}
