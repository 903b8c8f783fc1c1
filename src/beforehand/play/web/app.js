// One state, one clock, one loop that draws only what changed.

import { NEVER, lastUpTo } from "./orders.js";
import { readColours } from "./paint.js";
import { Stage } from "./stage.js";
import { SpaceTime } from "./spacetime.js";
import { Timeline } from "./timeline.js";
import { $, all, chooser, dialog } from "./dom.js";
import { Inspector } from "./inspector.js";
import { SPEEDS, onKey } from "./keys.js";
import { handoversOf, longestWait } from "./opening.js";
import { fillTable } from "./table.js";
import { makeSearch } from "./search.js";
import { readLink, writeLink } from "./link.js";

const WORDS_EVERY_MS = 150;
const CALM_STEP_MS = 500; // where motion is unwelcome, the run steps instead of gliding

export class App {
  constructor(model) {
    this.model = model;
    this.state = { t: 0, isPlaying: false, speed: 60, message: -1, node: -1, stage: model.plane ? "map" : "circle", order: "arrival", tab: "stage" };
    this.dirty = new Set();
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.colours = readColours();
    this.waitMax = longestWait(model);
    this.view = new SpaceTime($("st-base"), $("st-over"), model, this);
    this.stage = new Stage($("stage-base"), $("stage"), model, this);
    this.timeline = new Timeline($("timeline"), model, this);
    this.inspector = new Inspector($("details"), model, this);
    this.spread = this.cone = null;
    this.frames = [];
    this.wordsAt = this.linkAt = 0;
    makeSearch($("search"), $("found"), model, this);
    this.bind();
  }

  // ---- what is chosen ----

  select(change) {
    const { state, model } = this;
    if (change.message !== undefined && change.message !== state.message) {
      state.message = change.message;
      this.spread = state.message < 0 ? null : model.spread(state.message);
      this.cone = state.message < 0 ? null : model.cone(state.message);
      this.handovers = this.spread && model.plane ? handoversOf(model, this.spread) : [];
      this.proofs = this.spread ? model.proofs(state.message) : [];
      this.wrongNodes = new Map();
      for (let i = 0; i < model.wrong.t.length; i++) if (model.wrong.message[i] === state.message && !this.wrongNodes.has(model.wrong.node[i])) this.wrongNodes.set(model.wrong.node[i], model.wrong.t[i]);
      if (state.message >= 0) {
        state.node = -1;
        const end = this.spread.deadline === NEVER ? model.length : this.spread.deadline;
        if (!change.keepTime && (state.t < model.sent[state.message] || state.t > end)) state.t = model.sent[state.message];
      }
      this.view.arrange();
      if (!change.keepView) this.view.fitMessage();
      this.say(state.message < 0 ? "No message chosen" : `Message ${model.title(state.message)}`);
    }
    if (change.node !== undefined) {
      state.node = change.node;
      if (!this.spread && model.nodes > 150) {
        this.view.arrange();
        this.view.fitMessage();
      } else this.view.stale();
      if (state.node >= 0) this.say(`Node ${model.names[state.node]}`);
    }
    const chosen = state.node >= 0 ? model.names[state.node] : state.message >= 0 ? model.title(state.message) : "";
    $("chip").hidden = !chosen;
    $("chip").textContent = chosen;
    $("legend").dataset.of = $("st-legend").dataset.of = this.spread ? "message" : "run";
    this.touchAll();
  }

  showWrong(i) {
    const { wrong } = this.model;
    this.select({ message: wrong.message[i] });
    this.seek(wrong.t[i]);
  }

  nextWrong(by) {
    const { wrong } = this.model;
    if (!wrong.t.length) return this.say("There are no violations");
    let i = lastUpTo(wrong.t, 0, wrong.t.length, this.state.t - (by < 0 ? 1 : 0));
    this.showWrong((i + (by > 0 ? 1 : 0) + wrong.t.length) % wrong.t.length);
  }

