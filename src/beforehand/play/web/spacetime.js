// A line per node, time from left to right. Drawn once per view; only the hand of the clock moves.

import { drawDensity, drawSingle } from "./density.js";
import { drawCrashes, drawLosses, drawProofs, drawWrong } from "./faults.js";
import { drawAxis, drawNames, drawStays } from "./frame.js";
import { find } from "./hit.js";
import { KIND } from "./kind.js";
import { drawMessage } from "./message.js";
import { makeMovable } from "./movable.js";
import { NEVER, lastUpTo } from "./orders.js";
import { Surface, tag } from "./paint.js";
import { ALL_ROWS_MAX, arrangeRows } from "./rows.js";
import { diamond } from "./signs.js";

const ROW_MAX = 24, ROW_MIN = 0.1;
const SINGLE_ROWS_MAX = 8_000; // up to here every reception is drawn by itself, beyond that as density
const MARKS_MAX = 4_000;

export class SpaceTime {
  constructor(base, over, model, app) {
    this.model = model;
    this.app = app;
    this.base = new Surface(base, () => (this.isFitted ? this.fitRows() : this.stale()));
    this.over = new Surface(over, () => app.touch("over"));
    this.image = document.createElement("canvas");
    this.gutter = 62;
    this.axis = 24;
    this.foot = 6;
    this.t0 = 0;
    this.t1 = model.length;
    this.top = 0;
    this.rowH = 10;
    this.rows = [];
    this.rowAt = new Int32Array(model.nodes);
    this.isStale = true;
    this.hot = null;
    this.broadcasts = broadcastsOf(model);
    makeMovable(over, {
      drag: (dx, dy) => { this.panTime((-dx / this.plotW) * (this.t1 - this.t0)); this.scrollRows(-dy); },
      zoom: (by, x, y, event) => (event.altKey ? this.zoomRows(by, y) : this.zoomTime(by, x)),
      scroll: (event) => {
        if (event.shiftKey) this.scrollRows(event.deltaY || event.deltaX);
        else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.panTime((event.deltaX / this.plotW) * (this.t1 - this.t0));
        else return false;
        return true;
      },
      hover: (x, y) => { this.hot = { x, y }; app.touch("over"); over.style.cursor = find(this, x, y) ? "pointer" : "crosshair"; },
      leave: () => { this.hot = null; app.touch("over"); },
      click: (x, y) => this.click(x, y),
    });
  }

  get plotW() { return Math.max(10, this.base.width - this.gutter - 10); }
  get plotH() { return Math.max(10, this.base.height - this.axis - this.foot); }
  x(t) { return this.gutter + ((t - this.t0) / (this.t1 - this.t0)) * this.plotW; }
  y(node) { return this.axis + (this.rowAt[node] + 0.5) * this.rowH - this.top; }
  timeAt(x) { return this.t0 + ((x - this.gutter) / this.plotW) * (this.t1 - this.t0); }
  nodeAt(y) { return y < this.axis ? -1 : (this.rows[Math.floor((y - this.axis + this.top) / this.rowH)] ?? -1); }

  stale() {
    this.isStale = true;
    this.app.touch("over");
  }

  // ---- which lines, in which order ----

  arrange() {
    arrangeRows(this);
    this.fitRows();
  }

  fitRows() {
    this.rowH = Math.max(ROW_MIN, Math.min(ROW_MAX, this.plotH / Math.max(1, this.rows.length)));
    if (this.rowH < 3 && this.app.spread) this.rowH = 3; // then it scrolls
    this.top = 0;
    this.isFitted = true;
    this.stale();
  }

  // ---- moving ----

  show(t0, t1) {
    const { length } = this.model, span = Math.max(Math.min(500, length / 50), Math.min(length * 1.04, t1 - t0));
    const low = -0.02 * length, high = 1.02 * length;
    this.t0 = Math.max(low, Math.min(high - span, t0));
    this.t1 = this.t0 + span;
    this.stale();
    this.app.touch("timeline");
  }

  panTime(by) { this.show(this.t0 + by, this.t1 + by); }

  zoomTime(by, x = this.gutter + this.plotW / 2) {
    const at = this.timeAt(x);
    this.show(at - (at - this.t0) / by, at + (this.t1 - at) / by);
  }

  zoomRows(by, y = this.axis + this.plotH / 2) {
    const row = (y - this.axis + this.top) / this.rowH;
    this.isFitted = false;
    this.rowH = Math.max(ROW_MIN, Math.min(40, this.rowH * by));
    this.top = row * this.rowH - (y - this.axis);
    this.scrollRows(0);
  }

  scrollRows(by) {
    this.top = Math.max(0, Math.min(Math.max(0, this.rows.length * this.rowH - this.plotH), this.top + by));
    this.stale();
  }

  fitMessage() {
    const { spread } = this.app, { model } = this;
    if (!spread && this.app.state.node >= 0 && model.nodes > ALL_ROWS_MAX) {
      const first = model.stayOf[this.app.state.node], last = model.stayOf[this.app.state.node + 1] - 1;
      const edge = (model.stays.end[last] - model.stays.t[first]) * 0.06 + 1000;
      return this.show(model.stays.t[first] - edge, model.stays.end[last] + edge);
    }
    if (!spread) return this.show(0, model.length);
    const start = model.sent[spread.message];
    const least = KIND.least?.(model) ?? Math.min(60_000, model.length / 10);
    let end = start + least;
    for (const row of spread.rows) end = Math.max(end, model.recEnd[row] === NEVER ? model.recT[row] : model.recEnd[row]);
    if (spread.deadline !== NEVER) end = Math.max(end, spread.deadline);
    // A message without an end lingers: show until nine tenths of those who got it had it.
    else if (spread.rows.length > 10) end = Math.max(start + least, model.recT[spread.rows[Math.floor(spread.rows.length * 0.9)]]);
    const edge = (end - start) * 0.09;
    this.show(start - edge, end + edge);
  }

