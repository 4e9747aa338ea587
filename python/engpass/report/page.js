"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const page = read("page-data");
  const root = document.documentElement;

  // The page stores rows as columns and values; Vega needs objects.
  const datasets = {};
  for (const [name, { columns, rows }] of Object.entries(page.datasets)) {
    datasets[name] = rows.map((row) => {
      const object = {};
      columns.forEach((column, i) => { if (row[i] !== null) object[column] = row[i]; });
      return object;
    });
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); });
  dark.addEventListener("change", name);
  name();

  let flow = page.flows[0];
  const views = new Map();
  const chosen = {};

  // Facets do not adapt to their container: set the width of their panels, two side by side if there is room.
  const fit = (spec, box) => {
    const width = Math.max(240, box.clientWidth);
    const height = Math.round(Math.min(400, Math.max(250, width * 0.55)));
    if (spec.facet) {
      const columns = width > 620 ? 2 : 1;
      spec.columns = columns;
      // With independent scales every panel has its own labels.
      const own = Boolean(spec.resolve && spec.resolve.scale);
      spec.spec.width = Math.floor((width - (columns > 1 ? (own ? 146 : 76) : 58)) / columns);
      spec.spec.height = Math.round(height * 0.6);
    } else if (spec.vconcat) {
      const beside = (spec.usermeta && spec.usermeta.beside) || 150;
      for (const panel of spec.vconcat) panel.width = width - beside;
    } else {
      spec.width = "container";
      if (spec.usermeta && spec.usermeta.fluid) spec.height = height;
    }
  };

  const draw = async (box) => {
    const source = (page.charts[flow] || {})[box.dataset.chart];
    box.closest("figure").hidden = !source;
    if (!source) return;
    const spec = structuredClone(source);
    spec.datasets = { ...spec.datasets, ...datasets };
    spec.config = page.config;
    fit(spec, box);
    if (views.has(box)) views.get(box).view.finalize();
    const { view } = await vegaEmbed(box, spec, { mode: "vega-lite", renderer: "svg", actions: false, ast: true });
    const drawn = { view, names: (spec.params || []).map((parameter) => parameter.name) };
    views.set(box, drawn);
    for (const [name, value] of Object.entries(chosen)) await choose(drawn, name, value);
    box.dataset.drawn = flow;
  };
  const choose = async ({ view, names }, name, value) => {
    if (names.includes(name)) await view.signal(name, value).runAsync();
  };
  const boxes = [...document.querySelectorAll("[data-chart]")];
  const all = () => Promise.all(boxes.map(draw));
  all().then(() => { root.dataset.ready = "yes"; });

  let width = innerWidth;
  let pending = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(pending);
    pending = setTimeout(all, 150);
  });

  for (const select of document.querySelectorAll("select[data-choice]")) {
    select.addEventListener("change", () => {
      chosen[select.dataset.choice] = select.value;
      for (const drawn of views.values()) choose(drawn, select.dataset.choice, select.value);
    });
  }
  const flows = document.getElementById("flow");
  if (flows) flows.addEventListener("change", () => { flow = flows.value; all(); });

  const download = document.getElementById("download");
  if (download && typeof DecompressionStream === "function") {
    download.hidden = false;
    download.addEventListener("click", async () => {
      const packed = Uint8Array.from(atob(read("points-data")), (letter) => letter.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      const text = await new Response(stream).blob();
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      link.download = page.file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }
})();
