// Joins each chart with its data, and makes every download work without a file beside the page.
"use strict";

const held = (id) => JSON.parse(document.getElementById(id).textContent);
const address = (slug, kind) =>
  document.querySelector(`a[data-slug="${slug}"][data-kind="${kind}"]`).getAttribute("href");
const table = (slug) => decodeURIComponent(address(slug, "csv").replace(/^[^,]*,/, ""));
const bytes = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
const LEGEND_ENTRY_WIDTH = 150;

async function draw(place) {
  const slug = place.dataset.chart;
  const spec = held(`spec-${slug}`);
  spec.data.values = table(slug);
  // A legend does not wrap by itself.
  spec.config.legend.columns = Math.max(2, Math.floor(place.clientWidth / LEGEND_ENTRY_WIDTH));
  const options = { actions: false, renderer: "svg", tooltip: { theme: "page" } };
  const { view } = await vegaEmbed(place, spec, options);
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

// The links hold what they save, but a browser follows no address of more than two megabytes.
function download(slug, kind) {
  if (kind === "csv") {
    save(`${slug}.csv`, "text/csv", table(slug));
  } else if (kind === "svg") {
    save(`${slug}.svg`, "image/svg+xml", bytes(address(slug, "svg").replace(/^[^,]*,/, "")));
  } else {
    // The picture for browsers without scripts is the same as the file.
    const still = document.querySelector(`#${slug} noscript`).textContent;
    save(`${slug}.png`, "image/png", bytes(still.match(/base64,([^"]+)/)[1]));
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
