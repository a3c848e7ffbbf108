// Converts masks and class maps from COCO's compressed run lengths to coloured pixels.

export const MAX_SIDE = 1280;  // Larger drawings are sampled to this size.

// Returns the lengths of a mask's runs. Runs go down the columns and begin with unset
// pixels. Throws an Error unless they cover the whole mask.
export function decodeRuns({height = 0, width = 0, counts = ''}) {
  const runs = [];
  let total = 0;
  for (let i = 0; i < counts.length;) {
    let value = 0;
    let shift = 0;
    let bits;
    do {
      bits = counts.charCodeAt(i++) - 48;
      if (!(bits >= 0 && bits < 64) || shift > 30) throw new Error('a mask is not run lengths');
      value |= (bits & 31) << shift;
      shift += 5;
    } while (bits & 32);
    if (bits & 16 && shift < 32) value |= -1 << shift;
    // From the fourth run on, the text has the difference from the run two places before.
    if (runs.length > 2) value += runs[runs.length - 2];
    if (value < 0) throw new Error('a mask has a negative run');
    runs.push(value);
    total += value;
  }
  if (total !== height * width) {
    throw new Error(`a mask of ${width} x ${height} pixels has runs of ${total} pixels`);
  }
  return runs;
}

// These colours are easy to distinguish on any picture.
const COLORS = [[18, 165, 160], [242, 142, 43], [139, 92, 246], [225, 87, 89], [124, 181, 24],
  [59, 130, 246], [236, 72, 153], [234, 179, 8], [6, 182, 212], [161, 98, 7], [22, 163, 74],
  [217, 140, 200]];

// Returns a map from each class of an answer to its colour [red, green, blue]. The first
// twelve classes have different colours.
export function colorsOf(classIds) {
  return new Map([...new Set(classIds)].map((id, i) => [id, COLORS[i % COLORS.length]]));
}

// Returns black or white, whichever is easier to read on the colour.
export function textOn([red, green, blue]) {
  const linear = [red, green, blue].map((value) => (value / 255) ** 2.2);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.18 ? '#000' : '#fff';
}

// Stores for each pixel of a picture, or of a smaller copy, which mask covers it.
export class Layer {
  // The sizes are in pixels of the picture.
  constructor(width, height) {
    if (!(width > 0 && height > 0)) throw new Error(`the answer is of ${width} x ${height} pixels`);
    const scale = Math.min(1, MAX_SIDE / Math.max(width, height));
    this.sourceWidth = width;
    this.sourceHeight = height;
    this.width = Math.max(1, Math.round(width * scale));
    this.height = Math.max(1, Math.round(height * scale));
    this.indices = new Uint16Array(this.width * this.height);  // 0 means no mask.
    // For each column of the picture, the layer's column that shows it, or -1 if none does.
    this.columns = new Int32Array(width).fill(-1);
    for (let x = 0; x < this.width; ++x) {
      this.columns[Math.floor((x + 0.5) * width / this.width)] = x;
    }
  }

  // Writes `index` to the pixels of the mask, over earlier masks.
  paint(mask, index) {
    if (mask.width !== this.sourceWidth || mask.height !== this.sourceHeight) {
      throw new Error(`a mask is of ${mask.width} x ${mask.height} pixels, ` +
          `the picture of ${this.sourceWidth} x ${this.sourceHeight}`);
    }
    const height = this.sourceHeight;
    let begin = 0;
    decodeRuns(mask).forEach((length, i) => {
      const end = begin + length;
      if (i % 2) {
        for (let x = Math.floor(begin / height); x * height < end; ++x) {
          this.paintColumn(x, Math.max(begin - x * height, 0), Math.min(end - x * height, height),
              index);
        }
      }
      begin = end;
    });
  }

  paintColumn(column, top, bottom, index) {
    const x = this.columns[column];
    if (x < 0) return;
    const scale = this.height / this.sourceHeight;
    const end = Math.ceil(bottom * scale - 0.5);
    for (let y = Math.max(0, Math.ceil(top * scale - 0.5)); y < end; ++y) {
      this.indices[y * this.width + x] = index;
    }
  }

  // Returns a canvas with half-transparent masks and opaque outlines. `colors` has a
  // colour for each index, or null if the mask is hidden.
  toCanvas(colors) {
    const canvas = new OffscreenCanvas(this.width, this.height);
    const context = canvas.getContext('2d');
    const image = context.createImageData(this.width, this.height);
    const {indices, width, height} = this;
    for (let y = 0, i = 0; y < height; ++y) {
      for (let x = 0; x < width; ++x, ++i) {
        const index = indices[i];
        const color = colors[index];
        if (!color) continue;
        const edge = (x > 0 && indices[i - 1] !== index) ||
            (x + 1 < width && indices[i + 1] !== index) ||
            (y > 0 && indices[i - width] !== index) ||
            (y + 1 < height && indices[i + width] !== index);
        image.data.set(color, 4 * i);
        image.data[4 * i + 3] = edge ? 235 : 120;
      }
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }
}
