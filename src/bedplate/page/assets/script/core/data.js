"use strict";
// The document of the page, its indices, and the few words that every part needs.
// What came from outside is only ever set as text: nothing here takes markup.

const bedplate = {};

bedplate.document = JSON.parse(document.getElementById("data").textContent);

bedplate.data = (() => {
  const page = bedplate.document;
  const found = new Map();
  // Which metrics have anything to show, by run; and of which parts, by run and metric.
  const metricsOf = new Map();
  const partsOf = new Map();
  const note = (map, key, value) => {
    if (!map.has(key)) map.set(key, new Set());
    map.get(key).add(value);
  };
  const take = (s) => {
    for (let i = 0; i < s.cell.length; i += 1) {
      const part = s.part ? s.part[i] : 0;
      const limit = s.limit[i];
      found.set(`${s.cell[i]}/${s.run[i]}/${s.metric[i]}/${part}`, {
        n: s.n[i],
        basis: s.basis[i],
        mean: s.mean[i],
        minimum: s.minimum[i],
        maximum: s.maximum[i],
        variation: s.variation[i],
        low: s.low[i],
        high: s.high[i],
        reason: s.reason[i],
        counted: s.counted[i],
        censored: s.censored[i],
        limit,
        is_ratio: page.metrics[s.metric[i]].scale === "ratio",
      });
      if (s.n[i] > 0 || limit !== null) {
        note(metricsOf, s.run[i], s.metric[i]);
        note(partsOf, `${s.run[i]}/${s.metric[i]}`, part);
      }
    }
  };
  take(page.summaries);
  // What speaks of parts of runs is packed, and is read once, before anything is drawn.
  const open = () => {
    const within = bedplate.unpack(page.within);
    if (within) take(within.summaries);
  };
  const metricOf = new Map(page.metrics.map((metric, index) => [metric.name, index]));
  const m = page.measurements;
  const rows = m.cell.map((_, index) => index);
  const runsOf = new Map();
  for (const i of rows) {
    const key = `${m.cell[i]}/${m.run[i]}`;
    if (m.canary[i]) continue;
    if (!runsOf.has(key)) runsOf.set(key, []);
    runsOf.get(key).push(i);
  }
  const ordered = (numbers) => [...(numbers ?? [])].sort((one, other) => one - other);
  const first = (run) => page.runs[run]?.first ?? 0;
  // Metrics that no run has a value for are explained where they are missed, and not offered.
  const offered = (run) => (metricsOf.has(run) ? ordered(metricsOf.get(run)) : [first(run)]);
  const parts = (run, metric) => (partsOf.has(`${run}/${metric}`) ? ordered(partsOf.get(`${run}/${metric}`)) : [0]);
  const several = page.studies.length > 1;
  // A speed of emulated processors is never named without saying so.
  const emulation = (cell) => (cell.emulated ? " · emulated" : "");
  // An engine may have no blocks to choose.
  const blocks = (row, column) => (column ? `fs ${row} · db ${column}` : `fs ${row}`);
  const datasets = new Map(page.runs.map((run) => [run.dataset, run.dataset_words.split(" ")]));
  // Of the words of a dataset those that another one lacks; all where that leaves none.
  const shared = [...datasets.values()].reduce((left, words) => left.filter((word) => words.includes(word)));
  const isTelling = (word) => !shared.includes(word);
  // A number alone says nothing: the name before it stays.
  const telling = ({ dataset, dataset_words: words }) =>
    datasets
      .get(dataset)
      .filter((word, i, all) => isTelling(word) || (/^\d/.test(all[i + 1]) && isTelling(all[i + 1])))
      .join(" ") || words;
  return {
    several,
    blocks,
    metricOf,
    open,
    first,
    offered,
    parts,
    summary: (cell, run, metric, part = 0) => found.get(`${cell}/${run}/${metric}/${part}`),
    named: (cell, run, name) => (metricOf.has(name) ? found.get(`${cell}/${run}/${metricOf.get(name)}/0`) : undefined),
    partName: (part) => (part ? page.parts[part][0] : ""),
    // The mark of a figure that rests on no trusted run, behind what is to stand before it.
    doubtMark: (entry, before = "") => {
      const mark = page.rules.words.marks[entry?.basis];
      return mark ? `${before}${mark}` : "";
    },
    measurements: (cell, run) => runsOf.get(`${cell}/${run}`) ?? [],
    all: rows,
    panelName: (cell) => `${cell.panel}${several ? ` · ${page.studies[cell.study].name}` : ""}${emulation(cell)}`,
    cellName: (index) => {
      const cell = page.cells[index];
      const study = several ? ` · ${page.studies[cell.study].name}` : "";
      return `${cell.panel} · ${blocks(cell.row, cell.column)}${study}${emulation(cell)}`;
    },
    runName: (index) => {
      if (index < 0) return "canary";
      const run = page.runs[index];
      if (!run) return "no run";
      const isAlone = page.runs.every((one, place) => place === index || one.run !== run.run);
      return datasets.size > 1 && !isAlone ? `${run.run} (${telling(run)})` : run.run;
    },
    // A run, or the part of it that is looked at.
    runAndPart: (run, part) => `${bedplate.data.runName(run)}${part ? `, ${page.parts[part][0]}` : ""}`,
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
    else if (key === "depth") made.style.setProperty("--depth", value);
    else if (key === "width") made.style.width = value;
    else if (key === "colour") made.style.background = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
};

// Thousands apart, and so many decimals. One is made for each number of them: to make one takes longer than to use it.
bedplate.fixed = (() => {
  const made = new Map();
  return (decimals) => {
    if (!made.has(decimals)) {
      const options = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
      made.set(decimals, new Intl.NumberFormat("en-US", options));
    }
    return made.get(decimals);
  };
})();

// A count, to its last digit.
bedplate.count = (n) => bedplate.fixed(0).format(n);

// Four significant digits, thousands apart; a whole one is a count; a dash where nothing was measured. With a scatter no digit that it
// leaves open.
bedplate.number = (value, scatter = null) => {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(4)))));
  if (magnitude >= 9 || magnitude < -4) return value.toExponential(2);
  const digits = scatter ? Math.min(4, Math.max(1, magnitude - Math.floor(Math.log10(scatter)) + 2)) : 4;
  const decimals = Number.isInteger(value) ? 0 : Math.max(0, digits - 1 - magnitude);
  return bedplate.fixed(decimals).format(Number(value.toPrecision(digits)));
};

