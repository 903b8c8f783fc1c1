// The small charts of the panel, and the highlights of the run.

import { h } from "./dom.js";
import { NEVER } from "./orders.js";

function chart(label, app, paint) {
  const canvas = h("canvas", { class: "mini", role: "img", "aria-label": label });
  canvas.paint = () => {
    const width = canvas.clientWidth || 280, height = 64, ratio = Math.min(2, devicePixelRatio || 1);
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    paint(g, width, height, app.colours);
  };
  return canvas;
}

function area(g, points, x, y, base) {
  g.beginPath();
  g.moveTo(x(points[0]?.[0] ?? 0), base);
  let last = base;
  for (const [t, value] of points) {
    g.lineTo(x(t), last);
    g.lineTo(x(t), (last = y(value)));
  }
  return last;
}

export function spreadChart(model, app, spread, t) {
  const start = model.sent[spread.message], came = [[start, 1]], done = [[start, 1]];
  const ends = [];
  for (const row of spread.rows) {
    came.push([model.recT[row], came.length + 1]);
    if (model.recEnd[row] !== NEVER) ends.push(model.recEnd[row]);
  }
  ends.sort((a, b) => a - b).forEach((end, i) => done.push([end, i + 2]));
  const last = Math.min(model.length, spread.deadline === NEVER ? Math.max(came.at(-1)[0], done.at(-1)[0], start + 1000) : spread.deadline);
  return chart("How many had received and delivered it, over its life", app, (g, width, height, colours) => {
    const x = (time) => 1 + ((time - start) / (last - start)) * (width - 2), base = height - 1, y = (n) => base - (n / came.length) * (height - 8);
    for (const [points, colour] of [[came, colours.waits], [done, colours.has]]) {
      const level = area(g, points, x, y, base);
      g.lineTo(width - 1, level);
      g.lineTo(width - 1, base);
      g.closePath();
      g.fillStyle = colour;
      g.fill();
    }
    hand(g, x(t), width, height, colours);
  });
}

export function nodeChart(model, app, steps, node, t) {
  const start = model.stays.t[model.stayOf[node]], last = model.stays.end[model.stayOf[node + 1] - 1];
  return chart("What it held and waited for, over its stay", app, (g, width, height, colours) => {
    let most = 1;
    for (const [when, holds, waits] of steps) if (when <= last) most = Math.max(most, holds + waits);
    const x = (time) => 1 + ((Math.min(last, time) - start) / Math.max(1, last - start)) * (width - 2), base = height - 1, y = (n) => base - (n / most) * (height - 8);
    for (const [pick, colour] of [[(s) => s[1] + s[2], colours.waits], [(s) => s[1], colours.has]]) {
      const level = area(g, steps.filter((s) => s[0] <= last).map((s) => [s[0], pick(s)]), x, y, base);
      g.lineTo(width - 1, level);
      g.lineTo(width - 1, base);
      g.closePath();
      g.fillStyle = colour;
      g.fill();
    }
    hand(g, x(t), width, height, colours);
  });
}

function hand(g, x, width, height, colours) {
  if (x < 0 || x > width) return;
  g.fillStyle = colours.ink;
  g.fillRect(x - 0.75, 0, 1.5, height);
}

/** The messages to choose from at first: waited longest, reached most nodes, named the most causes. */
export function highlights(model) {
  const { recT, recEnd } = model, longest = [];
  let waited = 0, least = 0;
  for (let i = 0; i < model.receptions; i++) {
    if (recEnd[i] === recT[i]) continue;
    waited++;
    const wait = recEnd[i] === NEVER ? 0 : recEnd[i] - recT[i];
    if (wait <= least) continue;
    longest.push(i);
    if (longest.length > 400) {
      longest.sort((a, b) => recEnd[b] - recT[b] - (recEnd[a] - recT[a]));
      longest.length = 40;
      least = recEnd[longest[39]] - recT[longest[39]];
    }
  }
  longest.sort((a, b) => recEnd[b] - recT[b] - (recEnd[a] - recT[a]));
  const seen = new Set(), few = longest.filter((row) => !seen.has(model.recMessage[row]) && seen.add(model.recMessage[row])).slice(0, 5);
  const all = [...Array(model.messages).keys()], by = (score) => all.toSorted((a, b) => score(b) - score(a)).slice(0, 4);
  return {
    longest: few,
    widest: by((m) => model.msgAt[m + 1] - model.msgAt[m]),
    deepest: by((m) => model.pastAt[m + 1] - model.pastAt[m]),
    waitedShare: ((100 * waited) / Math.max(1, model.receptions)).toFixed(waited / model.receptions < 0.1 ? 1 : 0),
  };
}
