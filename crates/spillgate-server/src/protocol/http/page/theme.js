// Runs before the page is drawn, so that it does not flash in the other colours.
(() => {
  const KEY = 'spillgate-theme';
  const order = ['system', 'light', 'dark'];
  const root = document.documentElement;

  function remembered() {
    try {
      const theme = localStorage.getItem(KEY);
      return order.includes(theme) ? theme : 'system';
    } catch {
      return 'system'; // storage is off
    }
  }

  function use(theme) {
    if (theme === 'system') delete root.dataset.theme;
    else root.dataset.theme = theme;
  }

  use(remembered());
  document.addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('theme');
    const label = () => {
      const theme = remembered();
      button.lastElementChild.textContent = ` ${theme[0].toUpperCase()}${theme.slice(1)}`;
      button.title = `Colours: ${theme}`;
      button.setAttribute('aria-label', button.title);
    };
    button.addEventListener('click', () => {
      const next = order[(order.indexOf(remembered()) + 1) % order.length];
      try { localStorage.setItem(KEY, next); } catch { /* for this view only */ }
      use(next);
      label();
    });
    label();
  });
})();