  nextMessage(by) {
    if (!this.model.messages) return this.say("There are no messages");
    const { model, state } = this, from = state.message >= 0 ? state.message + by : lastUpTo(model.sent, 0, model.spoken, state.t, 0);
    this.select({ message: (from + model.messages) % model.messages });
    this.seek(model.sent[state.message]);
  }

  /** To the next thing that happens to the chosen message or node, else to any. */
  step(by) {
    const { model, state, spread } = this, times = [];
    if (spread) for (const row of spread.rows) times.push(model.recT[row], ...(model.recEnd[row] > model.recT[row] && model.recEnd[row] !== NEVER ? [model.recEnd[row]] : []));
    else if (state.node >= 0) for (let i = model.recAt[state.node]; i < model.recAt[state.node + 1]; i++) times.push(model.recT[i]);
    else if (model.receptions) {
      const at = this.lastReception(state.t + (by > 0 ? 0 : -1)) + (by > 0 ? 1 : 0);
      return this.seek(model.recT[model.byTime[Math.max(0, Math.min(model.receptions - 1, at))]] ?? state.t);
    }
    times.push(spread ? model.sent[spread.message] : 0);
    if (spread && spread.deadline <= model.length) times.push(spread.deadline);
    times.sort((a, b) => a - b);
    const next = by > 0 ? times.find((t) => t > state.t) : times.findLast((t) => t < Math.floor(state.t));
    if (next !== undefined) this.seek(next);
    else this.say(by > 0 ? "Nothing more happens to it" : "Nothing happened to it before");
  }

