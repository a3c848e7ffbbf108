// The error of a call, and advice for the user.

import {make} from './dom.js';

const CODES = ['OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND',
  'ALREADY_EXISTS', 'PERMISSION_DENIED', 'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED',
  'OUT_OF_RANGE', 'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'];

// After an error with one of these codes, the same request may succeed later. This also
// holds if the server does not say when to retry.
const PASSING = ['UNKNOWN', 'DEADLINE_EXCEEDED', 'ABORTED', 'INTERNAL', 'UNAVAILABLE'];

// Each row has a text that advises the user, and the names of the errors for which the text
// is shown. A name is an error's reason or its status code. The page looks for the reason
// first, and for the code only if no row has the reason.
const ADVICE = [
  ['Choose a JPEG, PNG or WebP picture.', 'IMAGE_FORMAT_UNSUPPORTED'],
  ['This picture is damaged: choose another.', 'IMAGE_DECODE_FAILED'],
  ['Choose a smaller picture.', 'IMAGE_TOO_LARGE', 'INPUTS_TOO_LARGE', 'RESPONSE_TOO_LARGE',
    'IMAGE_DECODE_TIMEOUT'],
  ['Wait until the model is ready, or choose another.', 'MODEL_NOT_READY'],
  ['Choose another model.', 'NOT_FOUND', 'FAILED_PRECONDITION', 'UNIMPLEMENTED'],
  ['The server does not take this request: change it.', 'INVALID_ARGUMENT'],
  ['Give a token that the server knows.', 'UNAUTHENTICATED'],
  ['Use a token that may do this.', 'PERMISSION_DENIED'],
  ['The server has too much to do: try again later.', 'RESOURCE_EXHAUSTED', 'DEADLINE_EXCEEDED'],
  ['See whether the server is running, then try again.', 'UNAVAILABLE'],
];
const adviceFor = (name) => ADVICE.find(([, ...names]) => names.includes(name))?.[0];

export class CallError extends Error {
  // `status` is a google.rpc.Status in JSON. `http` is the HTTP status, or 0 if there is
  // none.
  constructor(status, http = 0, retryAfter = null) {
    super(status.message || 'no message');
    this.code = CODES[status.code] ?? `code ${status.code}`;
    this.http = http;
    this.retryDelay = retryAfter;  // In seconds, or null if unknown.
    this.fields = [];
    for (const detail of Array.isArray(status.details) ? status.details : []) {
      const type = String(detail['@type']).split('.').pop();
      if (type === 'ErrorInfo') this.reason = detail.reason;
      if (type === 'RetryInfo') this.retryDelay = parseFloat(detail.retryDelay);
      if (type === 'BadRequest') this.fields = detail.fieldViolations ?? [];
    }
    if (!Number.isFinite(this.retryDelay)) this.retryDelay = null;
    this.passes = this.retryDelay !== null || PASSING.includes(this.code);
  }
}

// Returns the text without a prefix such as "images[0]: " or "images[0].encoded: ". The
// page sends only one picture, so this prefix tells the user nothing.
const bare = (text) => text.replace(/^images\[0\](\.\w+)?: /, '');

// Makes the text a sentence. Capitalises the first word and adds a full stop if the text
// has no end mark. A first word with other characters than lower-case letters is not
// changed, because it may be the name of a model or of a field.
const sentence = (text) => text.replace(/^[a-z](?=[a-z]*(\s|$))/, (c) => c.toUpperCase()) +
    (/[.!?]$/.test(text) ? '' : '.');

// Makes a button that calls `retry`. It is disabled until the error's `retryDelay` is over.
function retryButton(error, retry) {
  const button = make('button', {type: 'button', onclick: retry});
  let left = Math.ceil(error.retryDelay ?? 0);
  const tick = () => {
    button.disabled = left > 0;
    button.textContent = left > 0 ? `Try again in ${left} s` : 'Try again';
    if (left-- > 0) setTimeout(tick, 1000);
  };
  tick();
  return button;
}

// Returns an element that shows the advice, the error's message, and the wrong fields of the
// request. It leaves out fields whose description is already in the message. If another
// attempt may succeed, the element has a button that calls `retry`.
export function renderError(error, retry) {
  const isNew = ({description = ''}) => !error.message.includes(bare(description));
  const fields = error.fields.filter(isNew);
  const advice = adviceFor(error.reason) ?? adviceFor(error.code) ??
      'Something went wrong: try again.';
  const about = [error.code, error.reason, error.http && `HTTP ${error.http}`];
  return make('div', {class: 'error'},
      make('p', {}, make('strong', {}, advice)),
      make('p', {}, sentence(bare(error.message))),
      fields.length ? make('ul', {}, ...fields.map(({field, description}) => make('li', {},
          make('code', {}, field), `: ${description}`))) : null,
      make('p', {class: 'muted'}, about.filter(Boolean).join(' · ')),
      error.passes ? retryButton(error, retry) : null);
}
