// Starts the page: reads the pack, builds the model, and shows something at once.

import { App } from "./app.js";
import { $, span } from "./dom.js";
import { showHints } from "./hints.js";
import { SPEEDS } from "./keys.js";
import { KIND } from "./kind.js";
import { readLink } from "./link.js";
import { Model } from "./model.js";
import { busiest, openingMessage } from "./opening.js";
import { readPack } from "./pack.js";

async function start() {
  const marks = { begin: performance.now() };
  const head = JSON.parse($("head").textContent);
  const columns = await readPack(head, $("pack").textContent);
  marks.decoded = performance.now();
  $("pack").remove();
  const model = new Model(head, columns);
  marks.indexed = performance.now();
  KIND.setup?.(model);
  const app = new App(model);
  const { about } = model;
  $("run").textContent = head.title;
  $("run-more").textContent = [about.protocol ?? (head.name === head.title ? "" : head.name), about.lifetime_us ? span(about.lifetime_us / 1000) : ""].join(" ");
  const count = model.wrong.t.length;
  for (const [name, has] of [["no-messages", model.messages], ["no-senders", about.has_senders], ["no-contacts", about.has_contacts], ["no-losses", model.lost.t.length]])
    document.body.classList.toggle(name, !has);
  $("verdict").textContent = !count ? head.verdict : head.verdict === "invalid" ? `${count.toLocaleString("en")} violation${count > 1 ? "s" : ""}` : `${head.verdict}, ${count.toLocaleString("en")} finding${count > 1 ? "s" : ""}`;
  $("verdict").hidden = !head.verdict;
  $("verdict").className = `verdict ${head.verdict === "invalid" ? "wrong" : head.verdict}`;
  $("verdict").onclick = () => (count ? app.nextWrong(1) : app.select({ message: -1, node: -1 }));
  $("timeline").setAttribute("aria-valuemax", String(Math.round(model.length / 1000)));
  document.body.classList.toggle("has-wrong", count > 0);
  if (!model.plane) document.body.classList.add("no-plane");
  const link = readLink(model);
  app.showStage(app.state.stage);
  app.setSpeed(model.length > 12 * 3_600_000 ? 120 : model.length > 3_600_000 ? 60 : SPEEDS.findLast((speed) => model.length / speed >= 20_000) ?? SPEEDS[0]);
  app.view.arrange();
  if (link.message === undefined && link.node === undefined && link.t === undefined) {
    const opening = openingMessage(model), moment = KIND.opening?.(app);
    app.select({ message: moment?.message ?? opening });
    if (moment) app.seek(moment.t);
    else if (opening < 0) app.seek(head.window ? head.window[0] : 0);
    else if (app.wrongNodes.size) app.seek([...app.wrongNodes.values()][0]);
    else app.seek(busiest(model, app.spread));
    app.stage.fitAll();
  }
  if (head.window && !link.range) app.view.show(...head.window);
  app.open(link);
  document.body.classList.remove("loading");
  requestAnimationFrame(() => requestAnimationFrame(() => {
    marks.shown = performance.now();
    showHints($("hints")); // asks the storage, which may take 20 ms
  }));
  Object.assign(window, { beforehand: { app, model, marks } }); // for tests, and for the console
}

start().catch((error) => {
  document.body.classList.remove("loading");
  $("trouble").hidden = false;
  $("trouble").textContent = `This page could not be opened: ${error.message}`;
  throw error;
});
