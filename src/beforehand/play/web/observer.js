// A run of an observer: the order of arrival against the order of delivery, the queue between, and why.

import { h, span, units } from "./dom.js";
import { NEVER, lastUpTo } from "./orders.js";
import { FONT } from "./paint.js";

const ROW = 22, LISTED = 8;
let queue = null;

export const KIND = {
  setup(model) {
    const c = model.columns, node = model.nodes - 1, first = model.recAt[node];
    const size = c["queue.place"].length, message = c["queue.message"], place = c["queue.place"];
    const rowOf = new Map(Array.from({ length: size }, (_, i) => [message[i], i]));
    const order = new Int32Array(size).fill(-1), arrived = new Int32Array(size), out = new Int32Array(size);
    for (let i = first; i < model.recAt[node + 1]; i++) {
      const at = rowOf.get(model.recMessage[i]);
      if (at !== undefined) [arrived[at], out[at]] = [model.recT[i], model.recEnd[i]];
    }
    // Places may have holes, when the page shows a part of a run.
    [...place.keys()].filter((i) => place[i] >= 0).sort((a, b) => place[a] - place[b]).forEach((i, at) => (order[at] = i));
    queue = { node, size, message, place, stamp: c["queue.stamp"], arrived, out, order, rowOf, moved: movedOf(place, arrived, out), lines: [] };
    queue.delivered = out.slice().sort();
    if (model.extra.unit === "ticks") {
      units.span = (ms) => `${ms} tick${ms === 1 ? "" : "s"}`;
      model.clockOf = (t) => `tick ${Math.floor(model.startUs / 1000 + t).toLocaleString("en")}`;
    }
    document.body.classList.add("no-zoom");
    for (const button of document.querySelectorAll('[data-also="circle"]')) button.textContent = "Queue";
    document.getElementById("legend").replaceChildren(h("li", {}, "↧ dashed: moved behind an event that arrived later"), h("li", {}, "held: the queue, next delivery last"));
  },

  /** The first finding, else the event that most later arrivals overtook. */
  opening(app) {
    if (app.model.wrong.t.length && app.model.wrong.t.length < 1000) return { message: app.model.wrong.message[0], t: app.model.wrong.t[0] };
    let best = -1;
    for (let i = 0; i < queue.size; i++) if (best < 0 || queue.moved[i] > queue.moved[best]) best = i;
    return best < 0 ? null : { message: queue.message[best], t: Math.max(queue.arrived[best], Math.min(queue.out[best], app.model.length) - 1) };
  },

  stage(stage, g, colours, t) {
    stage.there.length = 0;
    for (const stay of stage.model.stays.during(t)) stage.there.push(stage.model.stays.node[stay]);
    drawLadder(stage, g, colours, t);
    return true;
  },

  click(stage, x, y) {
    const hit = queue.lines.find((line) => Math.abs(line.y - y) < ROW / 2 && x > line.x0 && x < line.x1);
    stage.app.select(hit ? { message: queue.message[hit.at] } : { message: -1 });
    return true;
  },

  details(inspector, t) {
    const { message, node } = inspector.app.state;
    if (message >= 0 && queue.rowOf.has(message)) return aboutEvent(inspector, queue.rowOf.get(message));
    if (message < 0 && (node < 0 || node === queue.node)) return aboutQueue(inspector, t);
    return [];
  },
};

/** By event: how many that arrived later were delivered before it. Looks only at what was held with it. */
function movedOf(place, arrived, out) {
  const moved = new Int32Array(place.length);
  for (let i = 0; i < place.length; i++)
    for (let k = i + 1; k < place.length && arrived[k] <= out[i]; k++) if (place[k] >= 0 && (place[i] < 0 || place[k] < place[i])) moved[i]++;
  return moved;
}

/** The events that overtook i (they arrived later and were delivered before), and those it overtook. */
export function changesOf(i) {
  const { place, arrived, out, size } = queue, before = [], after = [];
  for (let k = i + 1; k < size && arrived[k] <= out[i]; k++) if (place[k] >= 0 && (place[i] < 0 || place[k] < place[i])) before.push(k);
  for (let k = i - 1; k >= 0 && (i - k < 5000); k--) if (place[i] >= 0 && out[k] >= arrived[i] && (place[k] < 0 || place[k] > place[i])) after.push(k);
  return { before, after };
}

/** What the observer holds at t, in the order in which it will deliver: by timestamp. */
export function heldAt(t) {
  const { arrived, out, size, stamp } = queue, held = [], end = lastUpTo(arrived, 0, size, t) + 1;
  for (let i = Math.max(0, end - 20_000); i < end; i++) if (out[i] > t) held.push(i);
  return held.sort((a, b) => rank(a) - rank(b) || stamp[a] - stamp[b]);
}

