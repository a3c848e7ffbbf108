// Shows an answer as tables and legends, and draws it over the picture.
//
// JSON leaves out default values: a score of 0, a class 0 or an empty list is absent.

import {bytes, make, makeTable, seconds, swatch} from './dom.js';
import {colorsOf, Layer, MAX_SIDE} from './runs.js';

const MAX_ROWS = 100;
const STAGES = ['decode', 'preprocess', 'queue', 'inference', 'postprocess'];

const percent = (value) => value > 0 && value < 5e-4 ? '< 0.1 %' : `${(100 * value).toFixed(1)} %`;
const labelOf = (entry) => entry.label || `class ${entry.classId ?? 0}`;

const counted = (count, one, many) => `${count} ${count === 1 ? one : many}`;

// Returns the layer that View draws for a heat map's PNG. Value 0 is fully transparent. The
// colour changes from yellow to red, and the opacity grows to 70 %, as the value grows to
// 255. Returns null if there is no PNG.
export async function heatLayer(map) {
  if (!map?.png) return null;
  const png = await createImageBitmap(new Blob([Uint8Array.from(atob(map.png), (c) => c.charCodeAt(0))]));
  const scale = Math.min(1, MAX_SIDE / Math.max(png.width, png.height));
  const layer = new OffscreenCanvas(Math.ceil(png.width * scale), Math.ceil(png.height * scale));
  const context = layer.getContext('2d');
  context.drawImage(png, 0, 0, layer.width, layer.height);
  const pixels = context.getImageData(0, 0, layer.width, layer.height);
  for (let i = 0; i < pixels.data.length; i += 4) {
    const value = pixels.data[i];
    pixels.data.set([255, 255 - value, 0, 0.7 * value], i);
  }
  context.putImageData(pixels, 0, 0);
  return {layer, size: {width: png.width, height: png.height}};
}

// Returns {said, table} for a ClassifyResult (see RENDER). `heat` is the layer of the
// result's heat map, or null. Draws it on `view`.
function renderScores(result, {view, heat}) {
  if (heat) view.setOverlay(heat);
  const categories = result.categories ?? [];
  const table = makeTable('Scores of the most likely classes', ['Class', 'Score'],
      categories.map((category) => {
        const bar = make('span', {class: 'bar', 'aria-hidden': 'true'});
        const share = Math.max(0, Math.min(1, category.score ?? 0));
        bar.style.width = `${100 * share}%`;
        return [labelOf(category),
          make('span', {class: 'score'}, make('span', {class: 'track'}, bar),
              make('span', {class: 'number'}, percent(category.score ?? 0)))];
      }));
  const best = categories.length ? labelOf(categories[0]) : 'The classifier names no class.';
  return {said: counted(categories.length, 'class', 'classes'),
    table: make('div', {}, make('p', {class: 'verdict'}, best), table)};
}

// Returns {said, table, legend} for the objects of a DetectResult whose scores are above
// `threshold` (see RENDER). Draws these objects on `view`, without the classes in `hidden`.
function renderObjects(result, {view, threshold, hidden}) {
  const detections = result.detections ?? [];
  const colors = colorsOf(detections.map((detection) => detection.classId ?? 0));
  const all = detections.map((detection, index) => {
    const {xMin = 0, yMin = 0, xMax = 0, yMax = 0} = detection.box ?? {};
    const best = detection.crop?.categories?.[0];
    const crop = best ? `, ${labelOf(best)} ${(best.score ?? 0).toFixed(2)}` : '';
    return {index, crop, label: labelOf(detection), classId: detection.classId ?? 0,
      score: detection.score ?? 0, box: {xMin, yMin, xMax, yMax}, mask: detection.rle,
      color: colors.get(detection.classId ?? 0)};
  });
  const above = all.filter((object) => object.score > threshold);
  const shown = above.filter((object) => !hidden.has(object.classId));
  const size = {width: result.imageWidth ?? 0, height: result.imageHeight ?? 0};
  let layer = null;
  if (shown.some((object) => object.mask)) {
    layer = new Layer(size.width, size.height);
    // The objects with the highest scores are painted last, over the others.
    for (const object of [...shown].reverse()) {
      if (object.mask) layer.paint(object.mask, object.index + 1);
    }
    const painted = [null];
    for (const object of shown) painted[object.index + 1] = object.color;
    layer = layer.toCanvas(painted);
  }
  view.setOverlay({layer, size, boxes: shown.map((object) => (
    {...object, text: `${object.label} ${object.score.toFixed(2)}${object.crop}`}))});
  return {table: objectTable(all, above, threshold, view), legend: countClasses(above),
    said: counted(above.length, 'object', 'objects')};
}

function countClasses(objects) {
  const classes = new Map();
  for (const {classId, label, color} of objects) {
    const entry = classes.get(classId) ?? {classId, label, color, count: 0};
    ++entry.count;
    classes.set(classId, entry);
  }
  return [...classes.values()].map((entry) => ({...entry, detail: String(entry.count)}));
}

