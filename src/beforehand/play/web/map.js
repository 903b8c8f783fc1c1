// The map: streets, hand-overs, radio range and scale.

import { FONT } from "./paint.js";

export function drawStreets(stage, g, colours) {
  g.save();
  g.translate(stage.left, stage.top);
  g.scale(stage.scale, -stage.scale);
  g.lineWidth = Math.max(2.5, Math.min(9, 4 * Math.sqrt(stage.scale / stage.home))) / stage.scale;
  g.lineCap = g.lineJoin = "round";
  g.strokeStyle = colours.street;
  g.stroke(stage.streets);
  g.restore();
}

/** A hand-over fades, in steps, until it is this strong. */
export function strengthOf(way, t) {
  return Math.max(0.16, Math.round((0.6 - (t - way.t) / 1.2e6) * 25) / 25);
}

/** Where it was handed on: the way of the message over the map. */
export function drawHandovers(stage, g, colours, t) {
  const { spread } = stage.app;
  if (spread.deadline <= t) return;
  const { handovers } = stage.app;
  g.strokeStyle = g.fillStyle = colours.has;
  g.lineWidth = 1.25;
  // They come in the order of time, so those of one strength follow each other: one path for them.
  for (let at = 0; at < handovers.length && handovers[at].t <= t;) {
    const strength = (g.globalAlpha = strengthOf(handovers[at], t));
    g.beginPath();
    for (; at < handovers.length && handovers[at].t <= t && strengthOf(handovers[at], t) === strength; at++) {
      const way = handovers[at], x = stage.left + way.bx * stage.scale, y = stage.top - way.by * stage.scale;
      g.moveTo(stage.left + way.ax * stage.scale, stage.top - way.ay * stage.scale);
      g.lineTo(x, y);
      g.fillRect(x - 1.6, y - 1.6, 3.2, 3.2);
    }
    g.stroke();
  }
  g.globalAlpha = 1;
}

export function drawRange(stage, g, colours, node) {
  g.beginPath();
  g.arc(stage.x[node], stage.y[node], stage.model.about.range_m * stage.scale, 0, 7);
  g.fillStyle = colours.soft;
  g.globalAlpha = 0.1;
  g.fill();
  g.globalAlpha = 1;
}

export function drawRuler(stage, g, colours) {
  const nice = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000];
  const metres = nice.find((m) => m * stage.scale > 56) ?? 100_000, width = metres * stage.scale;
  const right = stage.surface.width - 14, y = 20;
  g.strokeStyle = colours.soft;
  g.lineWidth = 1;
  g.beginPath();
  g.moveTo(right - width, y - 4);
  g.lineTo(right - width, y);
  g.lineTo(right, y);
  g.lineTo(right, y - 4);
  g.stroke();
  g.font = `450 11px ${FONT}`;
  g.fillStyle = colours.soft;
  g.textAlign = "right";
  g.textBaseline = "alphabetic";
  g.fillText(metres >= 1000 ? `${metres / 1000} km` : `${metres} m`, right, y + 14);
}

/** The lines of a map. */
function linesOf({ at, x, y }) {
  const path = new Path2D();
  for (let line = 0; line + 1 < at.length; line++)
    for (let i = at[line]; i < at[line + 1]; i++)
      if (i === at[line]) path.moveTo(x[i], y[i]);
      else path.lineTo(x[i], y[i]);
  return path;
}

/** Every way that a node went, once; null where hardly any is used twice, as with random waypoints. */
export function streetsOf(model) {
  if (model.map) return linesOf(model.map);
  const path = new Path2D(), seen = new Set();
  let all = 0;
  for (let node = 0; node < model.nodes; node++) {
    for (let i = model.pointAt[node] + 1; i < model.pointAt[node + 1]; i++) {
      if (model.pointGap[i]) continue;
      const x0 = model.pointX[i - 1], y0 = model.pointY[i - 1], x1 = model.pointX[i], y1 = model.pointY[i];
      if (x0 === x1 && y0 === y1) continue;
      all++;
      const [p, q] = [Math.round(x0) * 1e6 + Math.round(y0), Math.round(x1) * 1e6 + Math.round(y1)];
      const key = p < q ? `${p},${q}` : `${q},${p}`;
      if (seen.has(key)) continue;
      seen.add(key);
      path.moveTo(x0, y0);
      path.lineTo(x1, y1);
    }
  }
  return seen.size < all * 0.6 ? path : null;
}

