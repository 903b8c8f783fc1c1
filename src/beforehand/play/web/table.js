// The rows of the diagram as a table, for screen readers and for print.

import { h, span } from "./dom.js";
import { NEVER } from "./orders.js";

const ROWS_MAX = 200;

export function fillTable(body, caption, model, app, t) {
  const { spread, view } = app, nodes = view.rows.slice(0, ROWS_MAX);
  const more = view.rows.length - nodes.length;
  caption.textContent = `${spread ? `Message ${model.title(spread.message)}` : "Nodes"} at ${model.clock(t)}${more > 0 ? `; ${more} more nodes` : ""}`;
  body.replaceChildren(...nodes.map((node) => h("tr", {}, h("th", { scope: "row" }, model.names[node]), h("td", {}, stateOf(model, spread, node, t)))));
}

function stateOf(model, spread, node, t) {
  const presence = model.isPresent(node, t) ? "" : ", not there";
  if (!spread) {
    const waits = model.waitingAt(node, t).length;
    return `${waits ? `${waits} messages wait` : "nothing waits"}${presence}`;
  }
  const came = spread.came[node], done = spread.done[node];
  if (came > t) return `has it not${presence}`;
  if (spread.deadline <= t) return `expired${presence}`;
  const from = spread.from[node] >= 0 ? ` from ${model.names[spread.from[node]]}` : "";
  if (done > t) return `waits since ${model.clock(came)}${from}${presence}`;
  const waited = done > came && done !== NEVER ? ` after ${span(done - came)}` : "";
  return `${node < model.head.relays ? "relays it since" : "delivered at"} ${model.clock(done)}${waited}${from}${presence}`;
}
