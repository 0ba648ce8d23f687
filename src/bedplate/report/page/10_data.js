"use strict";
// The document of the page, its indices, and the few words that every part needs.
// What came from outside is only ever set as text: nothing here takes markup.

const bedplate = {};

bedplate.document = JSON.parse(document.getElementById("data").textContent);

bedplate.data = (() => {
  const page = bedplate.document;
  const found = new Map();
  const s = page.summaries;
  for (let i = 0; i < s.cell.length; i += 1) {
    found.set(`${s.cell[i]}/${s.run[i]}/${s.metric[i]}`, {
      n: s.n[i], basis: s.basis[i], median: s.median[i], minimum: s.minimum[i], maximum: s.maximum[i],
      variation: s.variation[i], low: s.low[i], high: s.high[i], reason: s.reason[i], counted: s.counted[i],
    });
  }
  const metricOf = new Map(page.metrics.map((metric, index) => [metric.name, index]));
  const m = page.measurements;
  const rows = m.cell.map((_, index) => index);
  // Metrics that no run has a value for are explained where they are missed, and not offered.
  const valued = new Set(s.metric.filter((_, i) => s.n[i] > 0));
  const offered = page.metrics.map((_, index) => index).filter((index) => valued.has(index));
  if (!offered.length) offered.push(metricOf.get("tps"));
  const several = page.studies.length > 1;
  // A speed of emulated processors is never named without saying so.
  const emulation = (cell) => (cell.emulated ? " · emulated" : "");
  const datasets = new Set(page.runs.map((run) => run.dataset)).size > 1;
  return {
    several,
    metricOf,
    offered,
    summary: (cell, run, metric) => found.get(`${cell}/${run}/${metric}`),
    named: (cell, run, name) => (metricOf.has(name) ? found.get(`${cell}/${run}/${metricOf.get(name)}`) : undefined),
    measurements: (cell, run) => rows.filter((i) => m.cell[i] === cell && m.run[i] === run && !m.canary[i]),
    all: rows,
    panelName: (cell) => `${cell.panel}${several ? ` · ${page.studies[cell.study].title}` : ""}${emulation(cell)}`,
    cellName: (index) => {
      const cell = page.cells[index];
      const study = several ? ` · ${page.studies[cell.study].title}` : "";
      return `${cell.panel} · fs ${cell.row} · db ${cell.column}${study}${emulation(cell)}`;
    },
    runName: (index) => {
      if (index < 0) return "canary";
      const run = page.runs[index];
      if (!run) return "no run";
      return datasets ? `${run.run} (${run.dataset})` : run.run;
    },
  };
})();

// An element with attributes and children; strings become text. Properties of `on…` are listeners.
bedplate.element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (key === "share") made.style.setProperty("--share", value);
    else if (key === "width") made.style.width = value;
    else if (key === "colour") made.style.background = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
};

// Four significant digits, thousands apart; a dash where nothing was measured.
bedplate.number = (value) => {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const short = Number(value.toPrecision(4));
  const magnitude = Math.floor(Math.log10(Math.abs(short)));
  if (magnitude >= 9 || magnitude < -4) return value.toPrecision(3);
  const decimals = Math.max(0, 3 - magnitude);
  return short.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
};

bedplate.percent = (value) => (value === null || value === undefined ? "–" : `${(value * 100).toFixed(1)} %`);

bedplate.unit = (metric) => (metric.unit === "1" || metric.unit === "1/s" || metric.unit === "share" ? "" : ` ${metric.unit}`);

// "Zlib" in base64, as report/courses.py packs it; unpacked once.
bedplate.unpack = (() => {
  const done = new Map();
  const open = async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  return (text) => {
    if (!text) return Promise.resolve(null);
    if (!done.has(text)) done.set(text, open(text));
    return done.get(text);
  };
})();

// A table from heads and rows; a head that ends in "#" marks a column of figures.
bedplate.table = (heads, rows) => {
  const h = bedplate.element;
  const figures = heads.map((head) => head.endsWith("#"));
  return h("table", {},
    h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: figures[i] ? "number" : null }, head.replace(/#$/, ""))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value, i) => h("td", { class: figures[i] ? "number" : null }, value))))));
};

// Fills a <details> when it is opened, not before: a table of seconds is long.
bedplate.lazyTable = (id, make) => {
  const details = document.getElementById(id);
  const fill = () => {
    details.querySelectorAll(".wide").forEach((old) => old.remove());
    if (details.open) details.append(bedplate.element("div", { class: "wide", tabindex: "0" }, make()));
  };
  details.ontoggle = fill;
  fill();
};
