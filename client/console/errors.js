// The error of a call, and advice for the user.

import {make} from './dom.js';

const CODES = ['OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND',
  'ALREADY_EXISTS', 'PERMISSION_DENIED', 'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED',
  'OUT_OF_RANGE', 'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'];

// A later attempt may succeed after errors with these codes, even if the server does not
// say when.
const PASSING = ['UNKNOWN', 'DEADLINE_EXCEEDED', 'ABORTED', 'INTERNAL', 'UNAVAILABLE'];

// Advice for errors with these reasons. If no reason matches, the code is used.
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
    this.retryDelay = retryAfter;  // Seconds. null: unknown.
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

// Returns the text without the prefix that names the only picture.
const bare = (text) => text.replace(/^images\[0\](\.\w+)?: /, '');

// Capitalises the first word, unless it is a name, such as a model's or a field's.
const sentence = (text) => text.replace(/^[a-z](?=[a-z]*(\s|$))/, (c) => c.toUpperCase()) +
    (/[.!?]$/.test(text) ? '' : '.');

// Makes a button that is disabled for the time that the error says.
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

// Shows the advice, then the reasons, without repetitions. If another attempt may help, a
// button calls `retry`.
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
