// What stands behind the events of the diagram: the axis, the names, and who is there.

import { brief, fitted } from "./dom.js";
import { FONT } from "./paint.js";
import { NEVER } from "./orders.js";

export const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000];

export function drawAxis(view, g, colours) {
  const span = view.t1 - view.t0, step = STEPS_MS.find((s) => (s / span) * view.plotW > 74) ?? 86_400_000;
  const base = (view.model.startUs / 1000) % step;
  g.font = `450 11px ${FONT}`;
  g.fillStyle = colours.soft;
  g.strokeStyle = colours.line;
  g.lineWidth = 1;
  g.textAlign = "center";
  g.textBaseline = "middle";
  g.beginPath();
  for (let t = Math.ceil((view.t0 + base) / step) * step - base; t <= view.t1; t += step) {
    const x = Math.round(view.x(t)) + 0.5;
    if (x > view.gutter + 18 && x < view.base.width - 24) g.fillText(view.model.tick(t, step), x, 11);
    g.moveTo(x, view.axis - 4);
    g.lineTo(x, view.axis + view.plotH);
  }
  g.globalAlpha = 0.55;
  g.stroke();
  g.globalAlpha = 1;
}

export function drawNames(view, g, colours, first, last) {
  const every = Math.max(1, Math.ceil(13 / view.rowH)), { node: chosen } = view.app.state;
  g.font = `450 11px ${FONT}`;
  g.textAlign = "right";
  g.textBaseline = "middle";
  const start = Math.ceil(first / every) * every;
  for (let at = start; at < last; at += every) {
    const node = view.rows[at], y = view.y(node);
    if (y < view.axis + 3 || y > view.axis + view.plotH) continue;
    g.fillStyle = view.app.spread && view.app.spread.came[node] === NEVER ? colours.quiet : colours.soft;
    if (node !== chosen) g.fillText(fitted(g, brief(view.model.names[node], 14), view.gutter - 12), view.gutter - 9, y);
  }
  if (chosen >= 0 && view.rowAt[chosen] >= first && view.rowAt[chosen] < last) {
    g.fillStyle = colours.ground;
    g.fillRect(0, view.y(chosen) - 9, view.gutter - 4, 18);
    g.font = `700 11px ${FONT}`;
    g.fillStyle = colours.ink;
    g.fillText(fitted(g, brief(view.model.names[chosen], 14), view.gutter - 12), view.gutter - 9, view.y(chosen));
  }
}

export function drawStays(view, g, colours, first, last) {
  const { stays, stayOf } = view.model;
  g.beginPath();
  for (let at = first; at < last; at++) {
    const node = view.rows[at], y = Math.round(view.y(node)) + 0.5;
    for (let i = stayOf[node]; i < stayOf[node + 1]; i++) {
      if (stays.end[i] < view.t0 || stays.t[i] > view.t1) continue;
      g.moveTo(Math.max(view.gutter, view.x(stays.t[i])), y);
      g.lineTo(Math.min(view.gutter + view.plotW, view.x(stays.end[i])), y);
    }
  }
  g.strokeStyle = colours.contact;
  g.lineWidth = 1;
  g.globalAlpha = view.app.spread ? 0.45 : 0.9;
  g.stroke();
  g.globalAlpha = 1;
}
