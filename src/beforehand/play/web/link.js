// The state of the page in its address: #t=05:43:20.5&m=33:21&n=L6-5&v=circle&w=1200000-2400000

export function readLink(model) {
  const given = new URLSearchParams(location.hash.slice(1)), out = {};
  const number = (key) => (given.has(key) && isFinite(+given.get(key)) ? +given.get(key) : undefined);
  if (number("t") !== undefined) out.t = Math.max(0, Math.min(model.length, number("t")));
  if (number("x") !== undefined) out.speed = number("x");
  const [origin, seq] = (given.get("m") ?? "").split(":");
  if (given.has("m")) for (let m = 0; m < model.messages; m++) if (String(model.origin[m]) === origin && model.seqText(m) === seq) out.message = m;
  if (given.has("n")) {
    const node = model.names.indexOf(given.get("n"));
    if (node >= 0) out.node = node;
  }
  if (["map", "circle"].includes(given.get("v"))) out.stage = given.get("v");
  if (["stage", "spacetime", "details"].includes(given.get("tab"))) out.tab = given.get("tab");
  const range = (given.get("w") ?? "").split("-").map(Number);
  if (range.length === 2 && range.every(isFinite) && range[0] < range[1]) out.range = range;
  return out;
}

export function writeLink(model, state, view) {
  const given = new URLSearchParams({ t: String(Math.round(state.t)) });
  if (state.message >= 0) given.set("m", `${model.origin[state.message]}:${model.seqText(state.message)}`);
  if (state.node >= 0) given.set("n", model.names[state.node]);
  if (state.stage !== "map") given.set("v", state.stage);
  given.set("w", `${Math.max(0, Math.round(view.t0))}-${Math.round(view.t1)}`);
  given.set("x", state.speed);
  history.replaceState(null, "", `#${given.toString().replaceAll("%3A", ":")}`);
}
