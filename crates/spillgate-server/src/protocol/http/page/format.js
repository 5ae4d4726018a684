// Numbers, times and texts as people read them.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const clockTime = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const shortTime = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

export const count = (n) => whole.format(n);
export const clock = (unix) => clockTime.format(unix * 1000);
export const minute = (unix) => shortTime.format(unix * 1000);

/** A number per second: exact to a tenth while it is small. */
export const rate = (n) => (n < 100 ? tenth : whole).format(n);

/** A share in percent, never "0 %" or "100 %" unless it is exactly that. */
export function percent(part, all) {
  if (!all || !part) return '0 %';
  const value = (100 * part) / all;
  if (value < 0.1) return '< 0.1 %';
  if (part < all && value > 99.9) return '> 99.9 %';
  return `${(value < 10 ? tenth : whole).format(value)} %`;
}

/** A short time: 120 ns, 12.3 ms, 1.4 s, 4 min. */
export function time(seconds) {
  if (seconds == null) return '–';
  if (seconds === 0) return '0 s';
  for (const [unit, size] of [['ns', 1e-9], ['µs', 1e-6], ['ms', 1e-3]]) {
    if (seconds < size * 999.5) return `${digits(seconds / size)} ${unit}`;
  }
  return seconds < 120 ? `${digits(seconds)} s` : duration(seconds);
}

/** A long time: 45 s, 12 min, 3 h 20 min, 2 d 4 h. */
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  const [size, unit, part, partUnit] = s < 86400 ? [3600, 'h', 60, 'min'] : [86400, 'd', 3600, 'h'];
  const rest = Math.floor((s % size) / part);
  return `${Math.floor(s / size)} ${unit}${rest ? ` ${rest} ${partUnit}` : ''}`;
}

function digits(n) {
  return n >= 99.95 ? whole.format(n) : new Intl.NumberFormat('en', { maximumSignificantDigits: 3 }).format(n);
}

/** Text from a caller with what cannot be seen, or turns the line around, written as an escape. */
export function visible(text) {
  const escape = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, escape);
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