  follow(t) {
    if (t >= this.t0 && t <= this.t1 - (this.t1 - this.t0) * 0.04) return;
    const span = this.t1 - this.t0;
    this.show(t - span * 0.1, t + span * 0.9);
  }

  // ---- the picture behind ----

  drawBase() {
    const g = this.base.clear(), { colours, spread } = this.app;
    this.isStale = false;
    const first = Math.max(0, Math.floor(this.top / this.rowH)), last = Math.min(this.rows.length, Math.ceil((this.top + this.plotH) / this.rowH));
    drawAxis(this, g, colours);
    drawNames(this, g, colours, first, last);
    g.save();
    g.beginPath();
    g.rect(this.gutter, this.axis, this.plotW + 10, this.plotH + this.foot);
    g.clip();
    if (this.app.state.node >= 0 && this.rowAt[this.app.state.node] >= 0) {
      g.fillStyle = colours.panel;
      g.fillRect(this.gutter, this.y(this.app.state.node) - Math.max(4, this.rowH / 2), this.plotW, Math.max(8, this.rowH));
    }
    if (this.rowH >= 2.5) drawStays(this, g, colours, first, last);
    const inView = this.countInView(first, last);
    this.isSingle = inView <= SINGLE_ROWS_MAX && this.rowH >= 7;
    g.globalAlpha = spread ? 0.3 : 1;
    if (this.isSingle) drawSingle(this, g, colours, first, last);
    else drawDensity(this, g, colours, first, last);
    g.globalAlpha = 1;
    this.drawBroadcasts(g, colours, first, last);
    if (spread) drawMessage(this, g, colours);
    drawLosses(this, g, colours, spread ? spread.message : -1);
    if (this.rowH >= 2.5) drawCrashes(this, g, colours, first, last);
    drawWrong(this, g, colours);
    KIND.diagram?.(this, g, colours, first, last);
    if (spread) drawProofs(this, g, colours);
    g.restore();
    this.told = this.isSingle ? `${inView.toLocaleString("en")} receptions` : `${inView.toLocaleString("en")} as density`;
    this.app.tellDetail(this.told);
  }

  /** Rows [low, high) of one node that touch the view; a wait may have begun up to `slack` before it. */
  range(node) {
    const { recT, recAt } = this.model, start = recAt[node], end = recAt[node + 1];
    const low = lastUpTo(recT, start, end, this.t0 - (this.app.waitMax ?? 0), start - 1) + 1;
    return [low, lastUpTo(recT, start, end, this.t1, start - 1) + 1];
  }

  countInView(first, last) {
    let sum = 0;
    for (let at = first; at < last; at++) {
      const [low, high] = this.range(this.rows[at]);
      sum += high - low;
    }
    return sum;
  }

  /** A diamond at each broadcast. */
  drawBroadcasts(g, colours, first, last) {
    const { sent } = this.model, marks = [];
    for (let at = first; at < last; at++) {
      const node = this.rows[at], list = this.broadcasts[node];
      for (const m of list) if (sent[m] >= this.t0 && sent[m] <= this.t1) marks.push(m);
      if (marks.length > MARKS_MAX) return;
    }
    if (this.rowH < 4) return;
    g.globalAlpha = this.app.spread ? 0.4 : 0.95;
    g.beginPath();
    for (const m of marks) diamond(g, this.x(sent[m]), this.y(this.model.origin[m]), Math.min(4.5, Math.max(2, this.rowH * 0.3)));
    g.fillStyle = colours.soft;
    g.fill();
    g.globalAlpha = 1;
  }

  // ---- what moves ----

  drawOver(t) {
    if (this.isStale) this.drawBase();
    const g = this.over.clear(), { colours } = this.app;
    if (t >= this.t0 && t <= this.t1) {
      const x = Math.round(this.x(t)) + 0.5;
      g.strokeStyle = colours.ink;
      g.lineWidth = 1.5;
      g.beginPath();
      g.moveTo(x, this.axis - 3);
      g.lineTo(x, this.axis + this.plotH);
      g.stroke();
      g.beginPath();
      g.moveTo(x - 5, this.axis - 8);
      g.lineTo(x + 5, this.axis - 8);
      g.lineTo(x, this.axis - 1);
      g.fillStyle = colours.ink;
      g.fill();
    }
    if (!this.hot || this.hot.y < this.axis || this.hot.x < this.gutter) return;
    const found = find(this, this.hot.x, this.hot.y), node = this.nodeAt(this.hot.y);
    if (node < 0) return;
    const y = this.y(node);
    g.strokeStyle = colours.soft;
    g.globalAlpha = 0.5;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(this.gutter, y);
    g.lineTo(this.gutter + this.plotW, y);
    g.stroke();
    g.globalAlpha = 1;
    const text = found ? found.text : `${this.model.names[node]}  ${this.model.clock(this.timeAt(this.hot.x))}`;
    const right = this.hot.x > this.base.width * 0.6;
    tag(g, colours, text, this.hot.x + (right ? -10 : 12), Math.max(this.axis + 10, this.hot.y - 16), { strong: true, align: right ? "right" : "left" });
  }

  click(x, y) {
    const found = find(this, x, y);
    if (found?.message !== undefined) this.app.select({ message: found.message });
    else if (found) this.app.select({ node: found.node });
    else if (x >= this.gutter) this.app.seek(this.timeAt(x));
  }
}

function broadcastsOf(model) {
  const out = Array.from({ length: model.nodes }, () => []);
  for (let m = 0; m < model.spoken; m++) out[model.origin[m]].push(m);
  return out;
}
