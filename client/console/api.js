// Calls the server's REST API. Paths are relative to the page. So the page also works
// behind a proxy that serves it in a subfolder.

import {CallError} from './errors.js';
import {authorization, token} from './token.js';

const DEADLINE = 30;  // Seconds. This is sent to the server.
const PATIENCE = 35;  // Seconds. After this time the page cancels the call.

export const TASKS = {
  CLASSIFICATION: {method: 'classify', noun: 'classifier'},
  DETECTION: {method: 'detect', noun: 'detector'},
  SEGMENTATION: {method: 'segment', noun: 'segmenter'},
};

function errorOf(response, text) {
  const after = parseFloat(response.headers.get('retry-after'));
  try {
    const status = JSON.parse(text);
    if (Number.isInteger(status.code)) return new CallError(status, response.status, after);
  } catch {
    // The text is not the server's own answer. It may come from a proxy.
  }
  return new CallError({code: 2, message: text.slice(0, 400) || response.statusText},
      response.status, after);
}

// Resolves to the answer's text. Rejects with a CallError, or with an AbortError if the
// options' signal aborts the call. Tells the page whether the server accepts the token.
async function call(path, options) {
  const used = token();
  let response;
  let text;
  try {
    response = await fetch(path, {...options, headers: {...options.headers, ...authorization()},
      cache: 'no-store', credentials: 'same-origin'});
    text = await response.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new CallError(error.name === 'TimeoutError' ? {code: 4, message: 'no answer came in time'}
        : {code: 14, message: response ? 'the connection broke before the whole answer came'
            : 'the server cannot be reached'});
  }
  const error = response.ok ? null : errorOf(response, text);
  document.dispatchEvent(new CustomEvent('answered', {detail: {code: error?.code ?? 'OK', used}}));
  if (error) throw error;
  return text;
}

export async function listModels() {
  const models = [];
  let next = '';
  do {
    const page = JSON.parse(await call(`v1/models?page_token=${encodeURIComponent(next)}`,
        {signal: AbortSignal.timeout(5000)}));
    models.push(...(page.models ?? []));
    next = page.nextPageToken ?? '';
  } while (next);
  return models;
}

export const readMetrics = () => call('metrics', {signal: AbortSignal.timeout(5000)});

// Returns "models/street/versions/2" as {id: 'street', version: '2'}.
export function parseName(name) {
  const [, id = name, , version = ''] = name.split('/');
  return {id, version};
}

// Returns a model's title. It contains the version only if other models have the same id.
export function titleOf(model, models) {
  const {id, version} = parseName(model.name);
  const several = models.filter((other) => parseName(other.name).id === id).length > 1;
  return several ? `${id}, version ${version}` : id;
}

// Returns the address that runs a model. `target` is {name, versioned, method}.
export function runUrl(target, parameters) {
  const {id, version} = parseName(target.name);
  const path = ['v1/models', id, ...(target.versioned ? ['versions', version] : [])];
  return `${path.map((part, i) => i ? encodeURIComponent(part) : part).join('/')}` +
      `:${target.method}?${new URLSearchParams(parameters)}`;
}

export function mediaType(picture) {
  return /^image\/(jpeg|png|webp)$/.test(picture.type) ? picture.type : 'application/octet-stream';
}

// Runs a model on a picture, which is a Blob. Resolves to {answer, bytes, elapsed}: the
// response message as JSON, its size, and the seconds from the request to the complete
// answer.
export async function run(target, picture, parameters, signal) {
  const begin = performance.now();
  const text = await call(runUrl(target, parameters), {
    method: 'POST',
    headers: {'Content-Type': mediaType(picture), 'X-Request-Timeout': String(DEADLINE)},
    body: picture,
    signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE * 1000)]),
  });
  const elapsed = (performance.now() - begin) / 1000;
  try {
    return {answer: JSON.parse(text), bytes: text.length, elapsed};
  } catch {
    throw new CallError({code: 13, message: 'the answer is no JSON'});
  }
}
