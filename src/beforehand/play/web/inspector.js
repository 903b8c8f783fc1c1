// Words about what is chosen: a run, a message or a node, at the time that is shown.

import { highlights, nodeChart, spreadChart } from "./charts.js";
import { h, span } from "./dom.js";
import { KIND } from "./kind.js";
import { NEVER } from "./orders.js";

const LISTED = 8;

export class Inspector {
  constructor(place, model, app) {
    this.place = place;
    this.model = model;
    this.app = app;
    this.found = this.bio = null;
    this.bioOf = -1;
  }

  /** Found when they are first shown: a page with a chosen message need not wait for them. */
  get best() {
    return (this.found ??= highlights(this.model));
  }

  messageLink(m, more = "") {
    return h("button", { class: "link", onclick: () => this.app.select({ message: m }) }, this.model.title(m), more && h("small", {}, more));
  }

  nodeLink(node, more = "") {
    return h("button", { class: "link node", onclick: () => this.app.select({ node }) }, this.model.names[node] ?? "?", more && h("small", {}, more));
  }

  draw(t) {
    const { node, message } = this.app.state;
    const parts = node >= 0 ? this.aboutNode(node, t) : message >= 0 ? this.aboutMessage(message, t) : this.aboutRun();
    const more = KIND.details?.(this, t) ?? [], scroll = this.place.scrollTop;
    this.place.replaceChildren(...parts, ...more.filter(Boolean));
    this.place.scrollTop = scroll;
    for (const canvas of this.place.querySelectorAll("canvas")) canvas.paint?.();
  }

  head(kind, title, onClose) {
    return h("header", { class: "chosen" }, h("p", {}, kind), h("h2", {}, title),
      onClose && h("button", { class: "icon", "aria-label": "Close (Esc)", title: "Close (Esc)", onclick: onClose }, "×"));
  }

  figures(pairs) {
    return h("dl", { class: "figures" }, pairs.map(([word, value, state]) => h("div", { class: state ?? "" }, h("dd", {}, String(value)), h("dt", {}, word))));
  }

  /** What has not come, and what has come and waits itself. */
  why(node, m, t) {
    if (!this.model.hasPast) return null;
    const missing = this.model.missing(node, m, t), roots = this.model.roots(node, m, t);
    const links = (messages) => messages.slice(0, 3).map((cause, i) => [i ? ", " : "", this.messageLink(cause)]).concat(messages.length > 3 ? ` and ${messages.length - 3} more` : "");
    const here = missing.filter(({ isHere }) => isHere).map(({ cause }) => cause);
    return h("div", { class: "why" }, roots.length ? ["not here: ", links(roots)] : "set free in this instant", here.length ? [h("br"), "here, but waiting too: ", links(here)] : "");
  }

  list(title, items, total = items.length, empty = "", isTop = false) {
    if (!items.length && !empty) return null;
    return h("section", {}, h("h3", {}, title, h("span", {}, total && !isTop ? total.toLocaleString("en") : "")),
      items.length ? h("ul", {}, items.slice(0, LISTED).map((item) => h("li", {}, item))) : h("p", { class: "empty" }, empty),
      items.length && total > LISTED && !items[0].matches(".group") ? h("p", { class: "more" }, `and ${(total - Math.min(LISTED, items.length)).toLocaleString("en")} more`) : null);
  }

  // ---- the run ----

