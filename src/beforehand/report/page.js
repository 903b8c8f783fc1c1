// Joins each chart with its data, and makes every download work without a file beside the page.
"use strict";

const held = (id) => JSON.parse(document.getElementById(id).textContent);
const views = {};
const LEGEND_ENTRY_WIDTH = 115;

async function draw(place) {
  const slug = place.dataset.chart;
  const spec = held(`spec-${slug}`);
  spec.data.values = held(`data-${slug}`);
  // A legend does not wrap by itself.
  spec.config.legend.columns = Math.max(2, Math.floor(place.clientWidth / LEGEND_ENTRY_WIDTH));
  const options = { actions: false, renderer: "svg", tooltip: { theme: "page" } };
  const { view } = await vegaEmbed(place, spec, options);
  views[slug] = view;
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

async function download(slug, kind) {
  if (kind === "csv") {
    save(`${slug}.csv`, "text/csv", held(`data-${slug}`));
  } else if (kind === "svg") {
    // The chart takes its colour from the text around it, which a file does not have.
    const svg = await views[slug].toSVG();
    save(`${slug}.svg`, "image/svg+xml", svg.replaceAll("currentColor", "#1d2330"));
  } else {
    // The picture for browsers without scripts is the same as the file.
    const still = document.querySelector(`#${slug} noscript`).textContent;
    const letters = atob(still.match(/base64,([^"]+)/)[1]);
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    save(`${slug}.png`, "image/png", bytes);
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-kind]");
  if (link) {
    event.preventDefault();
    download(link.dataset.slug, link.dataset.kind);
  }
});

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
