// Receptions on the lines: one by one where there are few, one pixel per column and line otherwise.

import { sourceOf } from "./message.js";
import { NEVER } from "./orders.js";
import { pixelOf } from "./raster.js";

export function drawSingle(view, g, colours, first, last) {
  const { recT, recEnd, recFlight } = view.model, half = Math.min(6, view.rowH * 0.36), ticks = new Path2D(), ways = new Path2D();
  g.fillStyle = colours.waits;
  const strength = g.globalAlpha;
  g.globalAlpha = strength * 0.3;
  for (let at = first; at < last; at++) {
    const node = view.rows[at], y = view.y(node), [low, high] = view.range(node);
    for (let i = low; i < high; i++) {
      const x = view.x(recT[i]);
      if (recEnd[i] > recT[i]) {
        const end = view.x(Math.min(recEnd[i], view.t1 + 1));
        if (end > view.gutter) g.fillRect(x, y - half * 0.6, Math.max(1, end - x), half * 1.2);
      }
      if (x < view.gutter) continue;
      ticks.moveTo(x, y - half);
      ticks.lineTo(x, y + half);
      const from = sourceOf(view.model, i);
      if (from >= 0 && view.rowAt[from] >= 0) {
        ways.moveTo(recFlight ? view.x(recT[i] - recFlight[i]) : x, view.y(from));
        ways.lineTo(x, y);
      }
    }
  }
  g.globalAlpha = strength * 0.16;
  g.strokeStyle = colours.soft;
  g.lineWidth = 1;
  g.stroke(ways);
  g.globalAlpha = strength;
  g.strokeStyle = colours.soft;
  g.stroke(ticks);
}

/** One pixel per column and line: how much came, and how much waited. */
export function drawDensity(view, g, colours, first, last) {
  const { recT, recEnd } = view.model, W = Math.max(1, Math.round(view.plotW)), fold = Math.max(1, Math.ceil(1 / view.rowH));
  const H = Math.max(1, Math.ceil((last - first) / fold)), came = new Float32Array(W), waits = new Float32Array(W + 1);
  view.image.width = W;
  view.image.height = H;
  const ig = view.image.getContext("2d"), data = ig.createImageData(W, H), pixels = new Uint32Array(data.data.buffer);
  const per = W / (view.t1 - view.t0), t0 = view.t0, blue = pixelOf(colours.density), orange = pixelOf(colours.waits);
  for (let line = 0; line < H; line++) {
    came.fill(0);
    waits.fill(0);
    for (let at = first + line * fold; at < Math.min(last, first + (line + 1) * fold); at++) {
      const [low, high] = view.range(view.rows[at]);
      for (let i = low; i < high; i++) {
        const x = ((recT[i] - t0) * per) | 0;
        if (recT[i] >= t0 && x < W) came[x]++;
        if (recEnd[i] > recT[i]) {
          waits[Math.max(0, Math.min(W, x))]++;
          waits[Math.max(0, Math.min(W, recEnd[i] === NEVER ? x + 1 : (((recEnd[i] - t0) * per) | 0) + 1))]--;
        }
      }
    }
    for (let x = 0, waiting = 0, at = line * W; x < W; x++, at++) {
      waiting += waits[x];
      const much = came[x] / fold, held = waiting / fold;
      if (held > 0.01) {
        const a = Math.min(235, 70 + 34 * Math.log2(1 + held));
        pixels[at] = (a << 24) | orange;
      } else if (much > 0) pixels[at] = (Math.min(235, 60 + 40 * Math.log2(1 + much)) << 24) | blue;
    }
  }
  ig.putImageData(data, 0, 0);
  g.imageSmoothingEnabled = false;
  const band = view.rowH * fold, lean = view.rowH >= 4 ? 0.64 : 1;
  if (lean === 1) g.drawImage(view.image, view.gutter, view.axis + first * view.rowH - view.top, view.plotW, H * band);
  else for (let line = 0; line < H; line++)
    g.drawImage(view.image, 0, line, W, 1, view.gutter, view.axis + (first + line) * view.rowH - view.top + band * (1 - lean) / 2, view.plotW, band * lean);
}
