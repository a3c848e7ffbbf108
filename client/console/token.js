// The token that this page sends with each call, if the server asks for one. It is stored
// only for this tab and is sent only in a header.

const KEY = 'token';
const VISIBLE = /^[\x21-\x7e]+$/;  // The characters that an HTTP header may contain.

// The current token, or ''. If the browser cannot store it, it is lost when the page reloads.
let memory = '';
try {
  memory = sessionStorage.getItem(KEY) ?? '';
} catch {
  // The browser does not allow access to the storage. The page starts without a token.
}

export const token = () => memory;

// Sets the token and returns true. An empty text removes the token. If an HTTP header
// cannot contain the text, returns false and changes nothing.
export function setToken(text) {
  if (text && !VISIBLE.test(text)) return false;
  memory = text;
  try {
    text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY);
  } catch {
    // The browser does not allow access to the storage. The token stays only in `memory`.
  }
  return true;
}

export const authorization = () => memory ? {Authorization: `Bearer ${memory}`} : {};
