// Shows the models, their states and their current load. Reads them from the server once
// a second while the page is visible.

import {listModels, parseName, readMetrics, titleOf} from './api.js';
import {bytes, byId, make, say, seconds, secondsRange} from './dom.js';
import {History, parseMetrics, total} from './metrics.js';
import {token} from './token.js';

const PERIOD = 1000;  // In milliseconds.
const LIST_EVERY = 5;  // The list of models is read once per this many readings.
const SPAN = 30;  // Latencies and batch sizes are computed over this many seconds.
const RATE_SPAN = 5;  // Rates are computed over this many seconds.
const POINTS = 60;  // The points of a sparkline.

const plain = (value) => value.toFixed(value < 10 && value % 1 ? 1 : 0);

// Each tile has a name, a function that finds its value, and a function that formats it.
const TILES = [
  ['Images/s', (h, m) => h.rate('items_total', {...m, outcome: 'ok'}, RATE_SPAN), plain],
  ['p50', (h, m) => h.quantile(0.5, 'request_duration_seconds', {...m, code: 'OK'}), secondsRange],
  ['p95', (h, m) => h.quantile(0.95, 'request_duration_seconds', {...m, code: 'OK'}), secondsRange],
  ['Queue', (h, m) => total(h.latest, 'queue_items', m), plain],
  ['Predicted wait', (h, m) => total(h.latest, 'predicted_wait_seconds', m), seconds],
  ['Mean batch', (h, m) => {
    const count = h.growth('batch_items_count', m);
    return count ? h.growth('batch_items_sum', m) / count : null;
  }, plain],
];
const SERVER_TILES = [
  ['Requests in flight', (h) => total(h.latest, 'in_flight_requests'), plain],
  ['Device busy', (h) => total(h.latest, 'device_busy_ratio'), (v) => `${(100 * v).toFixed(0)} %`],
  ['Processors', (h) => h.rate('process_cpu_seconds_total', {}, RATE_SPAN), plain],
  ['Memory', (h) => total(h.latest, 'process_resident_memory_bytes'), bytes],
];

class Tile {
  constructor([name, find, write]) {
    this.find = find;
    this.write = write;
    this.points = [];
    this.value = make('dd', {'data-tile': name}, '–');
    this.canvas = make('canvas', {'aria-hidden': 'true'});
    this.element = make('div', {class: 'tile'}, make('dt', {}, name), this.value, this.canvas);
  }

  update(history, wanted) {
    const value = this.find(history, wanted);
    this.value.textContent = value === null ? '–' : this.write(value);
    this.points.push(value?.to ?? value);
    if (this.points.length > POINTS) this.points.shift();
    this.draw();
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.canvas.width = width * ratio;  // This also clears the canvas.
    this.canvas.height = height * ratio;
    const context = this.canvas.getContext('2d');
    context.scale(ratio, ratio);
    const highest = Math.max(...this.points.map((value) => value ?? 0), 1e-9);
    context.strokeStyle = getComputedStyle(this.canvas).color;
    context.lineWidth = 1.5;
    context.beginPath();
    this.points.forEach((value, i) => {
      const x = (i + POINTS - this.points.length) * width / (POINTS - 1);
      const y = height - 2 - (height - 4) * value / highest;
      if (value === null) return;
      if ((this.points[i - 1] ?? null) === null) context.moveTo(x, y);
      context.lineTo(x, y);
    });
    context.stroke();
  }
}

// Shows the state, facts and tiles of one model, or of the server if there is no model.
class Panel {
  constructor(tiles) {
    this.title = make('h3');
    this.state = make('span', {class: 'state'});
    this.facts = make('p', {class: 'muted'});
    this.tiles = tiles.map((tile) => new Tile(tile));
    this.element = make('article', {class: 'panel'},
        make('div', {class: 'row'}, this.title, this.state), this.facts,
        make('dl', {class: 'tiles'}, ...this.tiles.map((tile) => tile.element)));
  }

  describe(title, model = {}) {
    this.title.textContent = title;
    this.element.setAttribute('aria-label', title);
    this.state.textContent = this.state.dataset.state = model.state ?? '';
    const sizes = (model.input?.buckets ?? []).map(({height, width}) => `${height} x ${width}`);
    this.facts.textContent = [
      model.stateReason,
      (model.task ?? '').toLowerCase(),
      model.classCount && `${model.classCount} classes`,
      sizes.length && `input ${sizes.slice(0, 3).join(', ')}`,
      model.maxBatchSize && `batches up to ${model.maxBatchSize}`,
      model.precision && `computed in ${model.precision}`,
      model.weightsSizeBytes && bytes(Number(model.weightsSizeBytes)),
    ].filter(Boolean).join(' · ');
  }

  // A model is shown as one row if it has processed no image in the last SPAN seconds and no
  // image is waiting.
  update(history, wanted) {
    this.element.classList.toggle('idle', Boolean(wanted.model) &&
        !history.growth('items_total', wanted) && !total(history.latest, 'queue_items', wanted));
    for (const tile of this.tiles) tile.update(history, wanted);
  }
}

export class LiveView {
  // Each time the list of models has been read, calls `onModels` with the list.
  constructor(onModels) {
    this.onModels = onModels;
    this.history = new History(SPAN);
    this.panels = new Map();
    this.server = new Panel(SERVER_TILES);
    this.server.describe('Server');
    byId('live').append(this.server.element);
    this.readings = 0;
    this.paused = false;
    this.timer = null;
    document.addEventListener('visibilitychange', () => this.wake());
    byId('pause').addEventListener('click', () => {
      this.paused = !this.paused;
      byId('pause').setAttribute('aria-pressed', String(this.paused));
      this.wake();
    });
    this.wake();
  }

  wake() {
    clearTimeout(this.timer);
    if (this.reading || document.hidden || (this.paused && this.readings)) return;
    this.read();
  }

  async read() {
    this.reading = true;
    let resting = false;
    const used = token();
    try {
      if (this.readings % LIST_EVERY === 0) this.show(await listModels());
      const metrics = parseMetrics(await readMetrics());
      this.history.add(performance.now() / 1000, metrics);
      this.update(metrics);
      say('connection', 'Connected');
      ++this.readings;
    } catch (error) {
      const refused = ['UNAUTHENTICATED', 'PERMISSION_DENIED'].includes(error.code);
      say('connection', `${refused ? 'Refused' : 'No connection'}: ${error.message}`);
      this.readings = 0;  // The next call of read() also reads the list of models.
      // If the server refuses the current token, no timer starts the next reading. The page
      // calls wake() when the user enters another token.
      resting = refused && used === token();
    }
    byId('connection').dataset.state = this.readings ? 'connected' : 'lost';
    this.reading = false;
    if (resting || document.hidden || this.paused) return;
    this.timer = setTimeout(() => this.wake(), PERIOD);
  }

  show(models) {
    for (const [name, panel] of this.panels) {
      if (models.some((model) => model.name === name)) continue;
      panel.element.remove();
      this.panels.delete(name);
    }
    for (const model of models) {
      if (!this.panels.has(model.name)) {
        this.panels.set(model.name, new Panel(TILES));
        this.server.element.before(this.panels.get(model.name).element);
      }
      this.panels.get(model.name).describe(titleOf(model, models), model);
    }
    this.onModels(models);
  }

  update(metrics) {
    for (const [name, panel] of this.panels) {
      panel.update(this.history, {model: parseName(name).id});
    }
    this.server.update(this.history, {});
    const build = metrics.get('build_info')?.[0]?.labels;
    say('build', build ? `${build.version} ${(build.revision ?? '').slice(0, 12)}` : '');
  }
}
