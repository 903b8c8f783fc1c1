// A picture of pixels: thousands of short lines and small signs take a tenth of the time of paths.

/** A colour "#rrggbb" as the low 24 bits of a pixel. @param {string} colour */
export function pixelOf(colour) {
  const n = parseInt(colour.slice(1), 16);
  return ((n & 255) << 16) | (n & 0xff00) | (n >> 16);
}

export class Raster {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.g = this.canvas.getContext("2d");
    this.width = this.height = 0;
    this.pixels = new Uint32Array(0);
  }

  /** Begins an empty picture. @param {number} width @param {number} height */
  begin(width, height) {
    if (width !== this.width || height !== this.height) {
      [this.width, this.height] = [this.canvas.width, this.canvas.height] = [width, height];
      this.image = this.g.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    } else this.pixels.fill(0);
  }

  /** Lays a colour over a pixel. @param {number} x @param {number} y @param {number} rgb @param {number} alpha 0 to 255 */
  dot(x, y, rgb, alpha) {
    if (x < 0 || y < 0 || x >= this.width || y >= this.height || alpha < 1) return;
    const at = y * this.width + x, under = this.pixels[at], rest = ((under >>> 24) * (255 - alpha)) / 255;
    if (rest === 0) this.pixels[at] = ((alpha << 24) | rgb) >>> 0;
    else {
      const sum = alpha + rest, mix = (shift) => ((((rgb >> shift) & 255) * alpha + ((under >> shift) & 255) * rest) / sum) << shift;
      this.pixels[at] = (rgb === (under & 0xffffff) ? rgb : (mix(0) & 0xff) | (mix(8) & 0xff00) | (mix(16) & 0xff0000)) | (sum << 24);
    }
  }

  /** A line of one pixel; each step is shared by the two pixels that it lies between. */
  line(x0, y0, x1, y1, rgb, alpha) {
    const isSteep = Math.abs(y1 - y0) > Math.abs(x1 - x0);
    if (isSteep) [x0, y0, x1, y1] = [y0, x0, y1, x1];
    if (x0 > x1) [x0, y0, x1, y1] = [x1, y1, x0, y0];
    const slope = x1 > x0 ? (y1 - y0) / (x1 - x0) : 0, size = isSteep ? this.height : this.width;
    for (let x = Math.max(0, Math.round(x0)), end = Math.min(size - 1, Math.round(x1)); x <= end; x++) {
      const y = y0 + (x - x0) * slope, low = Math.floor(y), share = y - low;
      const one = (alpha * (1 - share)) | 0, other = (alpha * share) | 0;
      if (isSteep) {
        this.dot(low, x, rgb, one);
        this.dot(low + 1, x, rgb, other);
      } else {
        this.dot(x, low, rgb, one);
        this.dot(x, low + 1, rgb, other);
      }
    }
  }

  /** Copies a square picture, given as pixels. @param {Uint32Array} stamp @param {number} side */
  stamp(stamp, side, left, top) {
    for (let y = 0, at = 0; y < side; y++)
      for (let x = 0; x < side; x++, at++) if (stamp[at]) this.dot(left + x, top + y, stamp[at] & 0xffffff, stamp[at] >>> 24);
  }

  show(g, width, height) {
    this.g.putImageData(this.image, 0, 0);
    g.drawImage(this.canvas, 0, 0, width, height);
  }
}