  aboutRun() {
    const { model, best } = this, { about, wrong } = model;
    const wrongs = [...wrong.t.keys()].slice(0, LISTED).map((i) => h("button", { class: "link wrong", onclick: () => this.app.showWrong(i) },
      `${model.title(wrong.message[i])} at ${model.names[wrong.node[i]]}`, h("small", {}, `${model.wrongWords[wrong.kind[i]]}, ${model.clock(wrong.t[i])}`)));
    return [
      this.head("Run", model.head.title),
      h("p", { class: "lead" }, settingsOf(about), "Choose a message below, a diamond in the diagram, or a node."),
      this.figures([["nodes", model.nodes.toLocaleString("en")], ["messages", model.messages.toLocaleString("en")],
        ["receptions", model.receptions.toLocaleString("en")], ["waited", model.receptions ? `${best.waitedShare} %` : "–", "waits"]]),
      this.list("About this page", model.head.notes.concat(model.head.reason || []).map((note) => h("span", { class: "note-of-page" }, note))),
      this.list("Violations", wrongs, wrong.t.length),
      this.list("Waited longest", best.longest.map((row) => this.messageLink(model.recMessage[row], `${span(model.recEnd[row] - model.recT[row])} at ${model.names[model.recNode[row]]}`)), 0, "", true),
      this.list("Came farthest", best.widest.map((m) => this.messageLink(m, `${model.msgAt[m + 1] - model.msgAt[m]} nodes`)), 0, "", true),
      model.hasPast ? this.list("Named the most causes", best.deepest.map((m) => this.messageLink(m, `${model.pastAt[m + 1] - model.pastAt[m]} causes`)), 0, "", true) : null,
    ].filter(Boolean);
  }

  // ---- a message ----

  aboutMessage(m, t) {
    const { model, app } = this, { spread, cone } = app, origin = model.origin[m];
    const reached = [...spread.rows];
    const state = spread.deadline <= t ? "expired" : t < model.sent[m] ? "not yet broadcast" : "alive";
    let has = 0, waits = [];
    for (const row of reached) {
      if (model.recT[row] > t) break;
      if (model.recEnd[row] <= t) has++;
      else if (model.isPresent(model.recNode[row], t)) waits.push(row);
    }
    if (state === "expired") waits = [];
    const causes = [...model.past.subarray(model.pastAt[m], model.pastAt[m + 1])];
    const effects = [...model.effects.subarray(model.effectAt[m], model.effectAt[m + 1])];
    // Nodes that wait for the same causes are listed together.
    const groups = new Map();
    for (const row of waits.slice(0, 60)) {
      const key = model.roots(model.recNode[row], m, t).toSorted((a, b) => a - b).join();
      groups.set(key, [...(groups.get(key) ?? []), row]);
    }
    const waiting = [...groups.values()].toSorted((a, b) => b.length - a.length).map((rows) => h("div", { class: "group" },
      rows.slice(0, 6).map((row, i) => [i ? ", " : "", this.nodeLink(model.recNode[row], ` ${span(t - model.recT[row])}`)]), rows.length > 6 ? ` and ${rows.length - 6} more` : "",
      this.why(model.recNode[rows[0]], m, t)));
    const wrongs = [...model.wrong.t.keys()].filter((i) => model.wrong.message[i] === m);
    return [
      this.head(model.words.message, model.title(m), () => app.select({ message: -1 })),
      h("p", { class: "lead" }, m < model.spoken ? model.words.by : "No broadcast in the log, origin ", this.nodeLink(origin), `${m < model.spoken ? " at" : "; first seen at"} ${model.clock(model.sent[m])}`,
        spread.deadline === NEVER ? "." : `, until ${model.clock(spread.deadline)}.`, ` Now ${state}.`),
      this.figures([["have it", t < model.sent[m] ? 0 : has + 1, "has"], ["wait", waits.length, "waits"], ["reached", (reached.length + 1).toLocaleString("en")]]),
      spreadChart(model, app, spread, t),
      wrongs.length ? this.list("Violations", wrongs.map((i) => h("button", { class: "link wrong", onclick: () => app.showWrong(i) }, `${model.wrongWords[model.wrong.kind[i]]} at ${model.names[model.wrong.node[i]]}`, h("small", {}, model.clock(model.wrong.t[i])))), wrongs.length) : null,
      this.tour(),
      this.list("Waits now at", waiting, waits.length, state === "alive" ? "No node: each that has it has delivered it." : ""),
      model.hasPast ? this.list("Causes it names", causes.map((c) => this.messageLink(c, model.clock(model.sent[c]))), causes.length, "None.") : h("p", { class: "empty" }, "The causes that messages name were not kept."),
      model.hasPast ? this.list("Named by", effects.map((c) => this.messageLink(c, model.clock(model.sent[c]))), effects.length, "No message.") : null,
      model.hasPast ? h("p", { class: "cone" }, h("i", { class: "past" }), `${cone.past.toLocaleString("en")} in its past  `, h("i", { class: "future" }), `${cone.future.toLocaleString("en")} in its future`) : null,
      h("p", { class: "fine" }, `origin ${origin}, seq ${model.seqText(m)}`),
    ].filter(Boolean);
  }

