// The whole run in one strip: how much was received when, how much waited; the hand, and the window.

import { Surface, FONT } from "./paint.js";
import { STEPS_MS } from "./frame.js";
import { NEVER } from "./orders.js";

const BINS = 1600, EDGE = 12, FOOT = 16;

export class Timeline {
  constructor(canvas, model, app) {
    this.model = model;
    this.app = app;
    this.surface = new Surface(canvas, () => app.touch("timeline"));
    this.bins = binned(model);
    let isDown = false;
    const go = (event) => app.seek(((event.offsetX - EDGE) / this.plotW) * model.length);
    canvas.addEventListener("pointerdown", (event) => { isDown = true; canvas.setPointerCapture(event.pointerId); go(event); });
    canvas.addEventListener("pointermove", (event) => isDown && go(event));
    canvas.addEventListener("pointerup", () => (isDown = false));
  }

  get plotW() { return Math.max(10, this.surface.width - 2 * EDGE); }
  x(t) { return EDGE + (t / this.model.length) * this.plotW; }

  draw(t) {
    const g = this.surface.clear(), { colours, spread, view } = this.app, { height } = this.surface, base = height - FOOT, top = 10;
    const shape = (values, most, colour, alpha) => {
      g.beginPath();
      g.moveTo(EDGE, base);
      for (let i = 0; i < BINS; i++) g.lineTo(EDGE + ((i + 0.5) / BINS) * this.plotW, base - Math.sqrt(values[i] / most) * (base - top));
      g.lineTo(EDGE + this.plotW, base);
      g.closePath();
      g.fillStyle = colour;
      g.globalAlpha = alpha;
      g.fill();
      g.globalAlpha = 1;
    };
    if (spread) {
      const end = Math.min(spread.deadline === NEVER ? this.model.length : spread.deadline, this.model.length), from = this.x(this.model.sent[spread.message]);
      g.fillStyle = colours.has;
      g.globalAlpha = 0.13;
      g.fillRect(from, top - 4, Math.max(2, this.x(end) - from), base - top + 4);
      g.globalAlpha = 1;
    }
    shape(this.bins.came, this.bins.cameMax, colours.density, 0.75);
    this.drawWaits(g, colours, base, top);
    g.strokeStyle = colours.line;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(EDGE, base + 0.5);
    g.lineTo(EDGE + this.plotW, base + 0.5);
    g.stroke();
    this.drawHours(g, colours, base);
    const { wrong } = this.model;
    g.fillStyle = colours.wrong;
    const every = Math.max(1, Math.floor(wrong.t.length / 600));
    for (let i = 0; i < wrong.t.length; i += every) g.fillRect(this.x(wrong.t[i]) - 1, top - 6, 2, base - top + 6);
    // What the space-time diagram shows.
    const a = this.x(Math.max(0, view.t0)), b = this.x(Math.min(this.model.length, view.t1));
    if (b - a < this.plotW - 4) {
      g.strokeStyle = colours.soft;
      g.lineWidth = 1.5;
      g.beginPath();
      g.roundRect(a, top - 5, Math.max(3, b - a), base - top + 6, 3);
      g.stroke();
    }
    const x = this.x(t);
    g.fillStyle = colours.ink;
    g.fillRect(x - 0.75, top - 8, 1.5, base - top + 10);
    g.beginPath();
    g.arc(x, top - 4, 5, 0, 7);
    g.fill();
  }

  /** How many waited, on a scale of its own: a rate and a level do not compare. */
  drawWaits(g, colours, base, top) {
    const { waits, waitsMax } = this.bins;
    g.beginPath();
    const few = Math.ceil((BINS / this.plotW) * 4);
    for (let i = 0; i + few <= BINS; i += few) {
      let sum = 0;
      for (let k = i; k < i + few; k++) sum += waits[k] / few;
      g.lineTo(EDGE + ((i + few / 2) / BINS) * this.plotW, base - Math.sqrt(sum / waitsMax) * (base - top));
    }
    g.strokeStyle = colours.waits;
    g.lineWidth = 1.25;
    g.lineJoin = "round";
    g.stroke();
  }

  drawHours(g, colours, base) {
    const step = STEPS_MS.find((s) => (s / this.model.length) * this.plotW > 58) ?? 86_400_000, shift = (this.model.startUs / 1000) % step;
    g.font = `450 10.5px ${FONT}`;
    g.fillStyle = colours.soft;
    g.textAlign = "center";
    g.textBaseline = "top";
    for (let t = Math.ceil(shift / step) * step - shift; t <= this.model.length; t += step) {
      const x = this.x(t);
      g.fillRect(Math.round(x), base, 1, 3);
      if (x > 24 && x < this.surface.width - 24) g.fillText(this.model.tick(t, step), x, base + 5);
    }
  }
}

function binned(model) {
  const came = new Float64Array(BINS), waits = new Float64Array(BINS + 1), per = BINS / (model.length + 1);
  for (let i = 0; i < model.receptions; i++) {
    const x = Math.floor(model.recT[i] * per);
    came[x]++;
    if (model.recEnd[i] > model.recT[i]) {
      waits[x]++;
      if (model.recEnd[i] !== NEVER) waits[Math.min(BINS, Math.floor(model.recEnd[i] * per) + 1)]--;
      else waits[Math.min(BINS, x + 1)]--;
    }
  }
  for (let i = 1; i < BINS; i++) waits[i] += waits[i - 1];
  let cameMax = 1;
  for (const value of came) cameMax = Math.max(cameMax, value);
  let waitsMax = 1;
  for (let i = 0; i < BINS; i++) waitsMax = Math.max(waitsMax, waits[i]);
  return { came, waits, cameMax, waitsMax };
}
