// What all canvases share: sharp pixels, the colours of the page, and text on a plate.

export const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const NAMES = ["ground", "panel", "ink", "soft", "line", "has", "waits", "wrong", "past", "future", "quiet", "street", "contact", "density"];

export function readColours() {
  const style = getComputedStyle(document.documentElement);
  // A pixel turns the name of a system colour (forced colours) into numbers.
  const g = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  return Object.fromEntries(NAMES.map((name) => {
    g.fillStyle = style.getPropertyValue(`--${name}`).trim();
    g.fillRect(0, 0, 1, 1);
    const [red, green, blue] = g.getImageData(0, 0, 1, 1).data;
    return [name, `#${((1 << 24) | (red << 16) | (green << 8) | blue).toString(16).slice(1)}`];
  }));
}

export class Surface {
  constructor(canvas, onResize) {
    this.canvas = canvas;
    this.g = canvas.getContext("2d");
    this.width = this.height = 0;
    this.ratio = 1;
    new ResizeObserver(() => { this.fit(); onResize(); }).observe(canvas.parentElement);
    this.fit();
  }

  fit() {
    const box = this.canvas.parentElement.getBoundingClientRect();
    const ratio = Math.min(2, window.devicePixelRatio || 1), width = Math.max(1, Math.floor(box.width)), height = Math.max(1, Math.floor(box.height));
    // To set the size of a canvas empties it, even to what it was.
    if (ratio === this.ratio && width === this.width && height === this.height) return;
    [this.ratio, this.width, this.height] = [ratio, width, height];
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
  }

  clear() {
    this.g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.g.clearRect(0, 0, this.width, this.height);
    return this.g;
  }
}

/** Text on a plate, so that it can be read over anything. It begins at `least` or to the right of it. */
export function tag(g, colours, text, x, y, { strong = false, align = "left", least = -Infinity } = {}) {
  g.font = `${strong ? 650 : 450} 12px ${FONT}`;
  const width = g.measureText(text).width + 8;
  const left = Math.max(least, align === "center" ? x - width / 2 : align === "right" ? x - width : x);
  g.globalAlpha = 0.86;
  g.fillStyle = colours.ground;
  g.beginPath();
  g.roundRect(left, y - 9, width, 18, 4);
  g.fill();
  g.globalAlpha = 1;
  g.fillStyle = strong ? colours.ink : colours.soft;
  g.textBaseline = "middle";
  g.textAlign = "left";
  g.fillText(text, left + 4, y + 0.5);
}
