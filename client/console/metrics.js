// Reads Prometheus's text format and computes rates from successive readings.

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES = {n: '\n', '"': '"', '\\': '\\'};

const MANY = 20;  // Values from which a place within a bucket means something.

const number = (text) => text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text);

// A map from each metric's name, without "sfmamba_", to [{labels, value}].
export function parseMetrics(text) {
  const metrics = new Map();
  for (const line of text.split('\n')) {
    const match = line.startsWith('#') ? null : SAMPLE.exec(line);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? '').matchAll(LABEL)) {
      labels[name] = value.replace(/\\(.)/g, (all, escaped) => ESCAPES[escaped] ?? all);
    }
    const name = match[1].replace(/^sfmamba_/, '');
    if (!metrics.has(name)) metrics.set(name, []);
    metrics.get(name).push({labels, value: number(match[3])});
  }
  return metrics;
}

// Sums the metric over the samples whose labels contain `wanted`; null if there are none.
export function total(metrics, name, wanted = {}) {
  let sum = null;
  for (const {labels, value} of metrics.get(name) ?? []) {
    if (Object.entries(wanted).every(([key, text]) => labels[key] === text)) sum += value;
  }
  return sum;
}

// Readings of the last while, oldest first.
export class History {
  // `span`: seconds that are kept.
  constructor(span) {
    this.span = span;
    this.readings = [];
  }

  // `time` in seconds, ever later. What was read before the server's start is forgotten.
  add(time, metrics) {
    const started = total(metrics, 'process_start_time_seconds');
    if (started !== this.started) this.readings = [];
    this.started = started;
    this.readings.push({time, metrics});
    while (this.readings[0].time < time - this.span - 0.5) this.readings.shift();
  }

  get latest() {
    return this.readings[this.readings.length - 1]?.metrics;
  }

  // The first reading of the last `span` seconds, and the newest; null before there are two.
  window(span) {
    const newest = this.readings[this.readings.length - 1];
    const first = this.readings.find(({time}) => time >= newest.time - span - 0.5);
    return first && first !== newest ? {first, newest} : null;
  }

  // How much the metric has grown in the last `span` seconds.
  growth(name, wanted, span = this.span) {
    const window = this.window(span);
    if (!window) return null;
    const now = total(window.newest.metrics, name, wanted);
    return now === null ? null : now - (total(window.first.metrics, name, wanted) ?? 0);
  }

  rate(name, wanted, span) {
    const window = this.window(span);
    const growth = this.growth(name, wanted, span);
    return growth === null ? null : growth / (window.newest.time - window.first.time);
  }

  // Where the quantile of what a histogram counted lies, {from, to}: one value itself, few within
  // a bucket, many at an estimate in it, as Prometheus has it; null where it counted nothing.
  quantile(q, name, wanted) {
    const bounds = new Set((this.latest?.get(`${name}_bucket`) ?? []).map(({labels}) => labels.le));
    const buckets = [...bounds].map((le) => ({bound: number(le),
      count: this.growth(`${name}_bucket`, {...wanted, le}) ?? 0}));
    buckets.sort((a, b) => a.bound - b.bound);
    const all = buckets[buckets.length - 1]?.count;
    if (!all) return null;
    const i = buckets.findIndex(({count}) => count >= q * all);
    const to = buckets[i].bound;
    const [from, below] = i ? [buckets[i - 1].bound, buckets[i - 1].count] : [0, 0];
    if (all > 1 && (all < MANY || to === Infinity)) return {from, to};
    const value = all > 1 ? from + (to - from) * (q * all - below) / (buckets[i].count - below)
        : this.growth(`${name}_sum`, wanted);
    return {from: value, to: value};
  }
}
