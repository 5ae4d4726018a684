const { History } = await import('/assets/history.js');
const { condense, niceTicks, timeStep } = await import('/assets/axis.js');

// A server that counts, and says so.
class Server {
  #limits = {};
  #total = { unlimited: 0, blocked: 0, banned: 0 };

  status(time, seconds = {}, total = {}) {
    for (const [name, counts] of Object.entries(seconds)) {
      const limit = (this.#limits[name] ??= { allowed: 0, denied: 0, shadow_denied: 0, shed: 0 });
      for (const [field, n] of Object.entries(counts)) limit[field] += n;
    }
    for (const [field, n] of Object.entries(total)) this.#total[field] += n;
    const second = (name) => ({ allowed: 0, denied: 0, shadow_denied: 0, shed: 0, ...seconds[name] });
    const limits = Object.entries(this.#limits).map(([name, counts]) => ({ name, ...counts, second: second(name) }));
    return { time, total: { ...this.#total }, limits };
  }

  forget(name) {
    delete this.#limits[name];
  }
}
const answer = (step, end, points, allowed) => ({
  step, end, points, limits: [{ name: 'api', allowed, denied: [], shadow_denied: [], shed: [] }], total: { banned: [] },
});
const rates = (history, field, name) => [...history.rates(field, name)].map((rate) => (Number.isNaN(rate) ? null : rate));

// One point per second.
let server = new Server();
let history = new History(answer(1, 100, 4, [null, 1, 2, 3]), server.status(100.5, { api: { allowed: 9 } }));
equal(rates(history, 'allowed', 'api'), [null, 1, 2, 3]);
equal(history.add(server.status(100.9, { api: { allowed: 1 } })), true, 'within the same second');
equal(rates(history, 'allowed', 'api'), [null, 1, 2, 3]);
equal(history.add(server.status(101.4, { api: { allowed: 3 }, new: { denied: 5 } })), true);
equal(rates(history, 'allowed', 'api'), [1, 2, 3, 4], 'nothing is lost');
equal(rates(history, 'denied', 'new'), [null, null, null, 5]);
equal(rates(history, 'allowed'), [1, 2, 3, 4], 'all limits');
history.add(server.status(103.6, { new: { denied: 6 } }));
equal(rates(history, 'denied', 'new'), [null, 5, 3, 3], 'a status that was missed');
equal(history.total('denied', 'new'), 11);
equal(history.add(server.status(120)), false, 'a long gap');
equal(history.add(server.status(50)), false, 'another clock');

// Statuses that come around the full second, early or late, are a second apart.
server = new Server();
history = new History(answer(1, 100, 4, []), server.status(100.999));
for (const time of [102.001, 102.998, 104.002, 104.999]) history.add(server.status(time, { api: { allowed: 7 } }));
equal(rates(history, 'allowed', 'api'), [7, 7, 7, 7]);

// Several seconds per point: the last is the mean of those it has.
server = new Server();
history = new History(answer(10, 1000, 3, [100, 200, 300]), server.status(1007, { api: {} }));
equal(rates(history, 'allowed', 'api'), [10, 20, 30]);
for (const second of [8, 9, 10]) history.add(server.status(1000 + second, { api: { allowed: second } }, { banned: 2 }));
equal(rates(history, 'allowed', 'api'), [20, 30, 9], 'seconds before the first status are not known');
equal(rates(history, 'banned'), [null, null, 2]);

// A server that counts from the start again has done nothing, not less than that.
history.add(new Server().status(1011, { api: { allowed: 1 } }));
equal(rates(history, 'allowed', 'api'), [30, 9, 0]);

// It does not grow: neither with time, nor with limits that come and go.
server = new Server();
history = new History(answer(1, 0, 300, []), server.status(0));
for (let second = 1; second < 5000; second++) {
  history.add(server.status(second, { [`limit-${second}`]: { allowed: 1 } }));
  server.forget(`limit-${second}`);
}
equal(history.rates('allowed').length, 300);
equal(rates(history, 'allowed'), new Array(300).fill(1));
equal(rates(history, 'allowed', 'limit-4000'), new Array(300).fill(null), 'a limit of long ago');

// Charts have fewer points, whose bounds stay as time goes on.
const drawn = (start, list) => condense({ start, step: 1, points: list.length, values: { a: Float64Array.from(list) } }, 3);
equal(drawn(0, [1, 3, 5, 7, 9, 11]).values.a, Float64Array.from([2, 6, 10]));
equal([...drawn(1, [3, 5, 7, 9, 11, 13]).values.a], [3, 6, 10, 13]);
equal(niceTicks(0), [0, 1]);
equal(niceTicks(7), [0, 2, 4, 6, 8]);
equal(niceTicks(1000), [0, 500, 1000]);
equal([timeStep(300, 600), timeStep(3600, 300)], [60, 900]);
return checked;