// A ratio in a table: three digits behind the point where it is near 1.
bedplate.ratioFigure = (value) => (value >= 0.01 && value < 10 ? value.toFixed(3) : bedplate.number(value));

// Half the width of a summary's interval, or of its range where there is none; null where nothing tells how runs scatter. Two runs may
// agree by chance and one says nothing of scatter, so that of a figure with a ratio it leaves them three digits and two at most.
bedplate.scatter = (entry) => {
  if (!entry) return null;
  const [low, high] = entry.low === null ? [entry.minimum, entry.maximum] : [entry.low, entry.high];
  const half = entry.n < 2 || low === null || high === null ? 0 : (high - low) / 2;
  const few = entry.is_ratio && entry.mean && (entry.n === 1 || entry.n === 2);
  const least = few ? 10 ** (Math.floor(Math.log10(Math.abs(entry.mean))) + 1 - entry.n) : 0;
  return Math.max(half, least) || null;
};

// A value of a summary with no digit that its runs leave open.
bedplate.told = (entry, value = entry?.mean) => bedplate.number(value, bedplate.scatter(entry));

// What the figure of a cell is (decision 15).
bedplate.centre = (metric) => (metric.scale === "ratio" ? "geometric mean" : "mean");

// More than a limit, which is a round figure of somebody's choice.
bedplate.beyond = (limit) => `> ${limit.toLocaleString("en-US", { maximumSignificantDigits: 6 })}`;

bedplate.percent = (value) => (value === null || value === undefined ? "–" : `${(value * 100).toFixed(1)} %`);

// The sample sizes behind a picture, each that of one bar or square; empty where nothing has a value.
bedplate.sampleSize = (sizes, what) => {
  const counts = sizes.filter((n) => n > 0);
  if (!counts.length) return "";
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return (
    ` n = ${least === most ? most : `${least} to ${most}`} in each of ${counts.length} ` +
    `${what}${counts.length === 1 ? "" : "s"} with a value.`
  );
};

bedplate.unit = (metric) =>
  metric.unit === "1" || metric.unit === "1/s" || metric.unit === "share" ? "" : ` ${metric.unit}`;

bedplate.unpacked = (text) => {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bedplate.inflated(bytes);
};

// JSON that is packed; unpacked once.
bedplate.unpack = (() => {
  const done = new Map();
  return (text) => {
    if (!text) return null;
    if (!done.has(text)) done.set(text, JSON.parse(new TextDecoder().decode(bedplate.unpacked(text))));
    return done.get(text);
  };
})();

