// A run of VCube: the spanning tree of the chosen message, and packets with all that they aggregate.

import { h, span } from "./dom.js";
import { intervals, offsets } from "./orders.js";
import { tag } from "./paint.js";

const LISTED = 8, LINKS_NODES_MAX = 64;
let cube = null;

export const KIND = {
  setup(model) {
    const c = model.columns;
    cube = {
      packets: intervals(c["packet.t"], c["packet.length"], model.length, { source: c["packet.source"], target: c["packet.target"] }),
      at: offsets(c["packet.count"]),
      message: c["packet.message"],
      tree: null,
    };
    for (const button of document.querySelectorAll('[data-also="circle"]')) button.textContent = "Tree";
    addLegend();
  },

  /** With a message: its tree, the origin in the middle, a ring for each level. Else the circle. */
  place(stage, node) {
    const tree = treeOf(stage.app);
    if (!tree) return false;
    const radius = tree.height ? (stage.scale * tree.depth[node]) / tree.height : 0;
    stage.x[node] = stage.left + radius * Math.cos(tree.angle[node]);
    stage.y[node] = stage.top + radius * Math.sin(tree.angle[node]);
    return true;
  },

  under(stage, g, colours, t) {
    const tree = treeOf(stage.app), { model, app } = stage;
    if (!tree) return drawCube(stage, g, colours);
    const { spread } = app;
    for (const isDone of [false, true]) {
      g.beginPath();
      for (let node = 0; node < model.nodes; node++)
        if (spread.from[node] >= 0 && (spread.came[node] <= t) === isDone) edge(g, stage, spread.from[node], node);
      g.strokeStyle = isDone ? colours.has : colours.contact;
      g.lineWidth = isDone ? 2 : 1;
      g.setLineDash(isDone ? [] : [3, 4]);
      g.stroke();
    }
    g.setLineDash([]);
  },

  /** Packets under way: a dot on the way from the source to the target; its number is what it holds. */
  over(stage, g, colours, t) {
    const chosen = stage.app.state.message;
    for (const failed of failedAt(stage.model, t)) cross(g, colours, stage, failed);
    for (const i of cube.packets.during(t)) {
      const { source, target, end } = cube.packets, [from, to] = [source[i], target[i]];
      if (to < 0) continue;
      const holds = messagesOf(i), isIts = chosen >= 0 && holds.includes(chosen);
      if (chosen >= 0 && !isIts) continue;
      const share = (t - cube.packets.t[i]) / Math.max(1, end[i] - cube.packets.t[i]);
      const x = stage.x[from] + share * (stage.x[to] - stage.x[from]), y = stage.y[from] + share * (stage.y[to] - stage.y[from]);
      g.beginPath();
      g.roundRect(x - 4, y - 4, 8, 8, 2);
      g.fillStyle = isIts ? colours.has : holds.length > 1 ? colours.past : colours.density;
      g.fill();
      if (holds.length > 1) tag(g, colours, String(holds.length), x + 6, y - 9, { strong: true });
    }
  },

  details(inspector, t) {
    const { node, message } = inspector.app.state;
    if (node >= 0) return aboutNode(inspector, node, t);
    return message >= 0 ? aboutMessage(inspector, message) : aboutRun(inspector);
  },
};

export function messagesOf(packet) {
  return [...cube.message.subarray(cube.at[packet], cube.at[packet + 1])];
}

/** The tree along which the chosen message went: depth and angle of each node. */
function treeOf(app) {
  const { spread, model } = app;
  if (!spread) return null;
  if (cube.tree?.message === spread.message) return cube.tree;
  const root = model.origin[spread.message], children = Array.from({ length: model.nodes }, () => []), depth = new Int32Array(model.nodes), angle = new Float32Array(model.nodes);
  const outside = [];
  for (let node = 0; node < model.nodes; node++)
    if (spread.from[node] >= 0) children[spread.from[node]].push(node);
    else if (node !== root) outside.push(node);
  let leaves = 0;
  const order = [], stack = [root];
  while (stack.length) {
    const node = stack.pop();
    order.push(node);
    for (const child of children[node]) {
      depth[child] = depth[node] + 1;
      stack.push(child);
    }
    if (!children[node].length) angle[node] = leaves++;
  }
  let height = Math.max(1, ...depth);
  if (outside.length) height++;
  for (const node of outside) [depth[node], angle[node]] = [height, leaves++];
  const turn = (2 * Math.PI) / Math.max(1, leaves);
  for (const node of order.reverse()) angle[node] = children[node].length ? children[node].reduce((sum, child) => sum + angle[child], 0) / children[node].length : angle[node] * turn - Math.PI / 2;
  for (const node of outside) angle[node] = angle[node] * turn - Math.PI / 2;
  return (cube.tree = { message: spread.message, depth, angle, height, children, outside });
}

