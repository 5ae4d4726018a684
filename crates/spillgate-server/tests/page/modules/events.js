const { EventParser, readEvents } = await import('/assets/events.js');

const parse = (chunks) => {
  const events = [];
  const parser = new EventParser((name, data) => events.push([name, data]));
  for (const chunk of chunks) parser.push(chunk);
  return events;
};

const stream = ': ping\n\nevent: status\ndata: {"a":1}\n\ndata:two\ndata: lines\ndata\n\nevent: none\n\nid: 7\nretry: 1\ndata: é🙂\n\ndata: unfinished\n';
const expected = [['status', '{"a":1}'], ['message', 'two\nlines\n'], ['message', 'é🙂']];
for (const end of ['\n', '\r\n', '\r']) {
  const text = stream.replaceAll('\n', end);
  equal(parse([text]), expected, 'at once');
  equal(parse([...text]), expected, 'letter by letter');
  for (let at = 0; at <= text.length; at++) equal(parse([text.slice(0, at), '', text.slice(at)]), expected, `cut at ${at}`);
}

// Bytes, cut inside letters.
const bytes = new TextEncoder().encode(stream);
for (const size of [1, 2, 3, 7]) {
  const events = [];
  let pieces = 0;
  const body = new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
      controller.close();
    },
  });
  await readEvents(body, (name, data) => events.push([name, data]), () => { pieces += 1; });
  equal(events, expected, `${size} bytes`);
  equal(pieces, Math.ceil(bytes.length / size));
}

// An event without an end does not fill the memory.
let refused = false;
try {
  const parser = new EventParser(() => {});
  for (let i = 0; i < 100; i++) parser.push(`data: ${'x'.repeat(1 << 20)}\n`);
} catch {
  refused = true;
}
equal(refused, true, 'endless event');
return checked;
