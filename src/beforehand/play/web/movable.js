// Pointers on a canvas: drag, wheel, pinch, hover and click.

/** Drag, wheel, pinch and keys on a plane of its own: screen = world * scale + shift. */
export function makeMovable(canvas, on) {
  const touches = new Map();
  let moved = 0, apart = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    touches.set(event.pointerId, event);
    moved = 0;
    apart = gapOf(touches);
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = touches.get(event.pointerId);
    if (!before) return on.hover?.(event.offsetX, event.offsetY);
    touches.set(event.pointerId, event);
    const [dx, dy] = [event.offsetX - before.offsetX, event.offsetY - before.offsetY];
    moved += Math.abs(dx) + Math.abs(dy);
    if (touches.size === 2) {
      const gap = gapOf(touches), [p, q] = [...touches.values()];
      if (apart) on.zoom(gap / apart, (p.offsetX + q.offsetX) / 2, (p.offsetY + q.offsetY) / 2, event);
      apart = gap;
    } else if (moved > 4) on.drag(dx, dy, event);
  });
  const release = (event) => {
    if (touches.delete(event.pointerId) && moved <= 4 && event.type === "pointerup") on.click?.(event.offsetX, event.offsetY, event);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => on.leave?.());
  canvas.addEventListener("dblclick", (event) => on.zoom(2, event.offsetX, event.offsetY, event));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (on.scroll && !event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) + Math.abs(event.deltaY) > 0 && on.scroll(event)) return;
    on.zoom(Math.exp(-event.deltaY * 0.0016), event.offsetX, event.offsetY, event);
  }, { passive: false });
}

function gapOf(touches) {
  if (touches.size !== 2) return 0;
  const [a, b] = [...touches.values()];
  return Math.hypot(a.offsetX - b.offsetX, a.offsetY - b.offsetY);
}
