// The token that this page sends with each call, if the server asks for one. It is
// kept for this tab alone, and leaves it in a header only.

const KEY = 'token';
const VISIBLE = /^[\x21-\x7e]+$/;  // What a header takes.

// Without a place to keep it, as some browsers have it, it lasts until a reload.
let memory = '';
try {
  memory = sessionStorage.getItem(KEY) ?? '';
} catch {
  // Nothing is kept.
}

export const token = () => memory;

// False, and nothing changes, if no header could hold it.
export function setToken(text) {
  if (text && !VISIBLE.test(text)) return false;
  memory = text;
  try {
    text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY);
  } catch {
    // As above.
  }
  return true;
}

export const authorization = () => memory ? {Authorization: `Bearer ${memory}`} : {};
