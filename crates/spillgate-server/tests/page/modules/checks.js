// What each script begins with. It ends by telling how much it has checked.
let checked = 0;
const equal = (found, expected, what = '') => {
  checked += 1;
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`);
};
