// Every action by key.

import { dialog } from "./dom.js";
import { KIND } from "./kind.js";

const MINUTE_MS = 60_000;

export const SPEEDS = [0.01, 0.05, 0.1, 1, 5, 10, 30, 60, 120, 300, 600, 1800];

export function onKey(app, event) {
  if (event.ctrlKey || event.metaKey || event.target.closest("input, select, dialog")) return;
  const { state, model } = app;
  const faster = (by) => app.setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(state.speed) + by))]);
  const keys = {
    " ": () => app.play(), k: () => app.play(),
    ArrowRight: () => (event.altKey ? app.view.panTime((app.view.t1 - app.view.t0) / 5) : event.shiftKey ? app.seek(state.t + MINUTE_MS) : app.step(1)),
    ArrowLeft: () => (event.altKey ? app.view.panTime((app.view.t0 - app.view.t1) / 5) : event.shiftKey ? app.seek(state.t - MINUTE_MS) : app.step(-1)),
    ArrowUp: () => app.view.scrollRows(-40), ArrowDown: () => app.view.scrollRows(40),
    ".": () => faster(1), ",": () => faster(-1), ">": () => faster(1), "<": () => faster(-1),
    Home: () => app.seek(0), End: () => app.seek(model.length),
    "+": () => app.view.zoomTime(1.5, app.view.x(state.t)), "=": () => app.view.zoomTime(1.5, app.view.x(state.t)), "-": () => app.view.zoomTime(1 / 1.5, app.view.x(state.t)),
    f: () => { app.stage.fitAll(); app.fitView(); },
    m: () => model.plane && app.showStage("map"), c: () => app.showStage("circle"),
    n: () => app.nextMessage(1), p: () => app.nextMessage(-1),
    v: () => app.nextWrong(1), V: () => app.nextWrong(-1),
    t: () => app.switchTheme(), "?": () => dialog("keys").showModal(),
    "/": () => document.getElementById("search").focus(),
    Escape: () => (state.node >= 0 ? app.select({ node: -1 }) : app.select({ message: -1 })),
  };
  const act = KIND.keys?.(app)[event.key] ?? keys[event.key];
  if (!act || (event.target.closest("button") && event.key === " ")) return;
  event.preventDefault();
  act();
}
