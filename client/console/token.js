// The token that this page sends with each call, if the server asks for one. It is stored
// only for this tab and is sent only in a header.

const KEY = 'token';
const VISIBLE = /^[\x21-\x7e]+$/;  // The characters that an HTTP header may contain.

// If the browser cannot store the token, it is lost when the page reloads.
let memory = '';
try {
  memory = sessionStorage.getItem(KEY) ?? '';
} catch {
  // No token is stored.
}

export const token = () => memory;

// Returns false and changes nothing if a header cannot contain the text.
export function setToken(text) {
  if (text && !VISIBLE.test(text)) return false;
  memory = text;
  try {
    text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY);
  } catch {
    // The token is not stored.
  }
  return true;
}

export const authorization = () => memory ? {Authorization: `Bearer ${memory}`} : {};
