// What the page computes once: the first view, hand-overs of a message, the longest wait.

import { NEVER } from "./orders.js";

export function longestWait(model) {
  let most = 0;
  for (let i = 0; i < model.receptions; i++) if (model.recEnd[i] !== NEVER) most = Math.max(most, model.recEnd[i] - model.recT[i]);
  return most;
}

/** Where the message went from hand to hand, in metres. */
export function handoversOf(model, spread) {
  const out = [], a = { x: 0, y: 0 }, b = { x: 0, y: 0 };
  for (const row of spread.rows) {
    const from = model.recSender[row], t = model.recT[row];
    if (from < 0 || !model.place(from, t, a) || !model.place(model.recNode[row], t, b)) continue;
    out.push({ t, ax: a.x, ay: a.y, bx: b.x, by: b.y });
  }
  return out;
}

/** What to show first: a violation, else the message for which most nodes had to wait; -1 without messages. */
export function openingMessage(model) {
  if (model.wrong.t.length && model.wrong.t.length < 1000) return model.wrong.message[0];
  const score = new Float64Array(model.messages), least = Math.min(1000, model.length / 1000);
  for (let i = 0; i < model.receptions; i++) if (model.recEnd[i] !== NEVER && model.recEnd[i] > model.recT[i] + least) score[model.recMessage[i]]++;
  let best = model.spoken ? 0 : -1;
  for (let m = 1; m < model.messages; m++) if (score[m] > score[best]) best = m;
  return best;
}

/** When most of the nodes that have the message wait to deliver it. */
export function busiest(model, { rows, message }) {
  const steps = [];
  for (const row of rows) if (model.recEnd[row] > model.recT[row]) steps.push([model.recT[row], 1], [Math.min(model.recEnd[row], model.recT[row] + 600_000), -1]);
  steps.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let waits = 0, most = 0, longest = 0, best = model.sent[message];
  for (let i = 0; i + 1 < steps.length; i++) {
    waits += steps[i][1];
    const lasts = steps[i + 1][0] - steps[i][0];
    if (lasts > 0 && (waits > most || (waits === most && lasts > longest))) [most, longest, best] = [waits, lasts, steps[i][0] + lasts / 2];
  }
  return best;
}
