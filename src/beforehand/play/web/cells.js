// A run of cells: stations and their ranges, the cell and the phase of each host, frames on the air.

import { h, span } from "./dom.js";
import { countOf, lastUpTo, offsets } from "./orders.js";
import { tag } from "./paint.js";

const FRAMES_SHOWN_MAX = 400, LABELS_MAX = 12, LISTED = 8;
const IN_HANDOFF = new Set(["connecting", "catching", "leaving"]);
let cells = null;

export const KIND = {
  setup(model) {
    const c = model.columns, { stations, phases, frame_kinds: kinds } = model.extra;
    const of = (table, names) => Object.fromEntries(names.map((name) => [name, c[`${table}.${name}`]]));
    cells = {
      stations, phases, kinds,
      phase: of("phase", ["t", "node", "station", "phase"]),
      phaseAt: offsets(countOf(c["phase.node"], model.nodes)),
      frame: of("frame", ["t", "airtime", "node", "target", "kind", "received", "collided", "deaf"]),
    };
    cells.handoffs = handoffsOf(cells);
    addLegend();
  },

  /** The first handoff during which a message waits at the host, else the first handoff. */
  opening(app) {
    const { model } = app, { handoffs } = cells;
    if (model.wrong.t.length) return null;
    const waits = handoffs.find((one) => model.waitingAt(one.node, one.end).length && one.end > one.t) ?? handoffs.find((one) => one.end > one.t);
    if (!waits) return null;
    const row = model.waitingAt(waits.node, waits.end)[0] ?? nextReception(model, waits);
    return row === undefined ? null : { message: model.recMessage[row], t: waits.end };
  },

  keys: (app) => ({ h: () => nextHandoff(app, 1), H: () => nextHandoff(app, -1) }),

  under(stage, g, colours, t) {
    if (!stage.model.about.range_m || stage.isCircle) return;
    g.strokeStyle = colours.line;
    g.lineWidth = 1;
    g.beginPath();
    for (const node of stage.there) {
      if (node >= cells.stations) continue;
      g.moveTo(stage.x[node] + stage.model.about.range_m * stage.scale, stage.y[node]);
      g.arc(stage.x[node], stage.y[node], stage.model.about.range_m * stage.scale, 0, 7);
    }
    g.stroke();
    drawFrames(stage, g, colours, t);
  },

  /** A station is a square; its state is drawn inside. */
  sign(stage, g, colours, node, state, size) {
    if (node >= cells.stations) return false;
    // On the circle stations are neighbours, and must not touch each other.
    const reach = stage.isCircle ? Math.min(size + 2, (stage.scale * Math.PI * 0.7) / stage.model.nodes) : size + 2;
    const [x, y] = [stage.x[node], stage.y[node]], has = state === "has" || state === "origin";
    g.beginPath();
    g.rect(x - reach, y - reach, 2 * reach, 2 * reach);
    g.fillStyle = has ? colours.has : state === "wrong" ? colours.wrong : colours.ground;
    g.fill();
    g.strokeStyle = has ? colours.has : state === "wrong" ? colours.wrong : state === "waits" ? colours.waits : colours.soft;
    g.lineWidth = state === "waits" ? 3.5 : 2;
    g.stroke();
    return true;
  },

  over(stage, g, colours, t) {
    let labels = 0;
    for (const node of stage.there) {
      if (node < cells.stations) continue;
      const at = phaseRow(node, t), word = at < 0 ? "away" : cells.phases[cells.phase.phase[at]];
      if (!IN_HANDOFF.has(word) && word !== "away") continue;
      const station = at < 0 ? -1 : cells.phase.station[at];
      g.strokeStyle = colours.ink;
      g.lineWidth = 1.5;
      g.setLineDash([3, 3]);
      g.beginPath();
      if (station >= 0) stage.line(g, node, station);
      else g.arc(stage.x[node], stage.y[node], 10, 0, 7);
      g.stroke();
      g.setLineDash([]);
      if (labels++ < LABELS_MAX) tag(g, colours, `${stage.model.names[node]} ${word}`, stage.x[node] + 10, stage.y[node] - 14, { strong: true });
    }
  },

  /** Under the line of a host: a dashed line while it is in a handoff; its cell changes at a bar. */
  diagram(view, g, colours, first, last) {
    if (view.rowH < 4) return;
    g.strokeStyle = colours.ink;
    g.lineWidth = 1.5;
    g.setLineDash([2, 2]);
    g.beginPath();
    for (const one of cells.handoffs) {
      const row = view.rowAt[one.node];
      if (row < first || row >= last || one.end < view.t0 || one.t > view.t1) continue;
      const y = view.y(one.node) + Math.min(8, view.rowH * 0.42), x = view.x(one.t);
      g.moveTo(x, y - 5);
      g.lineTo(x, y);
      g.lineTo(Math.max(x + 3, view.x(one.end)), y);
    }
    g.stroke();
    g.setLineDash([]);
  },

  details(inspector, t) {
    const { node } = inspector.app.state;
    if (node >= cells.stations) return aboutHost(inspector, node, t);
    if (node >= 0) return aboutStation(inspector, node, t);
    return inspector.app.state.message >= 0 ? [] : aboutRun(inspector);
  },
};

