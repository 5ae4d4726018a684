// Where the marks of axes are, and how many points a line has.

/** Three to five steps of 1, 2 or 5 times a power of ten, from 0 to above the most. */
export function niceTicks(most) {
  if (!(most > 0)) return [0, 1];
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const ticks = [];
  for (let i = 0; i === 0 || ticks.at(-1) < most; i++) ticks.push(i * step);
  return ticks;
}

/** Seconds between two labels of the time axis that leave them room. */
export function timeStep(span, width) {
  const most = Math.max(2, width / 64);
  return [60, 120, 300, 600, 900, 1800].find((step) => span / step <= most) ?? 3600;
}

/** Means over several points, so that at most so many are left. Their bounds stay when time goes on. */
export function condense({ start, step, points, values }, most) {
  const size = Math.ceil(points / most);
  const wide = size * step;
  const first = Math.floor(start / wide) * wide;
  const length = Math.ceil((start + points * step - first) / wide);
  const skipped = (start - first) / step;
  const means = (list) => Float64Array.from({ length }, (_, bucket) => {
    let sum = 0, known = 0;
    for (let i = Math.max(0, bucket * size - skipped); i < Math.min(points, (bucket + 1) * size - skipped); i++) {
      if (list[i] >= 0) { sum += list[i]; known += 1; }
    }
    return known ? sum / known : NaN;
  });
  const condensed = Object.entries(values).map(([id, list]) => [id, list && means(list)]);
  return { start: first, step: wide, points: length, values: Object.fromEntries(condensed) };
}
