// A crowd on the map: contacts as density, hand-overs, and signs that are drawn once and then copied.

import { strengthOf } from "./map.js";
import { Raster, pixelOf } from "./raster.js";
import { sign } from "./signs.js";
import { STATES, pairKey } from "./states.js";

const AROUND = 6; // beyond the size of a sign: the ring of the origin
const CONTACT = 150, GLOW = 235; // of 255: where contacts cross, they add up

export class Crowd {
  constructor() {
    this.raster = new Raster();
    this.key = "";
    this.side = 0;
    /** @type {Uint32Array[]} */
    this.stamps = [];
  }

  draw(stage, g, colours, t, glow, size) {
    const { raster } = this, { canvas, ratio, width, height } = stage.surface;
    raster.begin(canvas.width, canvas.height);
    this.drawContacts(stage, colours, t, glow, ratio);
    if (stage.app.spread) this.drawHandovers(stage, colours, t, ratio);
    this.drawSigns(stage, colours, size, ratio);
    raster.show(g, width, height);
  }

  drawContacts(stage, colours, t, glow, ratio) {
    const { raster } = this, { x, y } = stage, bright = [], colour = pixelOf(colours.contact);
    stage.model.contacts.each(t, (a, b) => {
      if (stage.isOff(a, b)) return;
      if (glow.size && glow.has(pairKey(a, b))) bright.push(a, b);
      raster.line(x[a] * ratio, y[a] * ratio, x[b] * ratio, y[b] * ratio, colour, CONTACT);
    });
    const light = pixelOf(stage.app.spread ? colours.has : colours.density);
    for (let i = 0; i < bright.length; i += 2) {
      const [a, b] = [bright[i], bright[i + 1]];
      for (const shift of [0, 1]) raster.line(x[a] * ratio + shift, y[a] * ratio, x[b] * ratio + shift, y[b] * ratio, light, GLOW);
    }
  }

  drawHandovers(stage, colours, t, ratio) {
    const { scale, left, top } = stage, { handovers, spread } = stage.app, colour = pixelOf(colours.has);
    if (spread.deadline <= t) return;
    for (const way of handovers) {
      if (way.t > t) break;
      const x = (left + way.bx * scale) * ratio, y = (top - way.by * scale) * ratio;
      this.raster.line((left + way.ax * scale) * ratio, (top - way.ay * scale) * ratio, x, y, colour, 255 * strengthOf(way, t));
    }
  }

  drawSigns(stage, colours, size, ratio) {
    this.prepare(colours, size, ratio);
    const { raster, stamps, side } = this, { order, rank, x, y } = stage;
    for (let at = 0; at < stage.there.length; at++) {
      const node = order[at];
      raster.stamp(stamps[rank[node]], side, Math.round(x[node] * ratio - side / 2), Math.round(y[node] * ratio - side / 2));
    }
  }

  /** Draws each sign once, for these colours and this size. */
  prepare(colours, size, ratio) {
    const key = [size, ratio, colours.has, colours.waits, colours.quiet, colours.ground].join();
    if (key === this.key) return;
    this.key = key;
    const side = (this.side = Math.round(2 * (size + AROUND) * ratio)), canvas = document.createElement("canvas");
    canvas.width = canvas.height = side;
    const g = canvas.getContext("2d", { willReadFrequently: true });
    g.scale(ratio, ratio);
    this.stamps = STATES.map((state) => {
      g.clearRect(0, 0, side, side);
      sign(g, colours, side / ratio / 2, side / ratio / 2, state, size);
      return new Uint32Array(g.getImageData(0, 0, side, side).data.buffer);
    });
  }
}
