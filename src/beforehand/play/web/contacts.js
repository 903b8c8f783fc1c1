// Who is in contact with whom: as the log has it, or, where that is the same, whoever is within range.

import { intervals } from "./orders.js";

const CELLS_MAX = 65_536;

/** Contacts of the log. */
class Logged {
  constructor(c, length) {
    this.rows = intervals(c["contact.t"], c["contact.length"], length, { a: c["contact.a"], b: c["contact.b"] });
  }

  /** Visits the pairs in contact at t. */
  each(t, visit) {
    const { a, b } = this.rows;
    this.rows.each(t, (i) => visit(a[i], b[i]));
  }

  /** When a node first meets each other that it meets. */
  met(node) {
    const { a, b, t } = this.rows, met = new Map();
    for (let i = 0; i < t.length; i++) {
      const peer = a[i] === node ? b[i] : b[i] === node ? a[i] : -1;
      if (peer >= 0 && !met.has(peer)) met.set(peer, t[i]);
    }
    return met;
  }
}

/** Pairs of nodes whose places are within range: `play/nearness.py` made sure that they are the contacts. */
class Near {
  constructor(model, rangeM) {
    this.model = model;
    this.reach = rangeM;
    const { width, height } = model.plane;
    this.cell = Math.max(rangeM, Math.sqrt((width + rangeM) * (height + rangeM) / CELLS_MAX));
    // One more on each side: a place may be rounded beyond the edge.
    this.across = Math.ceil(width / this.cell) + 3;
    this.first = new Int32Array(this.across * (Math.ceil(height / this.cell) + 3));
    this.next = new Int32Array(model.nodes);
    this.x = new Float32Array(model.nodes);
    this.y = new Float32Array(model.nodes);
    this.here = { x: 0, y: 0 };
  }

  each(t, visit) {
    const { model, first, next, x, y, here, across, cell } = this, least = this.reach ** 2;
    first.fill(-1);
    for (let node = 0; node < model.nodes; node++) {
      if (!model.place(node, t, here)) continue;
      x[node] = here.x;
      y[node] = here.y;
      const at = (Math.floor(here.y / cell) + 1) * across + Math.floor(here.x / cell) + 1;
      for (let row = at - across; row <= at + across; row += across)
        for (let of = row - 1; of <= row + 1; of++)
          for (let other = first[of]; other >= 0; other = next[other])
            if ((x[other] - here.x) ** 2 + (y[other] - here.y) ** 2 <= least) visit(other, node);
      next[node] = first[at];
      first[at] = node;
    }
  }

  met(node) {
    const met = new Map();
    for (let peer = 0; peer < this.model.nodes; peer++) {
      const t = peer === node ? -1 : firstWithin(this.model, node, peer, this.reach);
      if (t >= 0) met.set(peer, t);
    }
    return met;
  }
}

/** When two nodes are first within reach of each other; -1 if never. */
function firstWithin(model, a, b, reach) {
  const { pointT: T, pointX: X, pointY: Y, pointAt, pointGap } = model;
  let i = pointAt[a] + 1, j = pointAt[b] + 1;
  while (i < pointAt[a + 1] && j < pointAt[b + 1]) {
    const from = Math.max(0, T[i - 1], T[j - 1]), to = Math.min(T[i], T[j]);
    if (from < to && !pointGap[i] && !pointGap[j]) {
      const p = (from - T[i - 1]) / (T[i] - T[i - 1]), q = (from - T[j - 1]) / (T[j] - T[j - 1]);
      const dx = X[i - 1] + p * (X[i] - X[i - 1]) - X[j - 1] - q * (X[j] - X[j - 1]);
      const dy = Y[i - 1] + p * (Y[i] - Y[i - 1]) - Y[j - 1] - q * (Y[j] - Y[j - 1]);
      const vx = (X[i] - X[i - 1]) / (T[i] - T[i - 1]) - (X[j] - X[j - 1]) / (T[j] - T[j - 1]);
      const vy = (Y[i] - Y[i - 1]) / (T[i] - T[i - 1]) - (Y[j] - Y[j - 1]) / (T[j] - T[j - 1]);
      const c = dx * dx + dy * dy - reach * reach;
      if (c <= 0) return from;
      const v = vx * vx + vy * vy, h = dx * vx + dy * vy, root = h * h - v * c;
      const after = h < 0 && root >= 0 ? (-h - Math.sqrt(root)) / v : Infinity;
      if (from + after < to) return from + after;
    }
    if (T[i] <= T[j]) i++;
    else j++;
  }
  return -1;
}

export function contactsOf(model, c) {
  const { near_m: rangeM, length } = model.head;
  return rangeM ? new Near(model, rangeM) : new Logged(c, length);
}
