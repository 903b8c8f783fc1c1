// The circle: a seat per node, for runs without places.

import { brief } from "./dom.js";
import { FONT } from "./paint.js";

const FIXED_SEATS_MAX = 120; // up to here every node has a seat of its own

export function drawRing(stage, g, colours) {
  g.beginPath();
  g.arc(stage.left, stage.top, stage.scale, 0, 7);
  g.strokeStyle = colours.line;
  g.lineWidth = 1;
  g.stroke();
}

export function seatLabel(stage, g, colours, node, strong) {
  const angle = Math.atan2(stage.y[node] - stage.top, stage.x[node] - stage.left), isLeft = Math.abs(angle) > Math.PI / 2;
  g.save();
  g.translate(stage.x[node], stage.y[node]);
  g.rotate(isLeft ? angle + Math.PI : angle);
  g.font = `${strong ? 700 : 450} ${stage.there.length > 80 ? 9 : 11}px ${FONT}`;
  g.fillStyle = strong ? colours.ink : colours.soft;
  g.textAlign = isLeft ? "right" : "left";
  g.textBaseline = "middle";
  const off = node === stage.app.state.node ? 17 : 12;
  g.fillText(brief(stage.model.names[node], 9), isLeft ? -off : off, 0);
  g.restore();
}

/** Few nodes: a seat each, by name. Many: a seat while the node is there, which others use before and after. */
export function seatsOf(model) {
  const { stays, nodes, names } = model, angle = new Float32Array(stays.t.length);
  if (nodes <= FIXED_SEATS_MAX) {
    const order = [...names.keys()].sort((a, b) => names[a].localeCompare(names[b], "en", { numeric: true }));
    const place = new Int32Array(nodes);
    order.forEach((node, at) => (place[node] = at));
    for (let i = 0; i < angle.length; i++) angle[i] = (place[stays.node[i]] / nodes) * 2 * Math.PI - Math.PI / 2;
    return { angle };
  }
  const order = [...angle.keys()].sort((a, b) => stays.t[a] - stays.t[b]), free = [], seat = new Int32Array(angle.length);
  for (const i of order) {
    let found = free.findIndex((until) => until <= stays.t[i]);
    if (found < 0) found = free.push(0) - 1;
    free[found] = stays.end[i];
    seat[i] = found;
  }
  for (let i = 0; i < angle.length; i++) angle[i] = (seat[i] / free.length) * 2 * Math.PI - Math.PI / 2;
  return { angle };
}
