"use strict";
// Plotly in the page's own clothes: its fonts, its colours in both themes, thin lines, no tool bar.

bedplate.charts = (() => {
  // A picture asks for its few colours once for each of its lines; they hold until the theme changes, or paper wants others.
  const known = new Map();
  for (const query of ["(prefers-color-scheme: dark)", "print"])
    window.matchMedia(query).addEventListener("change", () => known.clear());
  const colour = (name) => {
    if (!known.has(name)) known.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    return known.get(name);
  };
  const series = (index) => colour(`--series-${(index % 8) + 1}`);
  // Plotly reads a small markup in its texts; what came from outside must not speak it.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  const axis = (more = {}) => ({
    gridcolor: colour("--line"),
    zeroline: false,
    linecolor: colour("--line"),
    tickcolor: colour("--line"),
    ticks: "",
    automargin: true,
    fixedrange: false,
    separatethousands: true,
    exponentformat: "none",
    ...more,
  });

  const layout = (more = {}) => ({
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--muted") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    margin: { l: 52, r: 12, t: 8, b: 38 },
    hovermode: "x unified",
    dragmode: "zoom",
    hoverlabel: {
      bgcolor: colour("--surface"),
      bordercolor: colour("--line"),
      font: { color: colour("--ink"), size: 12 },
    },
    ...more,
  });

  // Plotly stands on the page packed: it takes longer to start than all the rest, and is started for the first picture that
  // is drawn.
  const start = () => {
    if (window.Plotly) return;
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(bedplate.unpacked(document.getElementById("plotly").textContent));
    document.head.append(script);
  };

  // A picture is as wide as its place, which also changes when another one beside it comes or goes.
  const fitting = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const drawn = target.querySelector(".main-svg")?.getBoundingClientRect().width;
      if (drawn && contentRect.width > 0 && Math.abs(drawn - contentRect.width) > 1) Plotly.Plots.resize(target);
    }
  });

  const written = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 12 });
  const endsOf = (values) =>
    values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);

  // Ends of a scale that are numbers of it, and how many steps lie between them: multiples of 1, 2 or 5 times a power of ten.
  const roundEnds = (values, most) => {
    let [low, high] = endsOf(values);
    if (low === high) [low, high] = low ? [Math.min(0, low), Math.max(0, high)] : [0, 1];
    for (;;) {
      const rough = (high - low) / most;
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * (1 - 1e-9));
      const from = Math.floor(low / step + 1e-9);
      const to = Math.ceil(high / step - 1e-9);
      if (to - from <= most)
        return {
          low: Number((from * step).toPrecision(12)),
          high: Number((to * step).toPrecision(12)),
          steps: to - from,
        };
      [low, high] = [from * step, to * step];
    }
  };

  // A logarithmic axis has numbers at powers of ten alone where it reaches over some of them, else at 1, 2 and 5 or at round steps
  // between. Each number is written out: a 5 for 50 is read as 5.
  const logEnds = ([low, high], suffix = "") => {
    const decades = Math.log10(high / low);
    const first = Math.floor(Math.log10(low) + 1e-9);
    if (decades >= 2) {
      const dtick = Math.ceil(decades / 6);
      return {
        tick0: first,
        dtick,
        range: [first, first + dtick * Math.ceil((Math.log10(high) - first) / dtick - 1e-9)],
      };
    }
    const steps = roundEnds([low, high], 5);
    const powers = Array.from({ length: Math.ceil(decades) + 4 }, (_, i) => 10 ** (first - 1 + i));
    const marks =
      decades >= 0.9 || decades === 0 || steps.low <= 0
        ? powers.flatMap((power) => [1, 2, 5].map((one) => one * power))
        : Array.from({ length: steps.steps + 1 }, (_, i) => steps.low + (i * (steps.high - steps.low)) / steps.steps);
    const tickvals = marks.map((mark) => Number(mark.toPrecision(6)));
    const from = tickvals.filter((mark) => mark <= low).at(-1) ?? low;
    const to = tickvals.find((mark) => mark >= high && mark > from) ?? high;
    return {
      tickmode: "array",
      tickvals,
      ticktext: tickvals.map((value) => `${written(value)}${suffix}`),
      range: [Math.log10(from), Math.log10(to)],
    };
  };

  // An axis ends at numbers of its own; one that follows the zoom of others does so as far as nothing is zoomed. Names have no ends.
  const ended = (own, side, axis_, px) => {
    const isLog = axis_.type === "log";
    if (own.some((one) => [...one[side]].some((value) => typeof value === "string"))) return {};
    const isLength = own.some((one) => one.type === "bar" && (one.orientation === "h" ? "x" : "y") === side);
    const known = own
      .flatMap((one) => {
        const { array = [], arrayminus = array } = one[`error_${side}`] ?? {};
        return [...one[side]].flatMap((value, i) =>
          Number.isFinite(value) ? [value, value + (array[i] ?? 0), value - (arrayminus[i] ?? 0)] : [],
        );
      })
      .filter((value) => !isLog || value > 0);
    if (!known.length) return {};
    // The least of some bars has a length.
    if (isLog) return logEnds(endsOf(isLength ? [...known, endsOf(known)[0] * 0.97] : known), axis_.ticksuffix ?? "");
    const most =
      axis_.nticks ?? Math.max(2, Math.min(side === "y" ? 6 : 12, Math.floor(px / (side === "y" ? 40 : 80))));
    const { low, high, steps } = roundEnds(isLength || axis_.rangemode === "tozero" ? [...known, 0] : known, most);
    const range = [low, high];
    // Plotly takes the next round step above what so many would have.
    return { nticks: steps + 1, ...(axis_.autorange ? { autorangeoptions: { include: range } } : { range }) };
  };

  const numbered = (node, traces, made) =>
    Object.fromEntries(
      Object.entries(made).map(([name, axis_]) => {
        const [, side, place] = /^([xy])axis(\d*)$/.exec(name) ?? [];
        if (!side || axis_.tickvals || axis_.range || !["linear", "log", undefined].includes(axis_.type))
          return [name, axis_];
        const own = traces.filter((one) => (one[`${side}axis`] ?? side) === `${side}${place}`);
        const [from, to] = axis_.domain ?? [0, 1];
        const px = (to - from) * (side === "y" ? (made.height ?? 320) : node.clientWidth);
        return [name, { ...axis_, ...ended(own, side, axis_, px) }];
      }),
    );

  // Groups of traces that the reader has put out of a picture, by its id: those of its legend.
  const put = new Map();
  const outOf = (id) => put.get(id) ?? new Set();

  // A legend whose entries can be pressed: `group` is the legendgroup of the traces of the pictures that an entry puts out and back;
  // one without is only read. At the `copies` the entries that have a group stand again.
  const legend = (id, pictures, entries, copies = []) => {
    const h = bedplate.element;
    const out = outOf(pictures[0]);
    for (const group of [...out]) if (!entries.some((one) => one.group === group)) out.delete(group);
    for (const picture of pictures) put.set(picture, out);
    const press = (group) => {
      if (!out.delete(group)) out.add(group);
      for (const place of [id, ...copies])
        for (const button of document.querySelectorAll(`#${place} > li > button`))
          if (button["dataset"].group === group) button.setAttribute("aria-pressed", String(!out.has(group)));
      for (const picture of pictures) {
        const traces = document.getElementById(picture)?.["data"] ?? [];
        const own = traces.flatMap((one, place) => (one.legendgroup === group ? [place] : []));
        if (own.length) Plotly.restyle(picture, { visible: !out.has(group) }, own);
      }
    };
    const made = (some) =>
      some.map(({ group = null, swatch, words }) =>
        h(
          "li",
          {},
          group === null
            ? [swatch, words]
            : h(
                "button",
                {
                  type: "button",
                  class: "legend",
                  "data-group": group,
                  "aria-pressed": String(!out.has(group)),
                  onclick: () => press(group),
                },
                swatch.cloneNode?.(true) ?? swatch,
                words,
              ),
        ),
      );
    document.getElementById(id).replaceChildren(...made(entries));
    for (const copy of copies)
      document.getElementById(copy)?.replaceChildren(...made(entries.filter(({ group = null }) => group !== null)));
  };

  const draw = (id, drawn, layout_) => {
    start();
    const out = outOf(id);
    const traces = drawn.map((one) => (out.has(one.legendgroup) ? { ...one, visible: false } : one));
    const node = document.getElementById(id);
    const made = numbered(node, traces, layout_);
    node.style.height = `${made.height ?? 320}px`;
    fitting.observe(node);
    return Plotly.react(node, traces, made, {
      displayModeBar: false,
      responsive: false,
      doubleClick: "reset",
    });
  };

  const clear = (id) => {
    const node = document.getElementById(id);
    window.Plotly?.purge(node);
    node.style.height = "auto";
  };

  // One stretch of time, shaded behind all lanes.
  const bands = (lanes, x0, x1, fill) =>
    lanes.map((lane) => ({
      type: "rect",
      xref: "x",
      yref: `y${lane} domain`,
      x0,
      x1,
      y0: 0,
      y1: 1,
      fillcolor: fill,
      line: { width: 0 },
      layer: "below",
    }));

  // Shades behind a course: warm-up grey, every other phase of a run of several, checkpoints orange.
  /** @param {(string | number)[]} lanes */
  const shades = (measurement, firstSecond, lanes = [""], phases = []) => {
    const m = bedplate.document.measurements;
    const made = [];
    const band = (x0, x1, fill) => made.push(...bands(lanes, x0, x1, fill));
    phases.forEach(([, start, end], place) => {
      if (place % 2 === 0) band(start, end, colour("--phase"));
    });
    if (firstSecond < 0) band(firstSecond, 0, colour("--warmup"));
    for (const [, start, end] of m.windows[measurement])
      band(start, end ?? m.duration_s[measurement] ?? start, colour("--checkpoint"));
    return made;
  };

  // One value has no range, not one of nothing.
  const scattered = (entry) =>
    Boolean(entry) && entry.mean !== null && entry.minimum !== null && entry.n + entry.censored > 1;

  // The line on each bar, from the least to the greatest; of repetitions some of which were stopped, the greatest is at least
  // the limit.
  const range = (entries) => ({
    type: "data",
    symmetric: false,
    color: colour("--ink"),
    thickness: 1,
    width: 2,
    array: entries.map((entry) => (scattered(entry) ? Math.max(entry.maximum, entry.limit ?? 0) - entry.mean : null)),
    arrayminus: entries.map((entry) => (scattered(entry) ? entry.mean - entry.minimum : null)),
  });

  // A summary as the text of a bar.
  const told = (entry, unit) => {
    const figure = (value) => bedplate.told(entry, value);
    const between = entry.n === 2 ? "and" : "to";
    const ends =
      entry.n > 1 && entry.minimum !== null ? `, ${figure(entry.minimum)} ${between} ${figure(entry.maximum)}` : "";
    return `${figure(entry.mean)}${unit}${ends}; ${entry.counted}`;
  };

  // Bars of several cells beside each other, over places that have names.
  const groups = ({ title, ticks, below = null, height, logarithmic }) =>
    layout({
      height,
      barmode: "group",
      bargap: 0.25,
      bargroupgap: 0.06,
      hovermode: "closest",
      margin: { l: 52, r: 12, t: 34, b: 46 },
      title: {
        text: plain(title),
        x: 0,
        xref: "paper",
        xanchor: "left",
        y: 0.98,
        font: { size: 12, color: colour("--ink") },
      },
      xaxis: axis({
        type: "category",
        tickmode: "array",
        tickvals: ticks,
        ticktext: ticks.map(plain),
        ...(below === null ? {} : { title: { text: plain(below), font: { size: 12 } } }),
        showgrid: false,
      }),
      yaxis: axis(logarithmic ? { type: "log" } : { rangemode: "tozero" }),
    });

  // A picture that is too narrow for a name before each of its lines has the names over them.
  const NARROW_PX = 440;
  const NARROW_LINE_PX = 40;
  const isNarrow = (id, below = NARROW_PX) => document.getElementById(id).clientWidth < below;
  const namesAbove = (names) =>
    names.map((text) => ({
      text,
      x: 0,
      xref: "paper",
      xanchor: "left",
      y: text,
      yshift: 14,
      showarrow: false,
      font: { size: 11, color: colour("--ink") },
    }));

  // The cells of such a picture, for its legend.
  const cellEntries = (cells) =>
    cells.map((cell, place) => ({
      group: String(cell),
      swatch: bedplate.element("span", { class: "swatch block", colour: `var(--series-${(place % 8) + 1})` }),
      words: `${bedplate.data.cellName(cell)} · ${bedplate.document.cells[cell].durability}`,
    }));

  return {
    NARROW_LINE_PX,
    axis,
    bands,
    cellEntries,
    clear,
    colour,
    draw,
    groups,
    isNarrow,
    layout,
    legend,
    logEnds,
    namesAbove,
    plain,
    range,
    roundEnds,
    series,
    shades,
    told,
    written,
  };
})();