/** The row of the phase of a host at a time; -1 before its first. */
export function phaseRow(node, t) {
  return lastUpTo(cells.phase.t, cells.phaseAt[node], cells.phaseAt[node + 1], t);
}

/** Every stay in a phase that is no connection, from its begin until the host is connected again. */
function handoffsOf({ phases, phase, phaseAt }) {
  const out = [];
  for (let node = 0; node + 1 < phaseAt.length; node++)
    for (let i = phaseAt[node]; i < phaseAt[node + 1]; i++) {
      const word = phases[phase.phase[i]], before = i > phaseAt[node] ? phases[phase.phase[i - 1]] : "";
      if (word !== "connecting" || IN_HANDOFF.has(before) && phase.station[i] === phase.station[i - 1]) continue;
      let end = i;
      while (end + 1 < phaseAt[node + 1] && phase.station[end] === phase.station[i] && phases[phase.phase[end]] !== "connected") end++;
      out.push({ node, t: phase.t[i], end: phase.t[end], from: i > phaseAt[node] ? phase.station[i - 1] : -1, to: phase.station[i], isFirst: i === phaseAt[node], rows: [i, end] });
    }
  return out.sort((a, b) => a.t - b.t);
}

function nextReception(model, { node, end }) {
  for (let i = model.recAt[node]; i < model.recAt[node + 1]; i++) if (model.recT[i] >= end) return i;
  return undefined;
}

function nextHandoff(app, by) {
  const { handoffs } = cells, { t, node } = app.state, mine = handoffs.filter((one) => node < cells.stations || one.node === node);
  const next = by > 0 ? mine.find((one) => one.t > t) : mine.findLast((one) => one.t < Math.floor(t));
  if (!next) return app.say("No more handoffs");
  app.select({ node: next.node });
  app.seek(next.t);
}

/** Frames that ended a moment ago: a line to the target, or a ring for all; a star where some collided. */
function drawFrames(stage, g, colours, t) {
  const { frame, stations } = cells, { isPlaying, speed } = stage.app.state;
  const back = t - (isPlaying ? Math.max(60, 250 * Math.min(speed, 8)) : 100), stars = [];
  let at = lastUpTo(frame.t, 0, frame.t.length, t);
  g.lineWidth = 1.5;
  for (let seen = 0; at >= 0 && frame.t[at] > back && seen < FRAMES_SHOWN_MAX; at--, seen++) {
    const node = frame.node[at], target = frame.target[at];
    if (frame.airtime[at] < 0) continue;
    g.globalAlpha = 0.25 + (0.6 * (frame.t[at] - back)) / (t - back + 1);
    g.strokeStyle = colours.density;
    g.beginPath();
    if (target >= 0) stage.line(g, node, target);
    else g.arc(stage.x[node], stage.y[node], node < stations ? 16 : 11, 0, 7);
    g.stroke();
    if (frame.collided[at] > 0) stars.push([stage.x[node], stage.y[node]]);
  }
  g.globalAlpha = 1;
  g.strokeStyle = colours.wrong;
  g.lineWidth = 2;
  g.beginPath();
  for (const [x, y] of stars)
    for (let k = 0; k < 3; k++) {
      const [dx, dy] = [13 * Math.cos((k * Math.PI) / 3), 13 * Math.sin((k * Math.PI) / 3)];
      g.moveTo(x - dx, y - dy);
      g.lineTo(x + dx, y + dy);
    }
  g.stroke();
}

