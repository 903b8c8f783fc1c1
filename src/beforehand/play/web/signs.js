// The signs of states: shape and colour, never colour alone.

/** A node. Never by colour alone: full = delivered, ring with a gap = waits, dot = has it not. */
export function sign(g, colours, x, y, state, size) {
  g.beginPath();
  if (state === "has" || state === "origin") {
    g.arc(x, y, size, 0, 7);
    g.fillStyle = colours.has;
    g.fill();
    if (state === "origin") {
      g.beginPath();
      g.arc(x, y, size + 3.5, 0, 7);
      g.strokeStyle = colours.has;
      g.lineWidth = 2;
      g.stroke();
    }
  } else if (state === "waits") {
    g.arc(x, y, size, 0, 7);
    g.fillStyle = colours.ground;
    g.fill();
    g.beginPath();
    g.arc(x, y, size - 0.5, -2.2, 2.6);
    g.strokeStyle = colours.waits;
    g.lineWidth = 3;
    g.stroke();
  } else if (state === "wrong") {
    g.moveTo(x, y - size - 3);
    g.lineTo(x + size + 2, y + size);
    g.lineTo(x - size - 2, y + size);
    g.closePath();
    g.fillStyle = colours.wrong;
    g.fill();
  } else if (state === "gone") {
    g.moveTo(x - size * 0.6, y - size * 0.6);
    g.lineTo(x + size * 0.6, y + size * 0.6);
    g.moveTo(x + size * 0.6, y - size * 0.6);
    g.lineTo(x - size * 0.6, y + size * 0.6);
    g.strokeStyle = colours.quiet;
    g.lineWidth = 1.5;
    g.stroke();
  } else {
    g.arc(x, y, size * (state === "busy" ? 0.8 : 0.62), 0, 7);
    g.fillStyle = state === "busy" ? colours.soft : colours.quiet;
    g.fill();
  }
}

export function diamond(g, x, y, size) {
  g.moveTo(x, y - size);
  g.lineTo(x + size, y);
  g.lineTo(x, y + size);
  g.lineTo(x - size, y);
  g.lineTo(x, y - size); // closePath takes ten times as long
}
