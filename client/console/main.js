// The page: it shows a picture, a model that runs on the picture, and the answer.

import {watchAccess} from './access.js';
import {RENDER, heatLayer, renderFacts, renderLegend, renderTiming} from './answers.js';
import {parseName, run, TASKS, titleOf} from './api.js';
import {commandsFor, renderCommands, tileParameters} from './commands.js';
import {byId, make, seconds} from './dom.js';
import {CallError, renderError} from './errors.js';
import {LiveView} from './live.js';
import {View} from './view.js';

// The request asks for all objects with higher scores than this. The slider for the score
// then hides and shows them without another request.
const LOWEST_SCORE = 0.05;
// At least this many pixels of the answer's height must be visible.
const ANSWER_SEEN = 160;

const view = new View(byId('view'), byId('drop'));
let models = [];
let picture = null;    // {blob, name, sample}
// Counts the chosen pictures. A picture is not shown if another one was chosen while it was
// loading.
let shown = 0;
let running = null;    // The AbortController of the running request.
let answered = null;   // {asked, result, measured}
let hidden = new Set();  // The numbers of classes that the user has hidden in the legend.

// ---- The picture ----

async function choose(blob, name, sample = null) {
  const turn = ++shown;
  picture = {blob, name: name || 'picture', sample};
  forget();
  // The browser rotates the picture as its EXIF orientation says. `loaded` is null if the
  // browser cannot show the picture.
  const loaded = await createImageBitmap(blob).catch(() => null);
  if (turn !== shown) return;
  byId('empty').hidden = loaded !== null;
  view.setPicture(loaded);
  const size = loaded ? `${loaded.width} x ${loaded.height} pixels`
      : 'this browser cannot show it';
  byId('picture-note').textContent = `${picture.name}: ${size}`;
  byId('view').setAttribute('aria-label', `${picture.name}, ${size}`);
  start();
}

// Loads the sample picture `name` and runs a model on it. `tasks` are the tasks for which the
// picture is a good example. If the selected model's task is not one of them, selects a
// model for the first of these tasks.
async function chooseSample(name, tasks) {
  if (!tasks.includes(selected()?.task)) {
    const model = modelFor(tasks[0]);
    if (model) byId('model').value = model.name;
  }
  try {
    const response = await fetch(`console/${name}`);
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    await choose(await response.blob(), name, name);
  } catch (error) {
    showError(new CallError({code: 14, message: `the sample cannot be read: ${error.message}`}),
        () => chooseSample(name, tasks));
  }
}

function takeFiles(files) {
  const file = [...files].find((item) => item.type.startsWith('image/')) ?? files[0];
  if (file) choose(file, file.name);
}

// ---- The request ----

const selected = () => models.find((model) => model.name === byId('model').value);

// Returns the model that the page selects for a task on its own. This is the task's default
// model if it is READY, or else the first READY model. Returns undefined if no model of the
// task is READY.
function modelFor(task) {
  const ready = models.filter((model) => model.task === task && model.state === 'READY');
  return ready.find((model) => model.defaultForTask) ?? ready[0];
}

function showModels(list) {
  models = list;
  const select = byId('model');
  const key = JSON.stringify(list.map((model) => [model.name, model.state, model.task]));
  if (select.dataset.key === key) return;
  const before = select.value;
  select.dataset.key = key;
  select.replaceChildren(...list.map((model) => {
    const noun = TASKS[model.task]?.noun ?? 'model of an unknown task';
    const state = model.state === 'READY' ? '' : ` (${model.state ?? 'UNKNOWN'})`;
    return make('option', {value: model.name}, `${titleOf(model, list)}: ${noun}${state}`);
  }));
  if (!list.length) select.append(make('option', {value: ''}, 'The server has no models'));
  const preferred = list.find((model) => model.name === before) ??
      list.find((model) => model.defaultForTask && model.state === 'READY') ??
      modelFor('DETECTION') ?? list[0];
  if (preferred) select.value = preferred.name;
  select.disabled = !list.length;
  const classifiers = list.filter(({task, state}) => task === 'CLASSIFICATION' && state === 'READY');
  const crops = byId('crops').value;
  byId('crops').replaceChildren(make('option', {value: ''}, 'the detector alone'),
      ...classifiers.map((model) => make('option', {value: model.name}, titleOf(model, list))));
  if (classifiers.some((model) => model.name === crops)) byId('crops').value = crops;
  showOptions();
}