  lastReception(t) {
    const { byTime, recT, receptions } = this.model;
    let low = 0, high = receptions;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (recT[byTime[middle]] <= t) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  // ---- time ----

  seek(t) {
    this.state.t = Math.max(0, Math.min(this.model.length, t));
    if (this.state.isFollowing !== false) this.view.follow(this.state.t);
    this.touchAll();
  }

  play(isPlaying = !this.state.isPlaying) {
    if (isPlaying && this.state.t >= this.model.length) this.state.t = 0;
    this.state.isPlaying = isPlaying;
    this.lastFrame = performance.now();
    $("play").setAttribute("aria-pressed", String(isPlaying));
    $("play").title = $("play").ariaLabel = isPlaying ? "Pause (space)" : "Play (space)";
    this.touchAll();
  }

  setSpeed(speed) {
    this.state.speed = speed;
    chooser("speed").value = String(speed);
    this.touch("stage");
  }

  // ---- drawing ----

  touch(part) {
    this.dirty.add(part);
    this.wake();
  }

  touchAll() {
    for (const part of ["stage", "over", "timeline", "words"]) this.dirty.add(part);
    this.wake();
  }

  wake() {
    this.asked ??= requestAnimationFrame((now) => this.frame(now));
  }

  frame(now) {
    this.asked = null;
    const { state, dirty } = this, began = performance.now();
    if (state.isPlaying && now - this.lastFrame < (this.calm.matches ? CALM_STEP_MS : 0)) return this.wake();
    if (state.isPlaying) {
      const passed = Math.min(2 * CALM_STEP_MS, now - this.lastFrame);
      this.lastFrame = now;
      state.t = Math.min(this.model.length, state.t + passed * state.speed);
      if (state.t >= this.model.length) this.play(false);
      this.view.follow(state.t);
      for (const part of ["stage", "over", "timeline"]) dirty.add(part);
      if (now - this.wordsAt > WORDS_EVERY_MS) dirty.add("words");
    }
    if (dirty.has("stage")) this.stage.draw(state.t, state.isPlaying ? state.speed : Math.min(state.speed, 60));
    if (dirty.has("over")) this.view.drawOver(state.t);
    if (dirty.has("timeline")) this.timeline.draw(state.t);
    if (dirty.has("words")) {
      this.wordsAt = now;
      this.inspector.draw(state.t);
      if (!state.isPlaying) fillTable($("rows-body"), $("rows-caption"), this.model, this, state.t);
      this.words();
    } else $("clock").textContent = this.model.clock(state.t);
    dirty.clear();
    this.cost = performance.now() - began;
    if (state.isPlaying) this.wake();
  }

  words() {
    const { model, state } = this;
    $("clock").textContent = model.clock(state.t);
    $("timeline").setAttribute("aria-valuenow", String(Math.round(state.t / 1000)));
    $("timeline").setAttribute("aria-valuetext", model.clock(state.t));
    $("stage").setAttribute("aria-label", `${this.stage.there.length} nodes at ${model.clock(state.t)}`);
    $("there").textContent = `${this.stage.there.length.toLocaleString("en")} there`;
    clearTimeout(this.linkTimer);
    this.linkTimer = setTimeout(() => writeLink(model, state, this.view), 300);
  }

  tellDetail(text) {
    $("detail").textContent = text;
  }

  say(text) {
    $("status").textContent = text;
  }

  repaint() {
    this.colours = readColours();
    this.view.stale();
    this.touchAll();
  }

  // ---- keys and buttons ----

  bind() {
    const { state } = this;
    $("play").onclick = () => this.play();
    $("speed").replaceChildren(...SPEEDS.map((speed) => new Option(speed < 60 ? `${speed}×` : `${speed}×`, String(speed))));
    $("speed").onchange = () => this.setSpeed(+chooser("speed").value);
    $("order").onchange = () => { state.order = chooser("order").value; this.view.arrange(); this.touchAll(); };
    for (const button of all("[data-stage]")) button.onclick = () => this.showStage(button.dataset.stage);
    for (const button of all("[data-tab]")) button.onclick = () => this.showTab(button.dataset.tab, button.dataset.also);
    $("chip").onclick = () => this.showTab("details");
    $("theme").onclick = () => this.switchTheme();
    $("help").onclick = () => dialog("keys").showModal();
    $("zoom-in").onclick = () => this.stage.zoomMiddle(1.5);
    $("zoom-out").onclick = () => this.stage.zoomMiddle(1 / 1.5);
    $("fit").onclick = () => { this.stage.fitAll(); this.touchAll(); };
    $("st-fit").onclick = () => this.fitView();
    $("st-in").onclick = () => this.view.zoomTime(1.6, this.view.x(state.t));
    $("st-out").onclick = () => this.view.zoomTime(1 / 1.6, this.view.x(state.t));
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) matchMedia(query).addEventListener("change", () => this.repaint());
    addEventListener("hashchange", () => this.open(readLink(this.model)));
    addEventListener("keydown", (event) => onKey(this, event));
  }

  fitView() {
    this.view.arrange();
    this.view.fitMessage();
    this.touchAll();
  }

  showStage(stage) {
    this.state.stage = stage;
    for (const button of all("[data-stage]")) button.setAttribute("aria-pressed", String(button.dataset.stage === stage));
    this.stage.fitAll();
    this.touchAll();
  }

  showTab(tab, also) {
    this.state.tab = tab;
    document.body.dataset.tab = tab;
    if (also) this.showStage(also);
    for (const button of all("[data-tab]")) button.setAttribute("aria-selected", String(button.dataset.tab === tab && (!button.dataset.also || button.dataset.also === this.state.stage)));
    this.touchAll();
  }

  switchTheme() {
    const isDark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
    document.documentElement.dataset.theme = isDark ? "light" : "dark";
    this.repaint();
  }

  open(link) {
    if (link.stage) this.showStage(link.stage);
    if (link.speed) this.setSpeed(link.speed);
    if (link.message !== undefined) this.select({ message: link.message, keepTime: link.t !== undefined });
    if (link.node !== undefined) this.select({ node: link.node });
    if (link.range) this.view.show(...link.range);
    if (link.t !== undefined) this.state.t = link.t;
    this.showTab(link.tab ?? this.state.tab);
  }
}
