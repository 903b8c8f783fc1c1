// One field that finds nodes (L6-5), messages (L6-5 #12, 33:1200) and times (12:30).

import { h } from "./dom.js";
import { KIND } from "./kind.js";

export function makeSearch(field, list, model, app) {
  let found = [], at = 0;

  const look = (text) => {
    const words = text.trim().toLowerCase(), out = [];
    if (!words) return out;
    const time = words.match(/^(\d{1,2}):(\d{2})(?::(\d{2}))?$/);
    if (time) {
      const ms = ((+time[1] * 60 + +time[2]) * 60 + +(time[3] ?? 0)) * 1000 - model.startUs / 1000;
      if (ms >= 0 && ms <= model.length) out.push({ kind: "time", text: model.clock(ms), go: () => app.seek(ms) });
    }
    const [name, number] = words.split(/\s*#\s*/), [origin, seq] = words.split(":");
    for (let node = 0; node < model.nodes && out.length < 6; node++)
      if (model.names[node].toLowerCase().startsWith(name) && number === undefined) out.push({ kind: "node", text: model.names[node], go: () => app.select({ node }) });
    for (let m = 0; m < model.messages && out.length < 12; m++) {
      const isNamed = number !== undefined && model.names[model.origin[m]].toLowerCase() === name && String(model.rank[m]).startsWith(number);
      const isFirst = number === undefined && model.names[model.origin[m]].toLowerCase() === name;
      const isSeq = seq !== undefined && String(model.origin[m]) === origin && model.seqText(m).startsWith(seq);
      if (isNamed || isFirst || isSeq) out.push({ kind: "message", text: model.title(m), more: model.clock(model.sent[m]), go: () => app.select({ message: m }) });
    }
    return out.concat(KIND.search?.(words, model, app) ?? []).slice(0, 12);
  };

  const show = () => {
    list.hidden = !field.value.trim();
    field.setAttribute("aria-expanded", String(!list.hidden));
    list.replaceChildren(...(found.length ? found.map((item, i) => h("li", { role: "option", id: `found-${i}`, "aria-selected": String(i === at), onpointerdown: (event) => { event.preventDefault(); take(i); } },
      h("span", {}, item.text), h("small", {}, item.more ?? item.kind))) : [h("li", { class: "empty" }, "Nothing has that name. Try a node, L6-5 #12, or 12:30.")]));
    field.setAttribute("aria-activedescendant", found.length ? `found-${at}` : "");
  };

  const take = (i) => {
    found[i]?.go();
    field.value = "";
    field.blur();
    list.hidden = true;
  };

  field.addEventListener("input", () => { [found, at] = [look(field.value), 0]; show(); });
  field.addEventListener("blur", () => (list.hidden = true));
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      at = (at + (event.key === "ArrowDown" ? 1 : found.length - 1)) % Math.max(1, found.length);
      show();
    } else if (event.key === "Enter") take(at);
    else if (event.key === "Escape") { field.value = ""; field.blur(); }
    event.stopPropagation();
  });
}