  /** The proof of the first violation of the message, step by step: each button seeks to its step. */
  tour() {
    const { model, app } = this, proof = app.proofs.find(({ chain }) => chain.length);
    if (!proof) return null;
    const step = ({ t, node, message, isBroadcast }, i) => h("button", { class: "link step", onclick: () => app.seek(t) },
      `${i + 1}. ${model.names[node] ?? node} ${isBroadcast ? model.words.does : "delivers"} ${message < 0 ? "?" : model.title(message)}`, h("small", {}, model.clock(t)));
    return h("section", { class: "tour" }, h("h3", {}, `The proof, at ${model.names[proof.node]}`), h("ol", {}, proof.chain.map((at, i) => h("li", {}, step(at, i)))));
  }

  // ---- a node ----

  aboutNode(node, t) {
    const { model, app } = this;
    if (this.bioOf !== node) [this.bio, this.bioOf] = [model.biography(node), node];
    const { steps, gaveUp, done } = this.bio;
    let at = -1;
    while (at + 1 < steps.length && steps[at + 1][0] <= t) at++;
    const [, holds, , given] = at < 0 ? [0, 0, 0, 0] : steps[at];
    const waits = model.waitingAt(node, t), peers = [];
    model.contacts.each(t, (a, b) => {
      if (a === node) peers.push(b);
      else if (b === node) peers.push(a);
    });
    const stays = [];
    for (let i = model.stayOf[node]; i < model.stayOf[node + 1]; i++) stays.push(`${model.clock(model.stays.t[i])} to ${model.clock(model.stays.end[i])}`);
    const lately = [...done].filter(([, when]) => when <= t).sort((a, b) => b[1] - a[1]).slice(0, 5);
    const lost = [...gaveUp].filter(([, when]) => when <= t).sort((a, b) => b[1] - a[1]);
    const isHere = model.isPresent(node, t);
    return [
      this.head("Node", model.names[node], () => app.select({ node: -1 })),
      h("p", { class: "lead" }, `There ${stays.slice(0, 2).join(", ")}${stays.length > 2 ? `, and ${stays.length - 2} more` : ""}.`, isHere ? "" : " Not there now."),
      this.figures([["holds", isHere ? holds : "–", "has"], ["waits", waits.length, "waits"], ["gave up", given]]),
      nodeChart(model, app, steps, node, t),
      this.list("In contact with", peers.map((peer) => this.nodeLink(peer)), peers.length, "No node now."),
      this.list("Waits", waits.slice(-LISTED).map((row) => {
        const m = model.recMessage[row];
        return h("div", {}, this.messageLink(m, ` for ${span(t - model.recT[row])}`), this.why(node, m, t));
      }), waits.length, "Nothing: all that came is delivered."),
      this.list("Delivered lately", lately.map(([m, when]) => this.messageLink(m, model.clock(when)))),
      this.list("Gave up", lost.slice(0, LISTED).map(([m, when]) => this.messageLink(m, model.clock(when))), lost.length),
    ].filter(Boolean);
  }
}


/** The protocol and its settings, as far as the log names them. */
function settingsOf(about) {
  const parts = [about.protocol, about.lifetime_us && `lifetime ${span(about.lifetime_us / 1000)}`, about.skew_us && `clocks up to ${span(about.skew_us / 1000)} apart`, about.range_m && `range ${about.range_m} m`];
  const given = parts.filter(Boolean);
  return given.length ? `${given.join(", ")}. ` : "";
}
