const { History } = await import('/assets/history.js');
const { condense, niceTicks, timeStep } = await import('/assets/axis.js');

const none = { allowed: 0, denied: 0, shadow_denied: 0, shed: 0 };
const status = (time, limits, second = {}) => ({
  time, second: { unlimited: 0, blocked: 0, banned: 0, ...second },
  limits: Object.entries(limits).map(([name, counts]) => ({ name, second: { ...none, ...counts } })),
});
const answer = (step, end, points, allowed) => ({
  step, end, points, limits: [{ name: 'api', allowed, denied: [], shadow_denied: [], shed: [] }], total: { banned: [] },
});
const rates = (history, field, name) => [...history.rates(field, name)].map((rate) => (Number.isNaN(rate) ? null : rate));

// One point per second.
let history = new History(answer(1, 100, 4, [null, 1, 2, 3]));
equal(rates(history, 'allowed', 'api'), [null, 1, 2, 3]);
equal(history.add(status(100.9, { api: { allowed: 9 } })), true);
equal(rates(history, 'allowed', 'api'), [null, 1, 2, 3], 'a second that is already there');
equal(history.add(status(101.2, { api: { allowed: 4 }, new: { denied: 5 } })), true);
equal(rates(history, 'allowed', 'api'), [1, 2, 3, 4]);
equal(rates(history, 'denied', 'new'), [null, null, null, 5]);
equal(rates(history, 'allowed'), [1, 2, 3, 4], 'all limits');
history.add(status(103.2, { new: { denied: 6 } }));
equal(rates(history, 'denied', 'new'), [null, 5, null, 6], 'a second that was missed');
equal(history.total('denied', 'new'), 11);
equal(history.add(status(120, {})), false, 'a long gap');
equal(history.add(status(50, {})), false, 'another clock');

// Several seconds per point: the last is the mean of those it has.
history = new History(answer(10, 1000, 3, [100, 200, 300]));
equal(rates(history, 'allowed', 'api'), [10, 20, 30]);
for (let second = 1; second <= 4; second++) history.add(status(1000 + second, { api: { allowed: second } }, { banned: 2 }));
equal(rates(history, 'allowed', 'api'), [20, 30, 2.5]);
equal(rates(history, 'banned'), [null, null, 2]);

// It does not grow: neither with time, nor with limits that come and go.
history = new History(answer(1, 0, 300, []));
for (let second = 1; second < 5000; second++) history.add(status(second, { [`limit-${second}`]: { allowed: 1 } }));
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
