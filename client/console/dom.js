// Makes elements. Text from other sources is always inserted as text, never as HTML.

export const byId = (id) => document.getElementById(id);

// Changes a text only if it differs, because screen readers read changes aloud.
export function say(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

// Makes an element. For example: make('p', {class: 'muted', onclick: f}, 'text', element)
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Makes a table with a caption. `rows` are arrays of the cells' contents.
export function makeTable(caption, headings, rows) {
  return make('table', {},
      make('caption', {}, caption),
      make('thead', {}, make('tr', {},
          ...headings.map((text) => make('th', {scope: 'col'}, text)))),
      make('tbody', {}, ...rows.map((cells) => make('tr', {},
          ...cells.map((cell, i) => i ? make('td', {}, cell) : make('th', {scope: 'row'}, cell))))));
}

export function swatch(color) {
  const element = make('span', {class: 'swatch', 'aria-hidden': 'true'});
  if (color) element.style.background = css(color);
  return element;
}

export const css = ([red, green, blue]) => `rgb(${red}, ${green}, ${blue})`;

export function seconds(value) {
  if (!Number.isFinite(value)) return '–';
  if (value < 0.001) return `${(value * 1e6).toFixed(0)} µs`;
  if (value < 0.1) return `${(value * 1e3).toFixed(1)} ms`;
  if (value < 1) return `${(value * 1e3).toFixed(0)} ms`;
  return `${value.toFixed(value < 10 ? 2 : 0)} s`;
}

// Returns the range {from, to} as text, for example "25–50 ms". Both values are rounded to
// two significant digits. If they are then equal, returns one value, for example "25 ms".
// If `to` is infinite, returns for example "over 10 s".
export function secondsRange(range) {
  const last = range.to === Infinity ? range.from : range.to;
  const [unit, factor] = last < 0.001 ? ['µs', 1e6] : last < 1 ? ['ms', 1e3] : ['s', 1];
  const [from, to] = [range.from, last].map((value) => Number((value * factor).toPrecision(2)));
  return `${range.to === Infinity ? 'over ' : from < to ? `${from}–` : ''}${to} ${unit}`;
}

export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (value >= 1024 && i < units.length - 1) {
    value /= 1024;
    ++i;
  }
  return `${value.toFixed(i && value < 100 ? 1 : 0)} ${units[i]}`;
}
