// Calls of the server's REST API. Paths are relative to the page, so that it works
// behind a proxy that serves it below a folder of its own.

import {authorization, token} from './token.js';

const DEADLINE = 30;  // Seconds, told to the server,
const PATIENCE = 35;  // and when the page gives up by itself.

const CODES = ['OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND',
  'ALREADY_EXISTS', 'PERMISSION_DENIED', 'RESOURCE_EXHAUSTED', 'FAILED_PRECONDITION', 'ABORTED',
  'OUT_OF_RANGE', 'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'];

export const TASKS = {
  CLASSIFICATION: {method: 'classify', noun: 'classifier'},
  DETECTION: {method: 'detect', noun: 'detector'},
  SEGMENTATION: {method: 'segment', noun: 'segmenter'},
};

// What a call ended with instead of an answer.
export class CallError extends Error {
  // `status` is a google.rpc.Status in JSON, `http` the response's status, if any.
  constructor(status, http = 0, retryAfter = null) {
    super(status.message || 'no message');
    this.code = CODES[status.code] ?? `code ${status.code}`;
    this.http = http;
    this.retryDelay = retryAfter;  // Seconds; null: nothing says when to try again.
    this.fields = [];
    for (const detail of Array.isArray(status.details) ? status.details : []) {
      const type = String(detail['@type']).split('.').pop();
      if (type === 'ErrorInfo') this.reason = detail.reason;
      if (type === 'RetryInfo') this.retryDelay = parseFloat(detail.retryDelay);
      if (type === 'BadRequest') this.fields = detail.fieldViolations ?? [];
    }
    if (!Number.isFinite(this.retryDelay)) this.retryDelay = null;
  }
}

async function errorOf(response) {
  const text = await response.text();
  const after = parseFloat(response.headers.get('retry-after'));
  try {
    const status = JSON.parse(text);
    if (Number.isInteger(status.code)) return new CallError(status, response.status, after);
  } catch {
    // Not the server's own answer: a proxy's, perhaps.
  }
  return new CallError({code: 2, message: text.slice(0, 400) || response.statusText},
      response.status, after);
}

// Tells the page whether the server takes the token that a call was sent with.
function tell(code, used) {
  document.dispatchEvent(new CustomEvent('answered', {detail: {code, used}}));
}

// Resolves to the parsed answer; rejects with a CallError, or an AbortError if
// `signal` says so.
async function call(path, options) {
  let response;
  const used = token();
  try {
    response = await fetch(path, {...options, headers: {...options.headers, ...authorization()},
      cache: 'no-store', credentials: 'same-origin'});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    if (error instanceof CallError) throw error;
    throw new CallError({code: 14, message: 'the server cannot be reached'});
  }
  if (!response.ok) {
    const error = await errorOf(response);
    tell(error.code, used);
    throw error;
  }
  tell('OK', used);
  return response;
}

export async function listModels() {
  const models = [];
  let token = '';
  do {
    const response = await call(`v1/models?page_token=${encodeURIComponent(token)}`,
        {signal: AbortSignal.timeout(5000)});
    const page = await response.json();
    models.push(...(page.models ?? []));
    token = page.nextPageToken ?? '';
  } while (token);
  return models;
}

export async function readMetrics() {
  return (await call('metrics', {signal: AbortSignal.timeout(5000)})).text();
}

// "models/street/versions/2" as {id: 'street', version: '2'}.
export function parseName(name) {
  const [, id = name, , version = ''] = name.split('/');
  return {id, version};
}

// The address that a question goes to. `target` is {name, versioned, method}.
export function questionUrl(target, parameters) {
  const {id, version} = parseName(target.name);
  const path = ['v1/models', id, ...(target.versioned ? ['versions', version] : [])];
  return `${path.map((part, i) => i ? encodeURIComponent(part) : part).join('/')}` +
      `:${target.method}?${new URLSearchParams(parameters)}`;
}

export function mediaType(picture) {
  return /^image\/(jpeg|png|webp)$/.test(picture.type) ? picture.type : 'application/octet-stream';
}

// Asks about a picture, a Blob. Resolves to {answer, bytes, elapsed}: the response
// message as JSON, its size, and the seconds from the question to the whole answer.
export async function ask(target, picture, parameters, signal) {
  const controller = new AbortController();
  signal.addEventListener('abort', () => controller.abort());
  const timer = setTimeout(() => controller.abort(new CallError(
      {code: 4, message: `no answer within ${PATIENCE} s`})), PATIENCE * 1000);
  try {
    const begin = performance.now();
    const response = await call(questionUrl(target, parameters), {
      method: 'POST',
      headers: {'Content-Type': mediaType(picture), 'X-Request-Timeout': String(DEADLINE)},
      body: picture,
      signal: controller.signal,
    });
    const text = await response.text();
    const elapsed = (performance.now() - begin) / 1000;
    let answer;
    try {
      answer = JSON.parse(text);
    } catch {
      throw new CallError({code: 13, message: 'the answer is no JSON'}, response.status);
    }
    return {answer, bytes: text.length, elapsed};
  } catch (error) {
    if (error instanceof CallError || error.name === 'AbortError') throw error;
    throw new CallError({code: 14, message: 'the connection broke before the whole answer came'});
  } finally {
    clearTimeout(timer);
  }
}
