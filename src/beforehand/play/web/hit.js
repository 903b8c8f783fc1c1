// What is under the pointer in the diagram.

import { span } from "./dom.js";
import { NO_RECEPTION } from "./model.js";
import { NEVER } from "./orders.js";

/** What is under the pointer: a violation, a broadcast, or a reception. */
export function find(view, x, y) {
  const { model } = view, near = (px, py, reach) => Math.abs(px - x) < reach && Math.abs(py - y) < Math.max(reach, view.rowH / 2);
  for (let i = 0; i < Math.min(2000, model.wrong.t.length); i++)
    if (near(view.x(model.wrong.t[i]), view.y(model.wrong.node[i]), 8)) {
      const m = model.wrong.message[i];
      return { message: m, text: `${model.title(m)} ${model.wrongWords[model.wrong.kind[i]]} at ${model.names[model.wrong.node[i]]}` };
    }
  const node = view.nodeAt(y);
  if (node < 0) return null;
  if (x < view.gutter) return { node, text: model.names[node] };
  let best = null, least = 7;
  for (const m of view.broadcasts[node]) {
    const gap = Math.abs(view.x(model.sent[m]) - x);
    if (gap < least) [best, least] = [{ message: m, text: `${model.title(m)} broadcast at ${model.clock(model.sent[m])}` }, gap];
  }
  if (best) return best;
  const { spread } = view.app;
  if (spread && spread.came[node] !== NEVER && x >= view.x(spread.came[node]) - 5 && x <= view.x(Math.max(spread.came[node], Math.min(spread.done[node], view.t1))) + 5) {
    const waited = spread.done[node] === NEVER ? "never delivered" : spread.done[node] > spread.came[node] ? `waited ${span(spread.done[node] - spread.came[node])}` : "delivered at once";
    const from = spread.from[node] >= 0 ? `from ${model.names[spread.from[node]]}, ` : "";
    return { node, text: `${model.names[node]}: ${from}${model.clock(spread.came[node])}, ${waited}` };
  }
  if (!view.isSingle) return null;
  const [low, high] = view.range(node);
  for (let i = low; i < high; i++) {
    const gap = Math.abs(view.x(model.recT[i]) - x);
    if (gap < Math.min(least, 4)) [best, least] = [{ message: model.recMessage[i], text: receptionText(model, node, i) }, gap];
  }
  return best;
}

function receptionText(model, node, row) {
  const sender = model.recSender[row], title = model.title(model.recMessage[row]);
  if (sender === NO_RECEPTION) return `${model.names[node]} delivers ${title}; the log has no reception of it`;
  return `${model.names[node]} receives ${title}${model.again.has(row) ? " again" : ""}${sender >= 0 ? ` from ${model.names[sender]}` : ""}`;
}
