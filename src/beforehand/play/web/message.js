// The chosen message in the diagram: its way, its waits, its causal past and future.

import { NEVER } from "./orders.js";
import { tag } from "./paint.js";
import { diamond } from "./signs.js";

const MARKS_MAX = 4_000;

export function drawMessage(view, g, colours) {
  const { model, app } = view, { spread, cone } = app, m = spread.message, { sent, origin } = model;
  const bar = Math.max(2, Math.min(8, view.rowH * 0.6));
  drawCone(view, g, colours, cone, m);
  // The nodes that have it, until it expires or they leave.
  for (const node of view.rows) {
    if (spread.came[node] === NEVER) continue;
    const y = view.y(node), { stays, stayOf } = model;
    let end = Math.min(spread.deadline, model.length);
    for (let i = stayOf[node]; i < stayOf[node + 1]; i++) if (stays.t[i] <= spread.came[node]) end = Math.min(spread.deadline, i + 1 === stayOf[node + 1] ? stays.end[i] : model.length);
    const a = view.x(spread.came[node]), b = view.x(Math.min(spread.done[node], end)), c = view.x(end);
    if (spread.done[node] < end) {
      g.fillStyle = colours.has;
      g.globalAlpha = 0.4;
      g.fillRect(b, y - bar / 4, Math.max(1, c - b), bar / 2);
      g.globalAlpha = 1;
    }
    if (b - a > 0.4) {
      g.fillStyle = colours.waits;
      g.fillRect(a, y - bar / 2, Math.max(1.5, b - a), bar);
    }
  }
  // The way it went. Frames take milliseconds, so arrows stand upright.
  const head = Math.max(2.5, Math.min(4.5, view.rowH * 0.4));
  g.strokeStyle = g.fillStyle = colours.has;
  g.lineWidth = spread.rows.length > 120 ? 0.8 : 1.2;
  for (const row of spread.rows) {
    const from = sourceOf(model, row), to = model.recNode[row];
    if (view.rowAt[to] < 0) continue;
    const x = view.x(model.recT[row]), y0 = from < 0 ? 0 : view.y(from), y1 = view.y(to);
    if (x < view.gutter - 5 || x > view.gutter + view.plotW + 5) continue;
    if (from < 0 || view.rowAt[from] < 0) {
      g.globalAlpha = 1;
      g.fillRect(x - 0.75, y1 - head, 1.5, 2 * head);
      continue;
    }
    const down = y1 > y0 ? 1 : -1;
    g.globalAlpha = spread.rows.length > 120 ? 0.4 : 0.65;
    g.beginPath();
    if (model.recFlight) {
      arrow(g, view.x(model.recT[row] - model.recFlight[row]), y0, x, y1, head, model.recSender[row] < 0);
      continue;
    }
    g.moveTo(x, y0);
    g.lineTo(x, y1 - down * head);
    g.stroke();
    g.globalAlpha = 1;
    g.beginPath();
    g.moveTo(x, y1);
    g.lineTo(x - head * 0.75, y1 - down * head * 1.5);
    g.lineTo(x + head * 0.75, y1 - down * head * 1.5);
    g.fill();
  }
  const x = view.x(sent[m]), y = view.y(origin[m]);
  g.beginPath();
  if (m < model.spoken) diamond(g, x, y, 7);
  g.fillStyle = colours.has;
  g.fill();
  g.lineWidth = 2;
  g.strokeStyle = colours.ground;
  g.stroke();
  if (spread.deadline !== NEVER && spread.deadline < view.t1) {
    const end = Math.round(view.x(spread.deadline)) + 0.5;
    g.beginPath();
    g.moveTo(end, view.axis);
    g.lineTo(end, view.axis + view.plotH);
    g.setLineDash([2, 4]);
    g.lineWidth = 1.25;
    g.strokeStyle = colours.soft;
    g.stroke();
    g.setLineDash([]);
    const isLast = end > view.base.width - 70;
    tag(g, colours, "expires", end + (isLast ? -4 : 4), view.axis + 12, { align: isLast ? "right" : "left" });
  }
}

/** An arrow from the sending to the reception; dashed if nobody knows the way between. */
function arrow(g, x0, y0, x1, y1, head, isUnknown) {
  const angle = Math.atan2(y1 - y0, x1 - x0), lean = 0.42;
  if (isUnknown) g.setLineDash([4, 3]);
  g.moveTo(x0, y0);
  g.lineTo(x1 - head * Math.cos(angle), y1 - head * Math.sin(angle));
  g.stroke();
  g.setLineDash([]);
  g.globalAlpha = 1;
  g.beginPath();
  g.moveTo(x1, y1);
  for (const side of [lean, -lean]) g.lineTo(x1 - 1.8 * head * Math.cos(angle + side), y1 - 1.8 * head * Math.sin(angle + side));
  g.fill();
}

/** Where the arrow of a reception begins: at its sender, or if only its sending is known, at the origin. */
export function sourceOf(model, row) {
  const sender = model.recSender[row];
  return sender >= 0 || !model.recFlight?.[row] ? sender : model.origin[model.recMessage[row]];
}

export function drawCone(view, g, colours, cone, m) {
  const { model } = view, { sent, origin, past, pastAt, effects, effectAt } = model;
  const x = view.x(sent[m]), y = view.y(origin[m]);
  const fan = (at, list, colour) => {
    g.strokeStyle = colour;
    g.lineWidth = 1.4;
    g.globalAlpha = 0.75;
    g.beginPath();
    for (let i = at[m]; i < at[m + 1]; i++) {
      const other = list[i];
      if (view.rowAt[origin[other]] < 0) continue;
      const ox = view.x(sent[other]), oy = view.y(origin[other]);
      g.moveTo(ox, oy);
      g.bezierCurveTo(ox + (x - ox) * 0.5, oy, x - (x - ox) * 0.5, y, x, y);
    }
    g.stroke();
    g.globalAlpha = 1;
  };
  fan(pastAt, past, colours.past);
  fan(effectAt, effects, colours.future);
  for (const [flag, colour, at, list] of [[1, colours.past, pastAt, past], [2, colours.future, effectAt, effects]]) {
    const named = new Set(list.subarray(at[m], at[m + 1]));
    for (const isNamed of [false, true]) {
      let drawn = 0;
      g.beginPath();
      for (let other = 0; other < model.messages && drawn < MARKS_MAX; other++) {
        if (cone.flags[other] !== flag || named.has(other) !== isNamed || sent[other] < view.t0 || sent[other] > view.t1 || view.rowAt[origin[other]] < 0) continue;
        diamond(g, view.x(sent[other]), view.y(origin[other]), isNamed ? 5 : Math.max(1.8, Math.min(3, view.rowH * 0.36)));
        drawn++;
      }
      g.globalAlpha = isNamed ? 1 : 0.5;
      g.fillStyle = colour;
      g.fill();
      g.globalAlpha = 1;
    }
  }
}