function objectTable(all, above, threshold, view) {
  const below = all.length - above.length;
  const less = below ? `${below} more ${below > 1 ? 'are' : 'is'} below.` : '';
  if (!above.length) {
    return make('p', {}, `No object has a score above ${threshold.toFixed(2)}. ${less}`);
  }
  const table = makeTable(`Objects with a score above ${threshold.toFixed(2)}. ${less}`,
      ['Object', 'Score', 'Box: left, top, width, height'],
      above.slice(0, MAX_ROWS).map((object) => {
        const {xMin, yMin, xMax, yMax} = object.box;
        const button = make('button', {type: 'button', class: 'plain', 'aria-pressed': 'false',
          onclick: () => toggle(button, object.index, view)}, object.label + object.crop);
        return [make('span', {class: 'named'}, swatch(object.color), button),
          object.score.toFixed(3),
          [xMin, yMin, xMax - xMin, yMax - yMin].map((value) => value.toFixed(0)).join(', ')];
      }));
  const note = above.length > MAX_ROWS
      ? make('p', {class: 'muted'}, `The table has the first ${MAX_ROWS} of ${above.length}.`) : null;
  return make('div', {}, table, note);
}

// Highlights one object in the picture, or none if it is already highlighted.
function toggle(button, index, view) {
  const on = button.getAttribute('aria-pressed') !== 'true';
  for (const other of button.closest('table').querySelectorAll('[aria-pressed]')) {
    other.setAttribute('aria-pressed', 'false');
  }
  button.setAttribute('aria-pressed', String(on));
  view.setFocus(on ? index : -1);
}

// Draws the class map of a SegmentResult on `view`, without the classes in `hidden`.
// Returns {said, table, legend} (see RENDER).
function renderMap(result, {view, hidden}) {
  const areas = new Map((result.areas ?? []).map((area) => [area.classId ?? 0, area]));
  const classes = (result.rle?.classes ?? []).map((entry) => ({...entry,
    classId: entry.classId ?? 0, fraction: areas.get(entry.classId ?? 0)?.fraction ?? 0}));
  classes.sort((a, b) => b.fraction - a.fraction);
  const size = {width: result.width ?? 0, height: result.height ?? 0};
  const layer = new Layer(size.width, size.height);
  const colors = colorsOf(classes.filter((entry) => entry.label !== 'background')
      .map((entry) => entry.classId));
  const painted = [null];
  classes.forEach((entry, i) => {
    layer.paint(entry.rle ?? {}, i + 1);
    entry.color = colors.get(entry.classId) ?? null;
    painted[i + 1] = hidden.has(entry.classId) ? null : entry.color;
  });
  view.setOverlay({layer: layer.toCanvas(painted), size});
  return {
    said: counted(classes.length, 'class', 'classes'),
    legend: classes.map((entry) => ({classId: entry.classId, label: labelOf(entry),
      color: entry.color, detail: percent(entry.fraction)})),
    table: makeTable('Share of the picture that each class covers', ['Class', 'Area'],
        classes.slice(0, MAX_ROWS).map((entry) => [
          make('span', {class: 'named'}, swatch(entry.color), labelOf(entry)),
          percent(entry.fraction)])),
  };
}

// For each task, the function that draws a result on `view` and returns {said, table,
// legend}. `said` is a short summary for the status line and for screen readers, for
// example "3 objects". `legend` has the entries for renderLegend(), and is absent for
// classifiers.
export const RENDER = {CLASSIFICATION: renderScores, DETECTION: renderObjects,
  SEGMENTATION: renderMap};

// Returns a button for each class. A click calls `changed` with the number of the class,
// which the caller then hides or shows.
export function renderLegend(entries, hidden, changed) {
  return entries.map((entry) => make('button', {type: 'button', class: 'chip',
    'aria-pressed': String(!hidden.has(entry.classId)), 'data-class': entry.classId,
    onclick: () => changed(entry.classId)},
  swatch(entry.color), entry.label, make('span', {class: 'muted'}, entry.detail)));
}

// Returns an element that shows how long each stage of a request took. `timing` contains
// the times that the server measured. `elapsed` is the time in seconds that the page measured
// from sending the request to receiving the complete answer.
export function renderTiming(timing, elapsed) {
  const value = (name) => parseFloat(timing[name] ?? '0') || 0;
  const parts = STAGES.map((name) => ({name, time: value(name)}));
  const total = value('total');
  const known = parts.reduce((sum, part) => sum + part.time, 0);
  parts.push({name: 'other', time: Math.max(0, total - known)});
  parts.push({name: 'network', time: Math.max(0, elapsed - Math.max(total, known))});
  const sum = parts.reduce((all, part) => all + part.time, 0) || 1;
  const bar = make('div', {class: 'stages', 'aria-hidden': 'true'}, ...parts.map((part) => {
    const piece = make('span', {class: `stage-${part.name}`, title: part.name});
    piece.style.flexGrow = part.time / sum;
    return piece;
  }));
  const list = make('dl', {class: 'times'}, ...parts.map((part) => make('div', {},
      make('dt', {}, make('span', {class: `swatch stage-${part.name}`, 'aria-hidden': 'true'}),
          part.name),
      make('dd', {}, seconds(part.time)))));
  return make('div', {}, bar, list,
      make('p', {class: 'muted'}, `${seconds(total)} in the server, ${seconds(elapsed)} seen from here.`));
}

// Returns further facts about an answer.
export function renderFacts({answer, bytes: size}) {
  const timing = answer.timing ?? {};
  const batch = timing.batchSize ?? 0;
  const padded = timing.paddedBatchSize ?? 0;
  const facts = [
    ['Model', answer.model],
    ['Batch', batch && `${batch} ${batch > 1 ? 'images' : 'image'}` +
        (padded > batch ? `, padded to ${padded}` : '')],
    ['Input', timing.bucket],
    ['Device', timing.device],
    ['Answer', bytes(size)],
    ['Request', answer.requestId],
  ];
  return make('dl', {class: 'facts'}, ...facts.filter(([, value]) => value).map(
      ([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, String(value)))));
}
