// Shows the picture and draws over it.

import {css} from './dom.js';
import {textOn} from './runs.js';

const LABEL_FONT = '600 12px system-ui, sans-serif';
const LABEL_HEIGHT = 18;
const MAX_ENLARGEMENT = 3;
const MAX_LABEL = 40;  // In characters.

export class View {
  // Draws into `canvas`. `frame` is the element around the canvas. The canvas is made as large as
  // the width of `frame` and the height of the window allow, up to MAX_ENLARGEMENT times the
  // picture's size.
  constructor(canvas, frame) {
    this.canvas = canvas;
    this.frame = frame;
    this.setPicture(null);
    new ResizeObserver(() => this.draw()).observe(frame);
  }

  // `picture` is an ImageBitmap, which is closed after use, or null.
  setPicture(picture) {
    this.picture?.close();
    this.picture = picture;
    this.removeOverlay();
    this.draw();
  }

  removeOverlay() {
    this.layer = null;  // A canvas with masks. It is stretched over the picture.
    this.boxes = [];    // {index, box, text, color}. `box` is in pixels of `size`.
    this.size = null;   // The {width, height} that the answer states for the picture.
    this.focus = -1;    // The highlighted box, or -1.
  }

  setOverlay({layer = null, boxes = [], size}) {
    Object.assign(this, {layer, boxes, size});
    this.draw();
  }

  setFocus(index) {
    this.focus = index;
    this.draw();
  }

  draw() {
    const size = this.picture ?? this.size;
    this.canvas.hidden = !size;
    if (!size) return;
    const scale = Math.min(this.frame.clientWidth / size.width,
        Math.max(240, 0.68 * window.innerHeight) / size.height, MAX_ENLARGEMENT);
    const width = Math.max(1, Math.floor(size.width * scale));
    const height = Math.max(1, Math.floor(size.height * scale));
    const ratio = window.devicePixelRatio || 1;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext('2d');
    context.scale(ratio, ratio);
    if (this.picture) {
      context.drawImage(this.picture, 0, 0, width, height);
    } else {
      context.fillStyle = '#888';
      context.fillRect(0, 0, width, height);
    }
    if (this.layer) context.drawImage(this.layer, 0, 0, width, height);
    if (this.size) this.drawBoxes(context, width, height);
  }

  drawBoxes(context, width, height) {
    const x = width / this.size.width;
    const y = height / this.size.height;
    context.font = LABEL_FONT;
    context.textBaseline = 'middle';
    const focused = this.boxes.some((entry) => entry.index === this.focus);
    const choose = ({index}) => {
      context.globalAlpha = focused && index !== this.focus ? 0.3 : 1;
    };
    for (const entry of this.boxes) {
      const {box, color} = entry;
      choose(entry);
      const [left, top] = [box.xMin * x, box.yMin * y];
      const [boxWidth, boxHeight] = [(box.xMax - box.xMin) * x, (box.yMax - box.yMin) * y];
      // A dark line around the box makes it visible on any picture.
      context.lineWidth = 4;
      context.strokeStyle = 'rgba(0, 0, 0, 0.45)';
      context.strokeRect(left, top, boxWidth, boxHeight);
      context.lineWidth = 2;
      context.strokeStyle = css(color);
      context.strokeRect(left, top, boxWidth, boxHeight);
    }
    const placed = [];
    for (const entry of this.boxes) {
      choose(entry);
      this.drawLabel(context, {left: entry.box.xMin * x, top: entry.box.yMin * y, width, height,
        placed}, entry.text, entry.color);
    }
    context.globalAlpha = 1;
  }

  // Draws a label above the box's top left corner. A label that would leave the picture is moved
  // inwards. A label that would cover an earlier label is moved down. `place` contains the box's
  // corner, the picture's size and the labels that were drawn before.
  drawLabel(context, place, text, color) {
    const short = text.length > MAX_LABEL ? `${text.slice(0, MAX_LABEL)}…` : text;
    const labelWidth = context.measureText(short).width + 10;
    const left = Math.max(0, Math.min(place.left - 1, place.width - labelWidth));
    let top = Math.max(0, Math.min(place.top - LABEL_HEIGHT, place.height - LABEL_HEIGHT));
    const meets = (other) => left < other.right && left + labelWidth > other.left &&
        top < other.top + LABEL_HEIGHT && top + LABEL_HEIGHT > other.top;
    for (let tries = 0; tries < 20 && place.placed.some(meets); ++tries) {
      top = Math.min(top + LABEL_HEIGHT, place.height - LABEL_HEIGHT);
    }
    place.placed.push({left, right: left + labelWidth, top});
    context.fillStyle = css(color);
    context.fillRect(left, top, labelWidth, LABEL_HEIGHT);
    context.fillStyle = textOn(color);
    context.fillText(short, left + 5, top + LABEL_HEIGHT / 2 + 0.5);
  }
}
