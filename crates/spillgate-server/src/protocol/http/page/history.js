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

  /** @param answer of `/v1/history` */
  constructor({ step, end, points, limits, total }) {
    Object.assign(this, { step, end, points, until: end });
    this.#filled = step;
    for (const limit of limits) this.#limits.set(limit.name, this.#series(FIELDS, limit));
    this.#totals = this.#series(TOTALS, total ?? {});
  }

  get start() {
    return this.end - this.points * this.step;
  }

  #series(fields, counts = {}) {
    const rates = (list) => Float64Array.from({ length: this.points }, (_, i) => (list?.[i] ?? NaN) / this.step);
    return { seen: this.end, ...Object.fromEntries(fields.map((field) => [field, rates(counts[field])])) };
  }

  /** Adds the last second of a status. False if too much is missing in between: load it again. */
  add(status) {
    const at = Math.floor(status.time);
    if (at <= this.until) return this.until - at < LONGEST_GAP;
    if (at - this.until > LONGEST_GAP) return false;
    this.until = at;
    while (at > this.end) this.#shift();
    for (const { name, second } of status.limits) {
      if (!this.#limits.has(name)) this.#limits.set(name, this.#series(FIELDS));
      const series = this.#limits.get(name);
      series.seen = this.end;
      this.#count(series, FIELDS, second);
    }
    this.#count(this.#totals, TOTALS, status.second);
    this.#filled += 1;
    return true;
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
  #count(series, fields, second) {
    const last = this.points - 1;
    for (const field of fields) {
      const before = Number.isNaN(series[field][last]) ? 0 : series[field][last];
      series[field][last] = (before * this.#filled + (second[field] ?? 0)) / (this.#filled + 1);
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
