// Elements and words. Texts never become markup.

/** @returns {HTMLElement} */
export const $ = (id) => document.getElementById(id);

/** @returns {HTMLElement[]} */
export const all = (selector) => [...document.querySelectorAll(selector)];

export const chooser = (id) => /** @type {HTMLSelectElement} */ ($(id));
export const dialog = (id) => /** @type {HTMLDialogElement} */ ($(id));

/** The beginning of a name, for places where there is no room for all of it. */
export const brief = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);

/** The beginning of a name that fits into a width in pixels, in the font of the canvas. */
export function fitted(g, name, room) {
  let text = name;
  for (let most = name.length; most > 1 && g.measureText(text).width > room; most--) text = brief(name, most - 1);
  return text;
}

/** h("p", {class: "x"}, "text", node): texts never become markup. */
export function h(name, props = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Where x is no time, spans are counted in other units: a function of milliseconds. */
export const units = { span: null };

export function span(ms) {
  if (units.span) return units.span(ms);
  const s = ms / 1000;
  if (s < 1) return `${Math.round(ms)} ms`;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 3600) return s % 60 < 0.5 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 60)} min ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
}