function showOptions() {
  const task = selected()?.task;
  byId('threshold-row').hidden = task !== 'DETECTION';
  byId('tiles-row').hidden = task !== 'DETECTION';
  byId('crops-row').hidden = task !== 'DETECTION';
  byId('top-row').hidden = byId('heat-row').hidden = task !== 'CLASSIFICATION';
  byId('go').disabled = !picture || !TASKS[task];
}

const threshold = () => Number(byId('threshold').value);
const topK = () => Math.max(1, Math.min(1000, Math.round(Number(byId('top').value)) || 5));

function request() {
  const model = selected();
  const method = TASKS[model.task].method;
  const random = crypto.getRandomValues(new Uint32Array(2));
  const parameters = {include_timing: true,
    request_id: `console-${[...random].map((word) => word.toString(16).padStart(8, '0')).join('')}`};
  const options = {};
  if (method === 'classify') {
    parameters.top_k = options.topK = topK();
    options.heatMap = byId('heat').checked;
    if (options.heatMap) parameters['heat_map.encoding'] = 'PNG';
  }
  if (method === 'detect') {
    Object.assign(parameters, {score_threshold: LOWEST_SCORE, mask_encoding: 'COCO_RLE'});
    options.scoreThreshold = threshold();
    options.tiles = byId('tiles').value;
    if (options.tiles) Object.assign(parameters, tileParameters(options.tiles));
    options.crops = byId('crops').value;
    if (options.crops) parameters['crops.model'] = options.crops;
  }
  if (method === 'segment') {
    Object.assign(parameters, {encoding: 'RLE_PER_CLASS', include_class_areas: true});
  }
  const title = titleOf(model, models);
  const versioned = title !== parseName(model.name).id;
  return {target: {name: model.name, method, versioned}, title, task: model.task,
    picture: picture.blob, name: picture.name, sample: picture.sample, parameters, options};
}

async function start() {
  running?.abort();
  forget();
  showOptions();
  if (byId('go').disabled) return;
  const asked = request();
  const controller = running = new AbortController();
  const begin = performance.now();
  setBusy(true);
  byId('status').textContent = `Running ${asked.title}`;
  showCommands(asked);
  try {
    const measured = await run(asked.target, asked.picture, asked.parameters, controller.signal);
    measured.heat = await heatLayer(measured.answer.results?.[0]?.heatMap);
    if (running === controller) showAnswer(asked, measured);
  } catch (error) {
    if (running !== controller) return;
    const time = seconds((performance.now() - begin) / 1000);
    if (error.name === 'AbortError') byId('status').textContent = `Cancelled after ${time}.`;
    else showError(error);
  }
  if (running !== controller) return;
  running = null;
  setBusy(false);
  reveal();
}

function setBusy(busy) {
  byId('cancel').hidden = !busy;
  document.body.classList.toggle('busy', busy);
}

// Scrolls to the answer unless it is already visible. If the window has room for both, the
// picture is then visible too.
function reveal() {
  const {top} = byId('result').getBoundingClientRect();
  const seen = top + Math.min(ANSWER_SEEN, byId('result').offsetHeight);
  if (top >= 0 && seen <= window.innerHeight) return;
  const above = seen - byId('picture').getBoundingClientRect().top;
  byId(above <= window.innerHeight ? 'picture' : 'result').scrollIntoView();
}

// ---- The answer ----