// What the page carries packed (page/document.py): read when it is asked for, and once.
bedplate.packedData = (() => {
  const done = new Map();
  // It stands behind this script, so that the page can be used before the last of it has been read.
  const isWhole = () => document.readyState !== "loading";
  const whole = new Promise((resolve) => {
    if (isWhole()) resolve(null);
    else document.addEventListener("DOMContentLoaded", resolve, { once: true });
  });
  const inflated = ([start, length]) =>
    bedplate.unpacked(document.getElementById("packed-data").textContent.substr(start, length));
  const words = (bytes) => JSON.parse(new TextDecoder().decode(bytes));

  // The value of every code; one that lies within a step is not told more exactly than the step.
  const scale = (low, high, steps, logarithmic) => {
    if (logarithmic) {
      const digits = Math.min(4, Math.max(2, Math.ceil(-Math.log10(Math.log(high / low) / steps))));
      return (code) => Number((low * (high / low) ** (code / steps)).toPrecision(digits));
    }
    const step = (high - low) / steps;
    const decimals = step > 0 ? Math.max(0, -Math.floor(Math.log10(step))) : 0;
    return (code) => (decimals > 20 ? low + code * step : Number((low + code * step).toFixed(decimals)));
  };

  const course = (bytes) => {
    const view = new DataView(bytes.buffer);
    const long = view.getUint32(0, true);
    const head = words(bytes.subarray(4, 4 + long));
    const made = { second: head.second ?? Array.from({ length: head.n }, (_, i) => head.first + i) };
    if (head.phases) made.phases = head.phases;
    let at = 4 + long;
    for (const [name, low, high, steps, logarithmic] of head.columns) {
      const value = scale(low, high, steps, logarithmic);
      const known = new Map();
      const wide = steps > 254;
      made[name] = Array.from({ length: head.n }, (_, i) => {
        const code = bytes[at + i] + (wide ? 256 * bytes[at + head.n + i] : 0);
        if (!code) return null;
        if (!known.has(code)) known.set(code, value(code - 1));
        return known.get(code);
      });
      at += head.n * (wide ? 2 : 1);
    }
    return made;
  };

  const open = (place, read) => {
    if (!place) return Promise.resolve(null);
    const value = () => read(inflated(place));
    if (!done.has(place)) done.set(place, isWhole() ? Promise.resolve(value()) : whole.then(value));
    return done.get(place);
  };
  const m = bedplate.document.measurements;
  // Of a run, by its place among the measurements: a column each of its seconds, and its bins; null without.
  return { course: (run) => open(m.course[run], course), latencies: (run) => open(m.latencies[run], words) };
})();

// A table from heads and rows; a head that ends in "#" marks a column of figures. A row is a list, or makes one: of a long table of
// cells only what is seen is made. Rows of `cells`, by their indices, stand in one line where `entriesOf(cell)`, the summaries that
// they show, cannot be told apart.
/**
 * @typedef {any[] | ((isWhole: boolean) => any[])} Row
 * @type {(heads: string[], rows: Row[], of?: {cells?: number[], entriesOf?: (cell: number) => any[]}) => HTMLElement}
 */
bedplate.table = (heads, rows, { cells = null, entriesOf = null } = {}) => {
  const h = bedplate.element;
  const figures = heads.map((head) => head.endsWith("#"));
  // Of thousands of rows, as of the seconds of eight courses, only those are made that are seen.
  const isLate = rows.length > bedplate.longTables.MADE_MOST && !cells && !entriesOf;
  const isBare = !isLate && rows.length > bedplate.longTables.WHOLE_MOST;
  const seen = isLate ? bedplate.longTables.FIRST : rows.length;
  const lines = (some, first, isWhole = false) =>
    some.map((row, place) => {
      const line = h("tr", { "data-cell": cells?.[first + place] });
      const make = (isAll) =>
        (typeof row === "function" ? row(isAll) : row).forEach((value, i) =>
          line.append(h("td", { class: figures[i] ? "number" : null }, value)),
        );
      if (isBare) bedplate.longTables.later(line, make);
      else make(isWhole);
      return line;
    });
  const made = h(
    "table",
    {},
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map((head, i) => h("th", { scope: "col", class: figures[i] ? "number" : null }, head.replace(/#$/, ""))),
      ),
    ),
    h("tbody", {}, lines(rows.slice(0, seen), 0)),
  );
  const about = (cell) => entriesOf(cell).map((entry) => ({ entry, isFirst: true }));
  const alike = entriesOf && ((found) => bedplate.alike.byFigures(found, about));
  const late = isLate ? { count: rows.length - seen, make: (isWhole) => lines(rows.slice(seen), seen, isWhole) } : null;
  return bedplate.longTables.attach(made, { alike, late });
};

// The name of a cell before its row, and below it what no figure of it should be read without.
bedplate.cellHead = (cell) => {
  const h = bedplate.element;
  const { durability } = bedplate.document.cells[cell];
  return h("div", {}, bedplate.data.cellName(cell), h("span", { class: "small" }, durability));
};

// Fills a <details> when it is opened, not before: a table of seconds is long. `made(id)` makes the table it would hold.
bedplate.lazyTable = (id, make) => {
  const details = document.getElementById(id);
  bedplate.lazyTable.makers.set(id, make);
  const fill = () => {
    details.querySelectorAll(".wide").forEach((old) => old.remove());
    if (details.open) details.append(bedplate.element("div", { class: "wide", tabindex: "0" }, make()));
  };
  details.ontoggle = fill;
  fill();
};
bedplate.lazyTable.makers = new Map();
bedplate.lazyTable.made = (id) => bedplate.lazyTable.makers.get(id)?.();
