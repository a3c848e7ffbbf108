// Reads Prometheus's text format and computes rates from successive readings.

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES = {n: '\n', '"': '"', '\\': '\\'};

const MANY = 20;  // A quantile of fewer observed values is not interpolated.

const number = (text) => text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text);

// Returns a map from each metric's name, without "sfmamba_", to [{labels, value}].
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

// Returns the metric's sum over the samples whose labels contain `wanted`, or null if
// there are none.
export function total(metrics, name, wanted = {}) {
  let sum = null;
  for (const {labels, value} of metrics.get(name) ?? []) {
    if (Object.entries(wanted).every(([key, text]) => labels[key] === text)) sum += value;
  }
  return sum;
}

// The readings of the last seconds, the oldest first.
export class History {
  // Readings are kept for `span` seconds.
  constructor(span) {
    this.span = span;
    this.readings = [];
  }

  // `time` is in seconds and must not decrease. If the server has restarted, older
  // readings are dropped.
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

  // Returns the first reading of the last `span` seconds and the newest. Returns null if
  // there are fewer than two.
  window(span) {
    const newest = this.readings[this.readings.length - 1];
    const first = this.readings.find(({time}) => time >= newest.time - span - 0.5);
    return first && first !== newest ? {first, newest} : null;
  }

  // Returns how much the metric has grown in the last `span` seconds. Returns null if there
  // are fewer than two readings, or if the newest reading does not contain the metric.
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

  // Returns a range {from, to} that contains the quantile q of the values that a histogram
  // has counted in the last `span` seconds. If there was one value, `from` and `to` are this
  // value, which is the growth of the histogram's sum. If there were fewer than MANY values,
  // or the quantile's bucket has no upper bound, `from` and `to` are the bounds of the
  // bucket. Otherwise both are an estimate, which is interpolated inside the bucket like
  // histogram_quantile() of Prometheus. Returns null if there was no value.
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