const rank = (i) => (queue.place[i] < 0 ? NEVER : queue.place[i]);

function drawLadder(stage, g, colours, t) {
  const { width, height } = stage.surface, { model, app } = stage, chosen = queue.rowOf.get(app.state.message) ?? -1;
  const top = 34, rows = Math.max(1, Math.floor((height - top - 8) / ROW)), third = width / 3, left = third * 0.5, right = third * 2.5;
  const last = lastUpTo(queue.arrived, 0, queue.size, t), done = lastUpTo(queue.delivered, 0, queue.size, t), held = heldAt(t);
  queue.lines = [];
  const at = new Map(), line = (i, x, k, column) => {
    const y = top + (k + 0.5) * ROW;
    queue.lines.push({ at: i, x0: x - third / 2, x1: x + third / 2, y });
    at.set(`${column}${i}`, [x, y]);
  };
  for (let k = 0; k < rows && last - k >= 0; k++) line(last - k, left, k, "a");
  for (let k = 0; k < Math.min(rows, held.length); k++) line(held[held.length - 1 - k], third * 1.5, k, "q");
  for (let k = 0; k < rows && done - k >= 0; k++) if (queue.order[done - k] >= 0) line(queue.order[done - k], right, k, "d");
  const reach = third * 0.36;
  for (const { at: i, x0 } of queue.lines) {
    if (x0 > 1) continue;
    const from = at.get(`a${i}`), to = at.get(`q${i}`) ?? at.get(`d${i}`);
    if (!to) continue;
    const isMoved = queue.moved[i] > 0;
    g.beginPath();
    g.moveTo(from[0] + reach, from[1]);
    g.lineTo(to[0] - reach, to[1]);
    g.strokeStyle = i === chosen ? colours.ink : isMoved ? colours.waits : colours.contact;
    g.lineWidth = i === chosen ? 2.5 : isMoved ? 2 : 1;
    g.setLineDash(isMoved ? [5, 3] : []);
    g.stroke();
  }
  g.setLineDash([]);
  g.textAlign = "center";
  g.textBaseline = "middle";
  g.font = `650 12px ${FONT}`;
  g.fillStyle = colours.soft;
  for (const [text, x] of [["arrived, newest first", left], [`held: ${held.length}`, third * 1.5], ["delivered, newest first", right]]) g.fillText(text, x, 16, third - 8);
  for (const { at: i, x0, x1, y } of queue.lines) {
    const isMoved = queue.moved[i] > 0, middle = (x0 + x1) / 2;
    g.fillStyle = i === chosen ? colours.ink : colours.panel;
    g.beginPath();
    g.roundRect(middle - reach, y - ROW / 2 + 2, 2 * reach, ROW - 4, 4);
    g.fill();
    g.fillStyle = i === chosen ? colours.ground : isMoved ? colours.waits : colours.ink;
    g.font = `${i === chosen || isMoved ? 650 : 450} 12px ${FONT}`;
    g.fillText(`${isMoved ? "↧ " : ""}${model.title(queue.message[i])}`, middle, y, 2 * reach - 6);
  }
}

// ---- words ----

function eventLink(inspector, i) {
  return inspector.messageLink(queue.message[i], `sent ${inspector.model.clock(queue.stamp[i])}`);
}

function aboutEvent(inspector, i) {
  const { model } = inspector, { before, after } = changesOf(i), waited = queue.out[i] === NEVER ? null : queue.out[i] - queue.arrived[i];
  const why = before.length ? "They have smaller timestamps: they were sent before it, and were longer under way." : "";
  return [
    h("p", { class: "lead" }, `Arrived as number ${(i + 1).toLocaleString("en")}, ${queue.place[i] < 0 ? "not delivered" : `delivered as number ${(queue.place[i] + 1).toLocaleString("en")}`}${waited === null ? "" : `, held for ${span(waited)}`}.`),
    inspector.list("Moved behind", before.slice(0, LISTED).map((k) => eventLink(inspector, k)), before.length, "No event that arrived later."),
    why ? h("p", { class: "why" }, why) : null,
    inspector.list("Moved ahead of", after.slice(0, LISTED).map((k) => eventLink(inspector, k)), after.length, "No event that arrived earlier."),
    h("p", { class: "fine" }, `timestamp ${model.clock(queue.stamp[i])}, on the clock of its process`),
  ];
}

function aboutQueue(inspector, t) {
  const held = heldAt(t), moved = queue.moved.reduce((sum, n) => sum + (n > 0), 0);
  return [
    inspector.figures([["held now", held.length, "waits"], ["moved in all", moved.toLocaleString("en")]]),
    inspector.list("Next deliveries", held.slice(0, LISTED).map((i) => eventLink(inspector, i)), held.length, "The queue is empty."),
  ];
}
