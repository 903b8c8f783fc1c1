// The plane (or, without places, the circle): who is where, who meets whom, and how far a message has come.

import { brief } from "./dom.js";
import { Crowd } from "./crowd.js";
import { drawRing, seatLabel, seatsOf } from "./circle.js";
import { KIND } from "./kind.js";
import { drawHandovers, drawRange, drawRuler, drawStreets, streetsOf } from "./map.js";
import { makeMovable } from "./movable.js";
import { FONT, Surface, tag } from "./paint.js";
import { sign } from "./signs.js";
import { BUSY, GONE, HAS, NONE, ORIGIN, STATES, WAITS, WRONG, orderByState, pairKey } from "./states.js";

const LABELS_ALL_MAX = 26;
const MANY = 400;
const RECENT_MS = 500; // of the watcher's time: how long a transfer glows
const RECENT_ROWS_MAX = 20_000;

export class Stage {
  constructor(base, canvas, model, app) {
    this.model = model;
    this.base = new Surface(base, () => { this.baseKey = ""; app.touch("stage"); });
    this.app = app;
    this.surface = new Surface(canvas, () => { if (!this.isMoved) this.fitAll(); app.touch("stage"); });
    this.x = new Float32Array(model.nodes);
    this.y = new Float32Array(model.nodes);
    this.there = [];
    /** The nodes that are there by state, and the state of each, as an index into STATES. */
    this.order = new Int32Array(model.nodes);
    this.rank = new Uint8Array(model.nodes);
    this.crowd = new Crowd();
    this.hovered = -1;
    this.isMoved = false;
    this.streets = model.plane ? streetsOf(model) : null;
    this.seats = seatsOf(model);
    this.fitAll();
    makeMovable(canvas, {
      drag: (dx, dy) => this.pan(dx, dy),
      zoom: (by, x, y) => this.zoomAt(by, x, y),
      hover: (x, y) => this.hover(x, y),
      leave: () => this.hover(-1e4, -1e4),
      click: (x, y) => {
        if (KIND.click?.(this, x, y)) return;
        const node = this.nearest(x, y);
        app.select(node < 0 ? { node: -1 } : { node });
      },
    });
  }

  get isCircle() {
    return this.app.state.stage === "circle" || !this.model.plane;
  }

  fitAll() {
    const { width, height } = this.surface;
    this.isMoved = false;
    if (this.isCircle) {
      this.scale = Math.max(20, Math.min(width / 2 - 64, height / 2 - 44));
      this.left = width / 2;
      this.top = height / 2;
    } else {
      const plane = this.model.plane, edge = 34;
      // A hidden view has no size, and a canvas draws no negative radius.
      this.scale = Math.max(1e-6, Math.min((width - 2 * edge) / Math.max(1, plane.width), (height - 2 * edge) / Math.max(1, plane.height)));
      this.left = (width - plane.width * this.scale) / 2;
      this.top = (height + plane.height * this.scale) / 2;
    }
    this.home = this.scale;
  }

  pan(dx, dy) {
    this.left += dx;
    this.top += dy;
    this.isMoved = true;
    this.app.touch("stage");
  }

  zoomAt(by, x, y) {
    const next = Math.max(this.home * 0.5, Math.min(this.home * 80, this.scale * by)), real = next / this.scale;
    this.left = x - (x - this.left) * real;
    this.top = y - (y - this.top) * real;
    this.scale = next;
    this.isMoved = true;
    this.app.touch("stage");
  }

  zoomMiddle(by) {
    this.zoomAt(by, this.surface.width / 2, this.surface.height / 2);
  }

  hover(x, y) {
    const node = this.nearest(x, y);
    this.surface.canvas.style.cursor = node < 0 ? "grab" : "pointer";
    if (node === this.hovered) return;
    this.hovered = node;
    this.app.touch("stage");
  }

