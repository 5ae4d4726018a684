// Follows the server's status, and comes back after every loss.

import { open, revealed } from './api.js';
import { readEvents } from './events.js';

/** The server sends every second. */
const SILENCE = 10_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;

export class Live {
  /** `connecting`, `live`, `lost` or `locked`: the server wants a token. */
  state = 'connecting';
  /** Why it was lost, in words. */
  reason = '';
  /** True if the server said so itself: too many watch, for example. */
  isAnswer = false;
  /** When the next attempt is due, by `performance.now()`. */
  retryAt = 0;

  #run = 0;
  #abort = new AbortController();
  #wake = () => {};
  #failures = 0;

  constructor(onStatus, onState) {
    this.onStatus = onStatus;
    this.onState = onState;
  }

  /** Starts, or starts again with another token. */
  start() {
    this.#run += 1;
    this.#failures = 0;
    this.#abort.abort();
    this.#wake();
    this.#follow(this.#run);
  }

  retryNow() {
    this.#wake();
  }

  async #follow(run) {
    while (run === this.#run) {
      this.#enter(this.state === 'live' ? 'connecting' : this.state);
      try {
        await this.#once(run);
        [this.reason, this.isAnswer] = ['The server ended the connection.', false];
      } catch (error) {
        if (run !== this.#run) return;
        this.reason = error.name === 'AbortError' ? 'The server went silent.' : error.message;
        this.isAnswer = error.status > 0;
        if (error.status === 401) {
          this.#enter('locked');
          return;
        }
      }
      if (run !== this.#run) return;
      await this.#wait();
    }
  }

  async #once(run) {
    const abort = (this.#abort = new AbortController());
    let watchdog = setTimeout(() => abort.abort(), SILENCE);
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), SILENCE);
    };
    try {
      const response = await open(revealed('v1/status'), abort.signal);
      const onEvent = (name, data) => {
        if (name !== 'status' || run !== this.#run) return;
        const status = JSON.parse(data);
        this.#failures = 0;
        if (this.state !== 'live') this.#enter('live');
        this.onStatus(status);
      };
      await readEvents(response.body, onEvent, alive);
    } finally {
      clearTimeout(watchdog);
      abort.abort(); // whatever went wrong, nobody reads on
    }
  }

  /** Waits longer after each failure, and not as long as other pages do. */
  async #wait() {
    const longest = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#failures);
    this.#failures += 1;
    const wait = longest * (0.5 + Math.random() / 2);
    this.retryAt = performance.now() + wait;
    this.#enter('lost');
    await new Promise((resolve) => {
      this.#wake = resolve;
      setTimeout(resolve, wait);
    });
  }

  #enter(state) {
    this.state = state;
    this.onState();
  }
}
