// Entering the token, and forgetting it.

import { token } from './api.js';
import { closable, showResult, wordsOf } from './dialogs.js';
import { byId, setHidden, setText } from './dom.js';
import { visible } from './format.js';

/** What waits for a token. */
let then = null;

/** Runs something once there is a token: now, or after it was entered. */
export function requireToken(run) {
  if (token.isSet) run();
  else openToken(run);
}

function openToken(run = null) {
  then = run;
  byId('token-input').value = '';
  showResult(byId('token-result'), '', true);
  setHidden(byId('token-forget'), !token.isSet);
  byId('token-dialog').showModal();
  byId('token-input').focus();
}

async function enter(event) {
  event.preventDefault();
  const button = byId('token-form').querySelector('[type=submit]');
  if (button.disabled) return;
  button.disabled = true;
  try {
    await token.use(byId('token-input').value.trim());
    const run = then;
    byId('token-dialog').close();
    run?.();
  } catch (error) {
    const words = error.status === 401 ? `Refused: ${wordsOf(error)}.` : wordsOf(error);
    showResult(byId('token-result'), visible(words), false);
    byId('token-input').select();
  } finally {
    button.disabled = false;
  }
}

export function startAccess() {
  const dialog = byId('token-dialog');
  closable(dialog);
  dialog.addEventListener('close', () => { then = null; byId('token-input').value = ''; });
  byId('token-form').addEventListener('submit', enter);
  byId('token-forget').addEventListener('click', () => { token.forget(); dialog.close(); });
  for (const id of ['open-token', 'locked-open']) byId(id).addEventListener('click', () => openToken());
  const label = () => {
    setText(byId('open-token'), token.isSet ? 'Token ✓' : 'Enter token');
    document.body.classList.toggle('has-token', token.isSet);
  };
  token.onChange(label);
  label();
}
