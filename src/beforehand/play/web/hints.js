// Three hints on the first visit, in a bar that covers nothing.

import { h } from "./dom.js";

const KEY = "beforehand.hints";
const HINTS = [
  "Click or drag the timeline to move in time; the space bar plays the run.",
  "Click a node, or a diamond in the space-time diagram, to follow it; Esc lets it go.",
  "Orange waits: the details name the causes that have not come. Press ? for all keys.",
];

const HINTS_OF_TOUCH = [
  "Drag the timeline to move in time; the round button plays the run.",
  "Tap a node, or a diamond in the space-time diagram, to follow it; pinch to zoom.",
  "Orange waits: the details name the causes that have not come.",
];

export function showHints(place) {
  if (wasHere()) return;
  const hints = matchMedia("(pointer: coarse)").matches ? HINTS_OF_TOUCH : HINTS;
  let at = 0;
  const close = () => {
    place.hidden = true;
    remember();
  };
  const draw = () =>
    place.replaceChildren(
      h("span", {}, `${at + 1} of ${hints.length}: ${hints[at]}`),
      h("button", { class: "link", onclick: () => (++at < hints.length ? draw() : close()) }, at + 1 < hints.length ? "Next" : "Done"),
      h("button", { class: "icon", "aria-label": "Close the hints", onclick: close }, "×"));
  place.hidden = false;
  draw();
}

/** A page from a file may have no storage: then every visit is the first. */
function wasHere() {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return false;
  }
}

function remember() {
  try {
    localStorage.setItem(KEY, "seen");
  } catch {
    // without storage the hints come again
  }
}
