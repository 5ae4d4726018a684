// The dialog that asks before something is changed, and says what came of it.

import { Problem } from './api.js';
import { byId, h, setHidden, setText } from './dom.js';
import { visible } from './format.js';

let ask_ = null;

/** Closes a dialog by its cancel buttons. Escape does so by itself. */
export function closable(dialog) {
  for (const button of dialog.querySelectorAll('.cancel')) button.addEventListener('click', () => dialog.close());
}

/** What went wrong, in words. Whatever is not the server's problem is a fault of this page. */
export function wordsOf(error) {
  if (!(error instanceof Problem)) console.error(error);
  return error.message || String(error);
}

/** Shows what came of it next to what was asked. */
export function showResult(node, text, isGood) {
  node.className = `result ${isGood ? 'good' : 'bad'}`;
  setText(node, text);
}

/**
 * Asks, and does it when confirmed.
 * @param question `{ title, text, subject, fields, submit, run }`; `run` takes the fields' values and
 *   returns what to say
 */
export function ask(question) {
  ask_ = question;
  const { title, text, subject, fields = [], submit } = question;
  setText(byId('action-title'), title);
  setText(byId('action-text'), text);
  setText(byId('action-subject'), subject ? visible(subject) : '');
  setHidden(byId('action-subject'), !subject);
  const input = (attributes) => h('input', { autocomplete: 'off', spellcheck: 'false', ...attributes });
  byId('action-fields').replaceChildren(...fields.map(({ label, ...attributes }) =>
    h('label', { class: 'field' }, label, input(attributes))));
  showResult(byId('action-result'), '', true);
  setText(byId('action-submit'), submit);
  setHidden(byId('action-submit'), false);
  setText(byId('action-cancel'), 'Cancel');
  byId('action-dialog').showModal();
  (byId('action-fields').querySelector('input') ?? byId('action-cancel')).focus();
}

async function confirm(event) {
  event.preventDefault();
  const form = byId('action-form');
  const question = ask_;
  const button = byId('action-submit');
  if (button.disabled) return;
  button.disabled = true;
  try {
    const values = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]));
    const said = await question.run(values);
    if (question !== ask_) return; // closed, and something else is asked
    showResult(byId('action-result'), visible(said), true);
    for (const input of form.querySelectorAll('input')) input.disabled = true;
    setHidden(button, true);
    setText(byId('action-cancel'), 'Close');
    byId('action-cancel').focus();
  } catch (error) {
    if (question === ask_) showResult(byId('action-result'), visible(wordsOf(error)), false);
  } finally {
    button.disabled = false;
  }
}

export function startDialogs() {
  closable(byId('action-dialog'));
  byId('action-form').addEventListener('submit', confirm);
  byId('action-dialog').addEventListener('close', () => { ask_ = null; });
}