  nearest(x, y) {
    let best = -1, least = 16 * 16;
    for (const node of this.there) {
      const gap = (this.x[node] - x) ** 2 + (this.y[node] - y) ** 2;
      if (gap < least) [best, least] = [node, gap];
    }
    return best;
  }

  // ---- places on the screen ----

  locate(t) {
    const { model } = this, place = { x: 0, y: 0 };
    this.there.length = 0;
    for (const stay of model.stays.during(t)) {
      const node = model.stays.node[stay];
      if (this.isCircle) {
        const angle = this.seats.angle[stay];
        this.there.push(node);
        if (KIND.place?.(this, node)) continue;
        this.x[node] = this.left + this.scale * Math.cos(angle);
        this.y[node] = this.top + this.scale * Math.sin(angle);
      } else if (model.place(node, t, place)) {
        this.x[node] = this.left + place.x * this.scale;
        this.y[node] = this.top - place.y * this.scale;
        this.there.push(node);
      }
    }
  }

  /** An index into STATES. */
  stateOf(node, t) {
    const { spread, wrongNodes } = this.app;
    if (!spread) return this.busy?.has(node) ? BUSY : NONE;
    if (wrongNodes?.get(node) <= t) return WRONG;
    if (spread.deadline <= t && spread.came[node] <= t) return GONE;
    if (spread.done[node] <= t) return node === this.model.origin[spread.message] ? ORIGIN : HAS;
    return spread.came[node] <= t ? WAITS : NONE;
  }

  // ---- a picture ----

  draw(t, speed) {
    const g = this.surface.clear(), { model, app } = this, colours = app.colours;
    if (KIND.stage?.(this, g, colours, t)) return;
    this.locate(t);
    this.drawBase(colours);
    const glow = this.recent(t, speed);
    KIND.under?.(this, g, colours, t, glow);
    orderByState(this.there, (node) => this.stateOf(node, t), this.order, this.rank);
    const count = this.there.length, size = count > MANY ? 3 : count > 150 ? 4 : 5.5;
    const isCrowd = count > MANY && !this.isCircle && !KIND.sign;
    if (isCrowd) this.crowd.draw(this, g, colours, t, glow, size);
    else {
      this.drawContacts(g, colours, t, glow);
      if (app.spread && !this.isCircle) drawHandovers(this, g, colours, t);
    }
    const chosen = app.state.node;
    for (const node of [this.hovered, chosen]) if (node >= 0 && !this.isCircle && this.there.includes(node)) drawRange(this, g, colours, node);
    if (!isCrowd) this.drawNodes(g, colours, size);
    if (chosen >= 0 && this.there.includes(chosen)) {
      g.beginPath();
      g.arc(this.x[chosen], this.y[chosen], size + 7, 0, 7);
      g.strokeStyle = colours.ink;
      g.lineWidth = 1.5;
      g.setLineDash([3, 3]);
      g.stroke();
      g.setLineDash([]);
    }
    this.drawLabels(g, colours);
    KIND.over?.(this, g, colours, t);
    if (!this.isCircle) drawRuler(this, g, colours);
    if (!this.there.length) {
      g.fillStyle = colours.soft;
      g.font = `450 14px ${FONT}`;
      g.textAlign = "center";
      g.fillText("No node is present at this time.", this.surface.width / 2, this.surface.height / 2);
    }
  }

  drawNodes(g, colours, size) {
    const { order, rank, x, y } = this;
    for (let at = 0; at < this.there.length; at++) {
      const node = order[at], state = STATES[rank[node]];
      if (!KIND.sign?.(this, g, colours, node, state, size)) sign(g, colours, x[node], y[node], state, size);
    }
  }

  /** What does not move is drawn once for each view: thousands of ways cost more than all the rest. */
  drawBase(colours) {
    const key = [this.isCircle, this.left, this.top, this.scale, this.base.canvas.width, this.base.canvas.height, colours.street].join();
    if (key === this.baseKey) return;
    this.baseKey = key;
    const g = this.base.clear();
    if (this.isCircle) drawRing(this, g, colours);
    else if (this.streets) drawStreets(this, g, colours);
  }

