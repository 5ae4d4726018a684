// Server-sent events over fetch: EventSource cannot send a token.

/** More than this without an end is no event of ours. */
const MOST = 32 * 1024 * 1024;

/** Parses a stream whose chunks may end anywhere, also between CR and LF. */
export class EventParser {
  #rest = '';
  #afterCr = false;
  #name = '';
  #data = [];
  #size = 0;

  constructor(onEvent) {
    this.onEvent = onEvent;
  }

  push(text) {
    if (text === '') return;
    const skip = this.#afterCr && text[0] === '\n' ? 1 : 0;
    this.#afterCr = text.endsWith('\r');
    if (skip) text = text.slice(1);
    const lines = text.split(/\r\n|\n|\r/);
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop();
    for (const line of lines) this.#line(line);
    if (this.#rest.length + this.#size > MOST) throw new Error('an event without an end');
  }

  #line(line) {
    if (line === '') {
      if (this.#data.length) this.onEvent(this.#name || 'message', this.#data.join('\n'));
      this.#name = '';
      this.#data = [];
      this.#size = 0;
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'event') this.#name = value;
    if (field === 'data') {
      this.#data.push(value);
      this.#size += value.length;
    }
  }
}

/** Reads events until the stream ends. Every piece, also of comments, shows that the server is there. */
export async function readEvents(stream, onEvent, onPiece) {
  const parser = new EventParser(onEvent);
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onPiece();
    parser.push(decoder.decode(value, { stream: true }));
  }
}
