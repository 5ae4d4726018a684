(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  // A canvas understands every colour that a style can have.
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].map((part) => part / 255);
  };
  const over = ([r, g, b, a], back) => [r, g, b].map((part, i) => part * a + back[i] * (1 - a));
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    if (!node) return [1, 1, 1];
    return over(rgba(getComputedStyle(node).backgroundColor), behind(node.parentElement));
  };
  const faint = [];
  let looked = 0;
  for (const node of document.querySelectorAll('body *')) {
    const text = [...node.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data.trim()).join('');
    if (!text || !node.checkVisibility({ visibilityProperty: true }) || node.closest('dialog, .unseen, .skip, noscript')) continue;
    looked += 1;
    const style = getComputedStyle(node);
    const back = behind(node);
    const front = over(rgba(node instanceof SVGElement ? style.fill : style.color), back);
    const [low, high] = [light(front), light(back)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)}: ${text.slice(0, 40)} (${node.className.baseVal ?? node.className})`);
  }
  if (looked < 100) throw new Error(`only ${looked} texts were looked at`);
  return faint;
})()