/** The links of the hypercube: nodes whose numbers differ in one bit. */
function drawCube(stage, g, colours) {
  const { nodes } = stage.model;
  if (nodes > LINKS_NODES_MAX) return;
  g.beginPath();
  for (let i = 0; i < nodes; i++) for (let bit = 1; bit < nodes; bit <<= 1) if ((i ^ bit) > i && (i ^ bit) < nodes) edge(g, stage, i, i ^ bit);
  g.strokeStyle = colours.line;
  g.lineWidth = 1;
  g.stroke();
}

function edge(g, stage, a, b) {
  g.moveTo(stage.x[a], stage.y[a]);
  g.lineTo(stage.x[b], stage.y[b]);
}

/** Nodes that have crashed and are not back. */
function failedAt(model, t) {
  const out = [];
  for (let node = 0; node < model.nodes; node++) {
    let state = 0;
    for (let i = model.stayOf[node]; i < model.stayOf[node + 1]; i++) if (model.stays.t[i] <= t) state = model.stays.end[i] <= t && model.stays.crashed[i] ? 1 : 0;
    if (state) out.push(node);
  }
  return out;
}

function cross(g, colours, stage, node) {
  if (!KIND.place(stage, node)) {
    const angle = stage.seats.angle[stage.model.stayOf[node]];
    stage.x[node] = stage.left + stage.scale * Math.cos(angle);
    stage.y[node] = stage.top + stage.scale * Math.sin(angle);
  }
  const [x, y] = [stage.x[node], stage.y[node]];
  g.beginPath();
  g.moveTo(x - 6, y - 6);
  g.lineTo(x + 6, y + 6);
  g.moveTo(x + 6, y - 6);
  g.lineTo(x - 6, y + 6);
  g.strokeStyle = colours.wrong;
  g.lineWidth = 2.5;
  g.stroke();
  tag(g, colours, `${stage.model.names[node]} failed`, x + 9, y, { strong: true });
}

function addLegend() {
  document.body.classList.add("long-legend");
  const item = (classes, text) => h("li", {}, h("i", { class: `packet ${classes}` }), text);
  document.getElementById("legend").append(item("", "packet under way"), item("full", "with the number of its messages"));
}

// ---- words ----

const packetTitle = (model, i) => `${model.names[cube.packets.source[i]]} to ${cube.packets.target[i] < 0 ? "?" : model.names[cube.packets.target[i]]}`;

function packetItem(inspector, i) {
  const { model, app } = inspector, others = messagesOf(i);
  return h("div", {}, h("button", { class: "link", onclick: () => app.seek(cube.packets.t[i]) }, packetTitle(model, i), h("small", {}, ` ${model.clock(cube.packets.t[i])}, ${span(cube.packets.end[i] - cube.packets.t[i])}`)),
    others.length > 1 ? h("div", { class: "why" }, `${others.length} messages: `, others.slice(0, 4).map((m, k) => [k ? ", " : "", inspector.messageLink(m)]), others.length > 4 ? ` and ${others.length - 4} more` : "") : "");
}

function aboutMessage(inspector, m) {
  const tree = treeOf(inspector.app), carried = [];
  for (let i = 0; i < cube.packets.t.length; i++) if (messagesOf(i).includes(m)) carried.push(i);
  const shared = carried.filter((i) => messagesOf(i).length > 1).length;
  return [
    h("p", { class: "lead" }, `Tree of height ${Math.max(...tree.depth)}; ${carried.length} packets carried it, ${shared} with other messages. ${tree.outside.length ? `${tree.outside.length} nodes never received it.` : ""}`),
    inspector.list("Its packets", carried.toSorted((a, b) => messagesOf(b).length - messagesOf(a).length).slice(0, LISTED).map((i) => packetItem(inspector, i)), carried.length, "None."),
  ];
}

function aboutNode(inspector, node, t) {
  const { source, target } = cube.packets, under = [...cube.packets.during(t)].filter((i) => source[i] === node || target[i] === node);
  return [inspector.list("Packets under way", under.map((i) => packetItem(inspector, i)), under.length, "None now.")];
}

function aboutRun(inspector) {
  const all = [...cube.packets.t.keys()], size = (i) => cube.at[i + 1] - cube.at[i];
  const full = all.toSorted((a, b) => size(b) - size(a)).slice(0, 5), lost = all.filter((i) => cube.packets.target[i] < 0).length;
  return [
    h("p", { class: "lead" }, `${all.length.toLocaleString("en")} packets carried ${cube.message.length.toLocaleString("en")} messages.${lost ? ` The log does not show the arrival of ${lost.toLocaleString("en")}.` : ""}`),
    inspector.list("Largest packets", full.map((i) => packetItem(inspector, i)), all.length),
  ];
}