// ---- words ----

function aboutHost(inspector, node, t) {
  const { model, app } = inspector, at = phaseRow(node, t), station = at < 0 ? -1 : cells.phase.station[at];
  const mine = cells.handoffs.filter((one) => one.node === node);
  const link = (one) => h("button", { class: "link", onclick: () => app.seek(one.t) },
    one.isFirst ? `joins ${model.names[one.to]}` : `${one.from < 0 ? "no cell" : model.names[one.from]} to ${model.names[one.to]}`, h("small", {}, `${model.clock(one.t)}, ${span(one.end - one.t)}`));
  const steps = [];
  for (let i = cells.phaseAt[node]; i < cells.phaseAt[node + 1]; i++)
    if (Math.abs(cells.phase.t[i] - t) < 5000) steps.push(h("span", { class: i === at ? "now" : "" }, `${model.clock(cells.phase.t[i])} ${cells.phases[cells.phase.phase[i]]}${cells.phase.station[i] < 0 ? "" : ` at ${model.names[cells.phase.station[i]]}`}`));
  return [
    h("p", { class: "lead" }, at < 0 ? "Not yet in a cell." : `Phase: ${cells.phases[cells.phase.phase[at]]}. `, station >= 0 ? ["Cell of ", inspector.nodeLink(station)] : "No station in range, or down."),
    inspector.list("Phases within 5 s", steps),
    inspector.list("Handoffs", mine.map(link), mine.length, "None."),
  ];
}

function aboutStation(inspector, node, t) {
  const { model } = inspector, hosts = [];
  for (let host = cells.stations; host < model.nodes; host++) {
    const at = phaseRow(host, t);
    if (at >= 0 && cells.phase.station[at] === node) hosts.push(inspector.nodeLink(host, cells.phases[cells.phase.phase[at]]));
  }
  const counts = countFrames((i) => cells.frame.node[i] === node && cells.frame.t[i] <= t);
  return [inspector.list("Hosts in its cell", hosts, hosts.length, "None now."), frames(inspector, counts, "Its frames so far")];
}

function aboutRun(inspector) {
  const { model, app } = inspector, longest = cells.handoffs.filter((one) => !one.isFirst).toSorted((a, b) => b.end - b.t - (a.end - a.t));
  return [
    inspector.list("Longest handoffs", longest.slice(0, LISTED).map((one) => h("button", { class: "link", onclick: () => { app.select({ node: one.node }); app.seek(one.t); } },
      `${model.names[one.node]} to ${model.names[one.to]}`, h("small", {}, span(one.end - one.t)))), longest.length, "No host changed its cell."),
    frames(inspector, countFrames(() => true), "Frames on the air"),
  ];
}

export function countFrames(test) {
  const { frame } = cells, out = { sent: 0, thrown: 0, received: 0, collided: 0, deaf: 0, unknown: 0 };
  for (let i = 0; i < frame.t.length; i++) {
    if (!test(i)) continue;
    if (frame.airtime[i] < 0) { out.thrown++; continue; }
    out.sent++;
    if (frame.received[i] < 0) out.unknown++;
    for (const fate of ["received", "collided", "deaf"]) out[fate] += Math.max(0, frame[fate][i]);
  }
  return out;
}

function frames(inspector, { sent, thrown, received, collided, deaf, unknown }, title) {
  return h("section", {}, h("h3", {}, title, h("span", {}, sent.toLocaleString("en"))),
    inspector.figures([["received", received.toLocaleString("en"), "has"], ["collided", collided.toLocaleString("en"), "waits"], ["deaf", deaf.toLocaleString("en")], ["queue full", thrown.toLocaleString("en")]]),
    unknown ? h("p", { class: "fine" }, `${unknown.toLocaleString("en")} frames ended at one instant with others: their receivers are not counted here.`) : null);
}

function addLegend() {
  document.body.classList.add("long-legend");
  const item = (sign, text) => h("li", {}, h("i", { class: sign }), text);
  document.getElementById("legend").append(item("station", "station"), item("handoff", "handoff (h)"), item("frame", "frame"), item("collision", "collision"));
}
