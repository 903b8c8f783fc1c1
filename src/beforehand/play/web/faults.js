// What went wrong or ended: violations with their proof, expiry, drops, crashes. Each has its shape.

import { brief } from "./dom.js";
import { tag } from "./paint.js";

const MARKS_MAX = 4_000;

/** Violations: a triangle if late, two triangles if delivered twice, a triangle on its tip if unknown. */
export function drawWrong(view, g, colours) {
  const { wrong, wrongWords: words } = view.model, size = wrong.t.length > 200 ? 3 : 7;
  for (let i = 0; i < Math.min(wrong.t.length, MARKS_MAX); i++) {
    if (wrong.t[i] < view.t0 || wrong.t[i] > view.t1 || view.rowAt[wrong.node[i]] < 0) continue;
    const x = view.x(wrong.t[i]), y = view.y(wrong.node[i]);
    g.beginPath();
    if (words[wrong.kind[i]] === "twice") triangle(g, x + size * 0.9, y, size, 1);
    triangle(g, x, y, size, words[wrong.kind[i]] === "unknown" ? -1 : 1);
    g.fillStyle = colours.wrong;
    g.fill();
    if (size > 4) {
      g.lineWidth = 1.5;
      g.strokeStyle = colours.ground;
      g.stroke();
    }
  }
}

function triangle(g, x, y, size, up) {
  g.moveTo(x, y - size * up);
  g.lineTo(x + size, y + size * 0.8 * up);
  g.lineTo(x - size, y + size * 0.8 * up);
  g.closePath();
}

/** Why it is wrong, in words: what the node had delivered before, and should have after. */
export function drawProofs(view, g, colours) {
  for (const proof of view.app.proofs) {
    if (view.rowAt[proof.node] < 0 || proof.follower < 0) continue;
    const y = view.y(proof.node), x0 = view.x(proof.before), x1 = view.x(proof.t);
    g.strokeStyle = colours.wrong;
    g.lineWidth = 2;
    g.beginPath();
    g.moveTo(x0, y - 8);
    g.lineTo(x0, y + 8);
    g.moveTo(x0, y);
    g.lineTo(x1 - 7, y);
    g.stroke();
    const isLeft = x0 > view.base.width * 0.55;
    tag(g, colours, `delivered ${brief(view.model.title(proof.follower), 30)}, which follows it`, x0 + (isLeft ? -6 : 6), y - 15, { strong: true, align: isLeft ? "right" : "left", least: view.gutter + 2 });
  }
}

/** Messages that expired undelivered (a cross) or were dropped (a square with a hole). */
export function drawLosses(view, g, colours, message) {
  const { lost } = view.model, size = Math.max(2, Math.min(4.5, view.rowH * 0.3));
  const crosses = new Path2D(), squares = new Path2D();
  let drawn = 0;
  for (let i = 0; i < lost.t.length && drawn < MARKS_MAX; i++) {
    if (message >= 0 && lost.message[i] !== message) continue;
    if (lost.t[i] < view.t0 || lost.t[i] > view.t1 || view.rowAt[lost.node[i]] < 0) continue;
    const x = view.x(lost.t[i]), y = view.y(lost.node[i]);
    drawn++;
    if (lost.kind[i]) squares.rect(x - size, y - size, 2 * size, 2 * size);
    else {
      crosses.moveTo(x - size, y - size);
      crosses.lineTo(x + size, y + size);
      crosses.moveTo(x + size, y - size);
      crosses.lineTo(x - size, y + size);
    }
  }
  g.strokeStyle = colours.soft;
  g.lineWidth = 1.75;
  g.stroke(crosses);
  g.stroke(squares);
}

/** Crashes: the line of the node ends in a thick bar with a zigzag, and recovery begins with a bar. */
export function drawCrashes(view, g, colours, first, last) {
  const { stays, stayOf } = view.model, size = Math.max(3, Math.min(8, view.rowH * 0.45));
  g.beginPath();
  for (let at = first; at < last; at++) {
    const node = view.rows[at], y = view.y(node);
    for (let i = stayOf[node]; i < stayOf[node + 1]; i++) {
      if (!stays.crashed[i]) continue;
      const x = view.x(stays.end[i]);
      g.moveTo(x, y - size);
      g.lineTo(x + size * 0.5, y - size * 0.3);
      g.lineTo(x - size * 0.5, y + size * 0.3);
      g.lineTo(x, y + size);
      if (i + 1 < stayOf[node + 1]) {
        const back = view.x(stays.t[i + 1]);
        g.moveTo(back, y - size);
        g.lineTo(back, y + size);
      }
    }
  }
  g.strokeStyle = colours.ink;
  g.lineWidth = 2;
  g.stroke();
}
