// Which nodes have a line in the diagram, and in which order.

import { NEVER } from "./orders.js";

export const ALL_ROWS_MAX = 150; // beyond that, only the lines that concern what is chosen

export function arrangeRows(view) {
  const { model, app } = view, { spread } = app, all = [...Array(model.nodes).keys()];
  const byName = (a, b) => model.names[a].localeCompare(model.names[b], "en", { numeric: true });
  const byComing = (a, b) => model.stays.t[model.stayOf[a]] - model.stays.t[model.stayOf[b]];
  let order = app.state.order;
  if (order === "arrival" && !spread) order = "coming";
  if (order === "arrival") {
    const reached = all.filter((n) => spread.came[n] !== NEVER).sort((a, b) => spread.came[a] - spread.came[b] || byName(a, b));
    const others = model.nodes <= ALL_ROWS_MAX ? all.filter((n) => spread.came[n] === NEVER).sort(byName) : [];
    view.rows = [...reached, ...others];
  } else if (app.state.node >= 0 && model.nodes > ALL_ROWS_MAX && !spread) {
    const node = app.state.node, met = model.contacts.met(node);
    view.rows = [node, ...[...met.keys()].sort((a, b) => met.get(a) - met.get(b))];
  } else view.rows = all.sort(order === "name" ? byName : byComing);
  view.rowAt.fill(-1e6);
  view.rows.forEach((node, at) => (view.rowAt[node] = at));
}