  /** Pairs between which something went a moment ago: key -> how much. */
  recent(t, speed) {
    const { model, app } = this, glow = new Map();
    this.busy = new Set();
    // While it stands still, a moment; while it plays, what the eye would have missed.
    const back = t - (app.state.isPlaying ? Math.max(Math.min(200, model.length / 100), RECENT_MS * Math.min(speed, 120)) : Math.min(model.length / 50, app.spread ? 5000 : 1000));
    if (app.spread) {
      for (const row of app.spread.rows) {
        if (model.recT[row] > t) break;
        if (model.recT[row] > back) glow.set(pairKey(model.recSender[row], model.recNode[row]), 1);
      }
      return glow;
    }
    let at = app.lastReception(t);
    for (let seen = 0; at >= 0 && seen < RECENT_ROWS_MAX; at--, seen++) {
      const row = model.byTime[at];
      if (model.recT[row] <= back) break;
      const key = pairKey(model.recSender[row], model.recNode[row]);
      glow.set(key, (glow.get(key) ?? 0) + 1);
      this.busy.add(model.recNode[row]);
    }
    return glow;
  }

  line(g, a, b) {
    if (this.isCircle) {
      const bend = 0.72;
      g.moveTo(this.x[a], this.y[a]);
      const mx = (this.x[a] + this.x[b]) / 2, my = (this.y[a] + this.y[b]) / 2;
      g.quadraticCurveTo(mx + (this.left - mx) * bend, my + (this.top - my) * bend, this.x[b], this.y[b]);
    } else {
      g.moveTo(this.x[a], this.y[a]);
      g.lineTo(this.x[b], this.y[b]);
    }
  }

  isOff(a, b) {
    const { width, height } = this.surface, { x, y } = this;
    return Math.max(x[a], x[b]) < 0 || Math.min(x[a], x[b]) > width || Math.max(y[a], y[b]) < 0 || Math.min(y[a], y[b]) > height;
  }

  drawContacts(g, colours, t, glow) {
    const { contacts } = this.model, bright = [], isMany = this.there.length > MANY;
    g.strokeStyle = colours.contact;
    g.lineWidth = isMany ? 1 : 1.25;
    // One path for all: 6,000 lines at 60 frames a second, without a graphics card.
    g.beginPath();
    contacts.each(t, (a, b) => {
      const much = glow.get(pairKey(a, b));
      if (much) bright.push([a, b, much]);
      if (!this.isOff(a, b)) this.line(g, a, b);
    });
    g.stroke();
    for (const [a, b, much] of bright) {
      g.beginPath();
      this.line(g, a, b);
      g.strokeStyle = this.app.spread ? colours.has : colours.density;
      g.lineWidth = this.app.spread ? 3 : Math.min(3, 1.5 + Math.log2(1 + much) * 0.35);
      g.stroke();
    }
  }

  drawLabels(g, colours) {
    const { names } = this.model, taken = new Set(), { node: chosen } = this.app.state, { order, rank } = this;
    const must = (node) => node === chosen || node === this.hovered || rank[node] >= ORIGIN;
    const isRoomy = this.isCircle ? this.there.length <= 130 : this.there.length <= LABELS_ALL_MAX || this.scale > this.home * 2.2;
    const wanted = [];
    for (let at = 0; at < this.there.length; at++) if (isRoomy || must(order[at])) wanted.push(order[at]);
    wanted.sort((a, b) => Number(must(b)) - Number(must(a)));
    for (const node of wanted) {
      const strong = must(node);
      if (this.isCircle) {
        seatLabel(this, g, colours, node, strong);
        continue;
      }
      const cell = `${Math.round(this.x[node] / 54)},${Math.round(this.y[node] / 20)}`;
      if (!strong && taken.has(cell)) continue;
      taken.add(cell);
      tag(g, colours, brief(names[node], 24), this.x[node] + 10, this.y[node], { strong });
    }
  }

}
