// A run without a common clock: real nodes, and logs of other systems. x is causality, not time.

import { $, h, units } from "./dom.js";
import { tag } from "./paint.js";

let causal = null;

export const KIND = {
  setup(model) {
    const c = model.columns, step = model.extra.step_ms, { labels } = model.extra, plain = model.title.bind(model);
    causal = { step, source: model.extra.source, findings: model.extra.findings, gaps: { node: c["gap.node"], t: c["gap.t"], end: c["gap.end"], missing: c["gap.missing"] } };
    model.clockOf = (t) => `place ${Math.floor(t / step).toLocaleString("en")}`;
    model.tickOf = (t) => Math.abs(Math.round(t / step)).toLocaleString("en");
    units.span = (ms) => (`${Math.round(ms / step)} place${Math.round(ms / step) === 1 ? "" : "s"}`);
    if (labels.length) model.title = (m) => (labels[m] ? `${model.names[model.origin[m]] ?? "?"}: ${labels[m]}` : plain(m));
    if (model.extra.noun === "event") model.words = { message: "Event", by: "At ", does: "has" };
    for (const item of document.querySelectorAll("#legend .wrong-only")) item.lastChild.textContent = "finding";
    document.querySelector(".spacetime h2").textContent = "Causal order, no clock";
    for (const item of document.querySelectorAll("#st-legend .no-sender-only")) item.textContent = "dashed: from the broadcast, way unknown";
    $("st-legend").append(h("li", {}, "x: longest chain of causes, not time"), causal.gaps.t.length ? h("li", {}, "dotted: missing from the log") : "");
    $("clock").title = "The number of events on the longest causal chain so far; no clock";
  },

  least: (model) => Math.min(60_000, model.length),

  /** The first finding; else the event that most others received, where the last of them has it. */
  opening({ model }) {
    if (model.wrong.t.length || !model.receptions) return null;
    const rows = (m) => model.msgAt[m + 1] - model.msgAt[m], named = (m) => model.pastAt[m + 1] - model.pastAt[m] + model.effectAt[m + 1] - model.effectAt[m];
    let best = 0;
    for (let m = 1; m < model.messages; m++) if (rows(m) > rows(best) || (rows(m) === rows(best) && named(m) > named(best))) best = m;
    return { message: best, t: model.recT[model.byMessage[model.msgAt[best + 1] - 1]] };
  },

  /** A gap: the log of the node skips events here. */
  diagram(view, g, colours, first, last) {
    const { gaps } = causal;
    for (let i = 0; i < gaps.t.length; i++) {
      const row = view.rowAt[gaps.node[i]];
      if (row < first || row >= last || gaps.end[i] < view.t0 || gaps.t[i] > view.t1) continue;
      const y = view.y(gaps.node[i]), x0 = view.x(gaps.t[i]), x1 = view.x(gaps.end[i]);
      g.fillStyle = colours.ground;
      g.fillRect(x0 + 4, y - 2, Math.max(0, x1 - x0 - 8), 4);
      g.strokeStyle = colours.wrong;
      g.lineWidth = 2;
      g.setLineDash([1, 5]);
      g.beginPath();
      g.moveTo(x0 + 5, y);
      g.lineTo(x1 - 5, y);
      g.stroke();
      g.setLineDash([]);
      if (x1 - x0 > 60 && view.rowH > 14) tag(g, colours, `${gaps.missing[i]} missing`, (x0 + x1) / 2, y - 10, { align: "center" });
    }
  },

  details(inspector) {
    const { model, app } = inspector, { message, node } = app.state;
    if (node >= 0) {
      const mine = [...causal.gaps.t.keys()].filter((i) => causal.gaps.node[i] === node);
      return [inspector.list("Missing from its log", mine.map((i) => h("button", { class: "link", onclick: () => app.seek(causal.gaps.t[i]) }, `${causal.gaps.missing[i]} events`, h("small", {}, model.clock(causal.gaps.t[i])))))];
    }
    const findings = [...causal.findings.keys()].filter((i) => message < 0 || model.wrong.message[i] === message);
    return [
      inspector.list("Findings in words", findings.slice(0, 8).map((i) => h("button", { class: "link wrong", onclick: () => app.showWrong(i) }, causal.findings[i])), findings.length),
      message < 0 ? h("p", { class: "fine" }, `The order is from ${causal.source}. Two events of one place, or without a chain between them, are concurrent.`) : null,
    ];
  },
};
