// Asks the user for a token if the server requires one.

import {byId, say} from './dom.js';
import {setToken, token} from './token.js';

const tell = (text) => say('access-note', text);

// Handles the result of a call that was sent with the token `used`.
function answered({code, used}) {
  if (used !== token()) return;  // The call was sent with an older token.
  byId('forget-token').hidden = !used || code === 'UNAUTHENTICATED';
  if (code === 'UNAUTHENTICATED') {
    tell(used ? 'The server does not know this token.'
        : 'This server answers only those who have a token.');
    setToken('');
    if (!byId('access').hidden) return;
    byId('access').hidden = false;
    byId('token').focus();
  } else if (used) {
    byId('access').hidden = false;
    tell(code === 'PERMISSION_DENIED' ? 'The server knows the token, which may not do all of this.'
        : 'The server takes the token.');
  }
}

// Calls `changed` with each new token, and when the token is forgotten.
export function watchAccess(changed) {
  document.addEventListener('answered', (event) => answered(event.detail));
  byId('access-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const text = byId('token').value.trim();
    if (!text) return tell('Type a token in, or paste one.');
    if (!setToken(text)) return tell('A token has letters, digits and signs only, and no blanks.');
    byId('token').value = '';
    tell('Asking the server.');
    changed();
  });
  byId('forget-token').addEventListener('click', () => {
    setToken('');
    byId('forget-token').hidden = true;
    tell('The token is forgotten.');
    byId('token').focus();
    changed();
  });
}
