// Joins each chart with its data, and makes every download work without a file beside the page.
"use strict";

const held = (id) => JSON.parse(document.getElementById(id).textContent);
const address = (slug, kind) =>
  document.querySelector(`a[data-slug="${slug}"][data-kind="${kind}"]`).getAttribute("href");
const table = (slug) => decodeURIComponent(address(slug, "csv").replace(/^[^,]*,/, ""));
const bytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
const LEGEND_ENTRY_WIDTH = 150, LEGEND_SYMBOL_WIDTH = 35, LETTER_WIDTH = 7;

async function draw(place) {
  const slug = place.dataset.chart;
  const spec = held(`spec-${slug}`);
  spec.data.values = table(slug);
  // A legend does not wrap by itself.
  const names = (spec.layer?.[0] ?? spec).encoding?.color?.scale?.domain ?? [];
  const longest = Math.max(0, ...names.map((name) => name.length));
  const entry = Math.max(LEGEND_ENTRY_WIDTH, LEGEND_SYMBOL_WIDTH + LETTER_WIDTH * longest);
  spec.config.legend.labelLimit = Math.max(LEGEND_ENTRY_WIDTH, place.clientWidth - 110);
  spec.config.legend.columns = Math.max(1, Math.floor(place.clientWidth / entry));
  const options = { actions: false, renderer: "svg", tooltip: { theme: "page" } };
  const { view } = await vegaEmbed(place, spec, options);
  if (JSON.stringify(spec).includes('"bind":"scales"')) {
    const hint = "Ctrl + wheel or a pinch on a touchpad zooms, dragging moves, a double click resets. ";
    place.closest("figure").querySelector(".files").before(hint);
  }
  for (const { name, bind } of spec.params ?? []) {
    if (bind?.input) share(name, view);
  }
}

// Charts that ask the same thing are answered together.
const asking = {};
function share(name, view) {
  const others = (asking[name] ??= []);
  others.push(view);
  view.addSignalListener(name, (_, value) => {
    for (const other of others) {
      if (other.signal(name) !== value) other.signal(name, value).runAsync();
    }
  });
}

function save(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// The figure for browsers without scripts, which is also the file.
const still = (slug) => bytes(document.querySelector(`#${slug} noscript`).textContent.match(/base64,([^"]+)/)[1]);
const PICTURE_SCALE = 2;

async function savePicture(slug) {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([still(slug)], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = PICTURE_SCALE * image.width;
  canvas.height = PICTURE_SCALE * image.height;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  canvas.toBlob((png) => save(`${slug}.png`, "image/png", png));
}

// The links hold what they save, but a browser follows no address of more than two megabytes.
function download(slug, kind) {
  if (kind === "csv") {
    save(`${slug}.csv`, "text/csv", table(slug));
  } else if (kind === "svg") {
    save(`${slug}.svg`, "image/svg+xml", still(slug));
  } else {
    savePicture(slug);
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-kind]");
  if (link) {
    event.preventDefault();
    download(link.dataset.slug, link.dataset.kind);
  }
});

// A click on a head sorts by its column, a second one the other way round.
const shown = (row, column) => row.cells[column].firstChild.textContent.trim();
const number = (text) => (/^[\d.,]+/.test(text) ? parseFloat(text.replaceAll(",", "")) : NaN);

function sort(grid, column, isFalling) {
  const body = grid.tBodies[0];
  const keyed = [...body.rows].map((row) => [row, shown(row, column)]);
  const isCounted = keyed.every(([, text]) => text === "–" || !isNaN(Number(text.replace(/[,%\s]|±.*$/g, ""))));
  const compare = isCounted
    ? (a, b) => number(a) - number(b)
    : (a, b) => a.localeCompare(b, "en", { numeric: true });
  // What is missing comes last, whichever way.
  keyed.sort(([, a], [, b]) => (a === "–") - (b === "–") || (isFalling ? compare(b, a) : compare(a, b)));
  body.append(...keyed.map(([row]) => row));
  [...grid.tHead.rows[0].cells].forEach((head, place) => {
    if (place === column) head.ariaSort = isFalling ? "descending" : "ascending";
    else head.removeAttribute("aria-sort");
  });
}

function filter(grid, text, told) {
  const words = text.toLowerCase().split(/\s+/);
  const rows = [...grid.tBodies[0].rows];
  for (const row of rows) {
    const line = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => line.includes(word));
  }
  told.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
}

function addTools(grid) {
  const tools = document.createElement("p");
  const field = Object.assign(document.createElement("input"), { type: "search", placeholder: "Filter rows" });
  field.ariaLabel = "Filter rows";
  const told = document.createElement("output");
  // On a phone the rows are cards, and there is no head to click on.
  const order = document.createElement("select");
  order.ariaLabel = "Sort by";
  order.append(new Option("Sort by", ""));
  [...grid.tHead.rows[0].cells].forEach((head, column) => {
    order.append(new Option(`${head.textContent} ↑`, `${column} up`), new Option(`${head.textContent} ↓`, `${column}`));
  });
  order.addEventListener("change", () => {
    const [column, way] = order.value.split(" ");
    if (column) sort(grid, Number(column), !way);
  });
  field.addEventListener("input", () => filter(grid, field.value.trim(), told));
  tools.className = "tools";
  tools.append(field, order, told);
  grid.parentElement.before(tools);
  filter(grid, "", told);
}

for (const grid of document.querySelectorAll("table")) {
  if (grid.tBodies[0].rows.length < 2) continue;
  [...grid.tHead.rows[0].cells].forEach((head, column) => {
    if (!head.textContent) return;
    const ask = () => sort(grid, column, head.ariaSort === "ascending");
    head.classList.add("sorts");
    head.tabIndex = 0;
    head.title = "Sort by this column";
    head.addEventListener("click", ask);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        ask();
      }
    });
  });
  if (grid.classList.contains("long")) addTools(grid);
}

// What is folded is for the screen: paper shows it all.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details:not([open])")) {
    fold.open = true;
    fold.dataset.opened = "";
  }
});
addEventListener("afterprint", () => {
  for (const fold of document.querySelectorAll("details[data-opened]")) {
    fold.open = false;
    delete fold.dataset.opened;
  }
});

Promise.all([...document.querySelectorAll("[data-chart]")].map(draw)).then(
  () => (document.documentElement.dataset.charts = "drawn"),
);

// The contents mark the section that is being read: the last one that begins above the middle.
const entries = [...document.querySelectorAll("nav a")];
const sections = entries.map((entry) => document.getElementById(entry.hash.slice(1)));
let marked = null;
function mark() {
  const reached = sections.findLastIndex((part) => part.getBoundingClientRect().top < innerHeight / 2);
  if (entries[reached] === marked) return;
  marked?.removeAttribute("aria-current");
  marked = entries[reached];
  if (!marked) return;
  marked.setAttribute("aria-current", "true");
  const bar = marked.parentElement;
  bar.scrollTo({ left: marked.offsetLeft - bar.clientWidth / 3, behavior: "instant" });
}
addEventListener("scroll", mark, { passive: true });
mark();

// A preview loads once it is opened: a page that plays may have 25 MB.
for (const preview of document.querySelectorAll(".preview")) {
  preview.addEventListener("toggle", () => {
    const frame = preview.querySelector("iframe");
    frame.src ||= frame.dataset.src;
  });
}
