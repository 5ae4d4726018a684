// What happened per second over the last minutes: from the server's ring, then continued live.
// It never holds more than the points of the range.

export const FIELDS = ['allowed', 'denied', 'shadow_denied', 'shed'];
export const TOTALS = ['unlimited', 'blocked', 'banned'];
/** After a longer gap, the server knows better than a line drawn across it. */
const LONGEST_GAP = 5;

export class History {
  #limits = new Map();
  #totals;
  /** Seconds that the last point already holds. */
  #filled;

  /** The last status: what it counted, and the second that it stands for. */
  #last = null;
  /** The first one: a second later is the next one, even if it came a moment early or late. */
  #first = null;

  /**
   * @param answer of `/v1/history`
   * @param status the last one before it
   */
  constructor({ step, end, points, limits, total }, status) {
    Object.assign(this, { step, end, points });
    this.#filled = step;
    for (const limit of limits) this.#limits.set(limit.name, this.#series(FIELDS, limit));
    this.#totals = this.#series(TOTALS, total ?? {});
    this.#begin(status);
  }

  #begin(status) {
    // Of two clocks that differ by less than a second, the history's is right.
    const at = Math.max(this.end, Math.floor(status.time));
    this.#first = { at, time: status.time };
    this.#last = { at, counts: countsOf(status) };
  }

  get start() {
    return this.end - this.points * this.step;
  }

  #series(fields, counts = {}) {
    const rates = (list) => Float64Array.from({ length: this.points }, (_, i) => (list?.[i] ?? NaN) / this.step);
    return { seen: this.end, ...Object.fromEntries(fields.map((field) => [field, rates(counts[field])])) };
  }

  /** Adds what happened since the last status. False if too much is missing in between: load it again. */
  add(status) {
    const at = this.#first.at + Math.round(status.time - this.#first.time);
    const seconds = at - this.#last.at;
    if (seconds <= 0) return seconds > -LONGEST_GAP;
    if (seconds > LONGEST_GAP || at - this.end > LONGEST_GAP + this.step) return false;
    const counts = countsOf(status);
    const rates = differences(counts, this.#last.counts, seconds, status);
    for (let second = this.#last.at + 1; second <= at; second++) this.#addSecond(second, rates);
    this.#last = { at, counts };
    return true;
  }

  #addSecond(second, { limits, totals }) {
    while (second > this.end) this.#shift();
    for (const [name, rates] of limits) {
      if (!this.#limits.has(name)) this.#limits.set(name, this.#series(FIELDS));
      const series = this.#limits.get(name);
      series.seen = this.end;
      this.#count(series, FIELDS, rates);
    }
    this.#count(this.#totals, TOTALS, totals);
    this.#filled += 1;
  }

  #shift() {
    this.end += this.step;
    this.#filled = 0;
    for (const [name, series] of this.#limits) {
      if (series.seen <= this.start) this.#limits.delete(name);
    }
    for (const series of [...this.#limits.values(), this.#totals]) {
      for (const values of Object.values(series)) {
        if (typeof values === 'number') continue;
        values.copyWithin(0, 1);
        values[this.points - 1] = NaN;
      }
    }
  }

  /** The last point is the mean of the seconds that it holds so far. */
  #count(series, fields, rates) {
    const last = this.points - 1;
    for (const field of fields) {
      const before = Number.isNaN(series[field][last]) ? 0 : series[field][last];
      series[field][last] = (before * this.#filled + rates[field]) / (this.#filled + 1);
    }
  }

  /** Rates per second of a limit; of all limits without a name. NaN where nothing is known. */
  rates(field, name) {
    if (TOTALS.includes(field)) return name ? new Float64Array(this.points).fill(NaN) : this.#totals[field];
    if (name) return this.#limits.get(name)?.[field] ?? new Float64Array(this.points).fill(NaN);
    const sum = new Float64Array(this.points).fill(NaN);
    for (const series of this.#limits.values()) {
      const values = series[field];
      for (let i = 0; i < sum.length; i++) {
        if (!Number.isNaN(values[i])) sum[i] = (Number.isNaN(sum[i]) ? 0 : sum[i]) + values[i];
      }
    }
    return sum;
  }

  /** How much happened within the range. */
  total(field, name) {
    let sum = 0;
    for (const value of this.rates(field, name)) if (value > 0) sum += value;
    return sum * this.step;
  }
}

/** Counts since the start, which miss nothing that happens between two statuses. */
function countsOf({ limits, total }) {
  return { limits: new Map(limits.map((limit) => [limit.name, limit])), total };
}

/** What happened per second between two statuses. */
function differences(now, before, seconds, status) {
  const per = (fields, counts, earlier) => Object.fromEntries(fields.map((field) =>
    [field, Math.max(0, counts[field] - earlier[field]) / seconds]));
  const limits = [...now.limits].map(([name, limit]) => {
    const earlier = before.limits.get(name);
    return [name, earlier ? per(FIELDS, limit, earlier) : limit.second];
  });
  return { limits, totals: per(TOTALS, status.total, before.total) };
}