function forget() {
  answered = null;
  hidden = new Set();
  view.removeOverlay();
  view.draw();
  for (const id of ['error', 'answer', 'legend', 'timing']) byId(id).replaceChildren();
  byId('time').hidden = true;
}

function showError(error, retry = start) {
  const shown = error instanceof CallError ? error
      : new CallError({code: 13, message: error.message});
  byId('status').textContent = '';
  byId('error').replaceChildren(renderError(shown, retry));
  byId('commands').hidden = !shown.passes;
}

// Throws an Error if the answer has no result for the picture, or a result that cannot be
// drawn.
function showAnswer(asked, measured) {
  const {timing, results: [result] = []} = measured.answer;
  if (!result) throw new Error('the answer has no result for the picture');
  if (timing) byId('timing').replaceChildren(renderTiming(timing, measured.elapsed));
  byId('time').hidden = !timing;
  if (result.error) throw new CallError(result.error);
  answered = {asked, measured, result};
  showResult(`, in ${seconds(measured.elapsed)}`);
}

// Draws the answer. Called again after each change of the settings for drawing.
function showResult(time = '') {
  const {asked, measured, result} = answered;
  const drawn = RENDER[asked.task](result, {view, threshold: threshold(), hidden, heat: measured.heat});
  const said = `${drawn.said}${time}.`;
  byId('status').textContent = said;
  byId('view').setAttribute('aria-label', `${asked.name}: ${said}`);
  byId('answer').replaceChildren(drawn.table, renderFacts(measured));
  showLegend(drawn.legend ?? []);
}

// Shows the legend. The keyboard focus stays on the same class.
function showLegend(entries) {
  const focused = document.activeElement?.dataset?.class;
  const legend = byId('legend');
  legend.replaceChildren(...renderLegend(entries, hidden, (classId) => {
    hidden.has(classId) ? hidden.delete(classId) : hidden.add(classId);
    showResult();
  }));
  if (focused !== undefined) {
    [...legend.children].find((chip) => chip.dataset.class === focused)?.focus();
  }
}

function showCommands(asked) {
  byId('command-list').replaceChildren(...renderCommands(
      commandsFor(asked, document.baseURI, window.location),
      (text) => { byId('copied').textContent = text; }));
  byId('copied').textContent = '';
  byId('commands').hidden = false;
}

// ---- What the user does ----

// Clearing the value allows choosing the same file again after it was changed.
byId('file').addEventListener('click', () => { byId('file').value = ''; });
byId('file').addEventListener('change', () => takeFiles(byId('file').files));
for (const button of document.querySelectorAll('[data-sample]')) {
  button.addEventListener('click', () =>
      chooseSample(button.dataset.sample, button.dataset.tasks.split(' ')));
}
document.addEventListener('paste', (event) => {
  if (event.clipboardData?.files.length) takeFiles(event.clipboardData.files);
});
for (const type of ['dragenter', 'dragover']) {
  document.addEventListener(type, (event) => {
    event.preventDefault();
    document.body.classList.add('dragged');
  });
}
document.addEventListener('dragleave', (event) => {
  if (!event.relatedTarget) document.body.classList.remove('dragged');
});
document.addEventListener('drop', (event) => {
  event.preventDefault();
  document.body.classList.remove('dragged');
  takeFiles(event.dataTransfer.files);
});
byId('run').addEventListener('submit', (event) => {
  event.preventDefault();
  start();
});
byId('cancel').addEventListener('click', () => running?.abort());
byId('model').addEventListener('change', start);
for (const id of ['tiles', 'crops', 'heat']) byId(id).addEventListener('change', start);
byId('threshold').addEventListener('input', () => {
  byId('threshold-value').textContent = threshold().toFixed(2);
  if (answered) {
    answered.asked.options.scoreThreshold = threshold();
    showResult();
    showCommands(answered.asked);
  }
});
const live = new LiveView(showModels);
watchAccess(() => live.wake());
