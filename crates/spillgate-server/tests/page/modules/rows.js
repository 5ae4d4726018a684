const { Rows } = await import('/assets/rows.js');

const body = document.createElement('div');
document.body.append(body);
const rows = new Rows(body, (item) => {
  const node = document.createElement('button');
  return { node, update: ({ text }) => { node.textContent = text; node.dataset.key = item.key; } };
});
const update = (keys) => rows.update([...keys].map((key) => ({ key, text: key.toUpperCase() })), ({ key }) => key);
const order = () => [...body.children].map(({ dataset }) => dataset.key).join('');

update('abcd');
equal(order(), 'abcd');
const [first, second] = body.children;
update('dbca');
equal(order(), 'dbca');
equal(body.lastChild === first && body.children[1] === second, true, 'the same elements');

// Whatever moves, what has the focus keeps it.
for (const focused of 'abcd') {
  body.querySelector(`[data-key=${focused}]`).focus();
  for (const keys of ['abcd', 'dcba', 'badc', 'cdab', 'acbd', `x${focused}yz`, `${focused}`, 'dabc', `zy${focused}`, 'abcd']) {
    update(keys);
    equal([order(), document.activeElement.dataset.key], [keys, focused], `${keys} with ${focused}`);
  }
}
update('');
equal(order(), '');
body.remove();
return checked;
