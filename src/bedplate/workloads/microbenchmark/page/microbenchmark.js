"use strict";
// The microbenchmark: one test at a time, a bar for each cell, and what its commits promise beside every speed.

(() => {
  const { element: h, told, charts } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const MORE = [
    "test_us_per_operation",
    "test_cpu_us_per_operation",
    "test_latency_us_p99",
    "test_flushes_per_commit",
    "test_busy_share",
    "test_space_mib",
    "device_read_mib",
    "device_written_mib",
    "device_flushes",
  ];
  // A colour for each class; the words stand at the bar too.
  const COLOURS = {
    durable: "--good",
    bounded: "--warn",
    unsafe: "--bad",
    unknown: "--series-8",
    reads: "--series-1",
  };
  const choice = { run: null, test: null, metric: null, logarithmic: false };

  for (const name of ["microbenchmark.test", "microbenchmark.metric", "microbenchmark.logarithmic"])
    bedplate.choice.own(name);

  const runs = new Map(page.microbenchmark ? page.microbenchmark.runs : []);
  const partOf = (test) =>
    page.parts.findIndex(
      ([label, group], index) => index > 0 && label === test && group.startsWith(page.microbenchmark.phase),
    );
  const promise = (cell) => page.microbenchmark.promises[choice.test][cell];
  const entryOf = (cell, name) =>
    bedplate.data.summary(cell, choice.run, bedplate.data.metricOf.get(name), partOf(choice.test));
  // A name for a place on the axis: a bare number would be taken for its order there.
  const place = (cell) => `cell ${cell}`;
  const option = (value, text, selected) => h("option", { value, selected }, text);

  // Every metric that some run has of the test.
  const metrics = () => {
    const part = partOf(choice.test);
    return bedplate.data
      .offered(choice.run)
      .filter((metric) => bedplate.data.parts(choice.run, metric).includes(part))
      .map((metric) => page.metrics[metric].name);
  };

  const offer = () => {
    const tests = runs.get(choice.run);
    if (!tests.includes(choice.test)) [choice.test] = tests;
    const names = metrics();
    if (!names.includes(choice.metric))
      choice.metric = names.includes("test_operations_per_s")
        ? "test_operations_per_s"
        : (names[0] ?? "test_operations_per_s");
    byId("microbenchmark-run").replaceChildren(
      ...[...runs.keys()].map((run) => option(run, bedplate.data.runName(run), run === choice.run)),
    );
    byId("microbenchmark-test").replaceChildren(...tests.map((test) => option(test, test, test === choice.test)));
    byId("microbenchmark-metric").replaceChildren(...names.map((name) => option(name, name, name === choice.metric)));
  };

  // The cells in which the run is due, the best first; those without a figure last.
  const cellsOf = (metric) => {
    const due = bedplate.choice.shown().filter((cell) => bedplate.data.measurements(cell, choice.run).length);
    const mean = (cell) => entryOf(cell, metric.name)?.mean ?? null;
    const sign = metric.better === "lower" ? 1 : -1;
    return due.sort((one, other) => {
      const [a, b] = [mean(one), mean(other)];
      if (a === null || b === null) return Number(a === null) - Number(b === null);
      return sign * (a - b);
    });
  };

  const words = (entry, metric) => {
    if (!entry || entry.mean === null) return `no value${entry?.reason ? `: ${entry.reason}` : ""}`;
    return charts.told(entry, bedplate.unit(metric));
  };

  const bars = (cells, metric) => {
    const entries = cells.map((cell) => entryOf(cell, metric.name));
    return {
      type: "bar",
      orientation: "h",
      y: cells.map(place),
      x: entries.map((entry) => (choice.logarithmic && !(entry?.mean > 0) ? null : (entry?.mean ?? 0))),
      marker: {
        color: cells.map((cell) => charts.colour(COLOURS[promise(cell).split(" ")[0]] ?? "--series-8")),
      },
      error_x: charts.range(entries),
      customdata: cells.map((cell, i) =>
        charts.plain(
          `${bedplate.data.cellName(cell)}: ${words(entries[i], metric)}; ${bedplate.words.after_power_cut}: ${promise(cell)}`,
        ),
      ),
      hovertemplate: "%{customdata}<extra></extra>",
    };
  };

  // Names, figures and classes would leave no room for a bar: they stand above it then.
  const NARROW_PX = 620;
  const isNarrow = () => byId("microbenchmark-plot").parentElement.clientWidth < NARROW_PX;

  // Without the last part where all have the same: a phone has no room for it.
  const distinct = (names) => {
    const ends = names.map((name) => name.lastIndexOf(" · "));
    const isShared = ends.every((end, at) => end > 0 && names[at].slice(end) === names[0].slice(ends[0]));
    return names.length > 1 && isShared ? names.map((name, at) => name.slice(0, ends[at])) : names;
  };

  // Figure and class stand in a column of their own, where no bar and no line crosses them.
  const beside = (cells, metric, narrow) => {
    // That a figure is emulated must fit, whatever the name is.
    const parts = cells.map((cell) => /^(.*?)( · emulated)?$/.exec(bedplate.data.cellName(cell)));
    const short = distinct(parts.map(([, name]) => name));
    return cells.flatMap((cell, at) => {
      const entry = entryOf(cell, metric.name);
      const value = !entry || entry.mean === null ? "no value" : `${told(entry)}${bedplate.data.doubtMark(entry, " ")}`;
      const words = (text, at) => ({
        xref: "paper",
        xanchor: "left",
        y: place(cell),
        yref: "y",
        showarrow: false,
        align: "left",
        text: charts.plain(text),
        font: { size: 11, color: charts.colour("--ink") },
        ...at,
      });
      if (!narrow) return [words(`${value} · ${promise(cell)}`, { x: 1.01 })];
      return [
        words(short[at], { x: 0, yshift: 28, font: { size: 10, color: charts.colour("--ink") } }),
        words(`${value} · ${promise(cell)}${parts[at][2] ?? ""}`, { x: 0, yshift: 14 }),
      ];
    });
  };

  const table = (cells) => {
    const names = ["test_operations_per_s", ...MORE].filter((name) => bedplate.data.metricOf.has(name));
    return bedplate.table(
      [
        "Cell",
        bedplate.words.capital(bedplate.words.after_power_cut),
        ...names.map((name) => `${name}${bedplate.unit(page.metrics[bedplate.data.metricOf.get(name)])}#`),
        "n",
      ],
      cells.map((cell) => {
        const speed = entryOf(cell, names[0]);
        return [
          bedplate.data.cellName(cell),
          promise(cell),
          ...names.map((name) => told(entryOf(cell, name))),
          speed ? speed.counted : "n = 0",
        ];
      }),
    );
  };

  const plot = (cells, metric) => {
    if (!cells.length) {
      charts.clear("microbenchmark-plot");
      return;
    }
    const unit = bedplate.unit(metric);
    const narrow = isNarrow();
    byId("microbenchmark-plot").classList.toggle("broad", !narrow);
    charts.draw(
      "microbenchmark-plot",
      [bars(cells, metric)],
      charts.layout({
        height: 90 + (narrow ? 58 : 34) * cells.length,
        bargap: narrow ? 0.76 : 0.35,
        hovermode: "closest",
        margin: narrow ? { l: 4, r: 12, t: 44, b: 34 } : { l: 12, r: 210, t: 34, b: 34 },
        annotations: beside(cells, metric, narrow),
        title: {
          text: charts.plain(`${choice.test}: ${metric.name}${unit ? `,${unit}` : ""}`),
          x: 0,
          xref: "paper",
          xanchor: "left",
          y: 0.99,
          yanchor: "top",
          font: { size: 12, color: charts.colour("--ink") },
        },
        yaxis: charts.axis({
          type: "category",
          autorange: "reversed",
          tickmode: "array",
          tickvals: cells.map(place),
          ticktext: cells.map((cell) => charts.plain(bedplate.data.cellName(cell))),
          showgrid: false,
          showticklabels: !narrow,
        }),
        xaxis: charts.axis(choice.logarithmic ? { type: "log" } : { rangemode: "tozero" }),
      }),
    );
  };

  const draw = (state) => {
    // The run of the whole page, where it is one of its.
    choice.run = runs.has(state.run) ? state.run : [...runs.keys()][0];
    choice.test = state["microbenchmark.test"];
    choice.metric = state["microbenchmark.metric"] ?? "test_operations_per_s";
    choice.logarithmic = state["microbenchmark.logarithmic"] === "yes";
    byId("microbenchmark-logarithmic").checked = choice.logarithmic;
    offer();
    const metric = page.metrics[bedplate.data.metricOf.get(choice.metric)];
    if (!metric) {
      byId("microbenchmark-note").textContent =
        `${bedplate.data.runName(choice.run)}, ${choice.test}: nothing was measured.`;
      charts.clear("microbenchmark-plot");
      bedplate.lazyTable("microbenchmark-table", () => h("p", {}, "Nothing to list."));
      return;
    }
    const cells = cellsOf(metric);
    const direction = metric.better === "neither" ? "in no order of merit" : "best first";
    const sizes = cells.map((cell) => entryOf(cell, metric.name)?.n ?? 0);
    byId("microbenchmark-note").textContent =
      `${metric.name}: ${metric.definition}. ${bedplate.data.runName(choice.run)}, ` +
      `${bedplate.centre(metric)}s over the repetitions, ${direction}.${bedplate.sampleSize(sizes, "bar")}` +
      `${page.microbenchmark.promises[choice.test].every((one) => one === bedplate.words.only_reads) ? " The test only reads." : ""}`;
    plot(cells, metric);
    bedplate.lazyTable("microbenchmark-table", () => table(cells));
  };

  if (byId("microbenchmark")) {
    // The run of the whole page is one and the same wherever it can be.
    byId("microbenchmark-run").addEventListener("change", (event) =>
      bedplate.choice.change({ run: Number(event.target.value) }),
    );
    // Names move above their bars where the window gets narrow, and back.
    let wasNarrow = isNarrow();
    new ResizeObserver(() => {
      if (isNarrow() === wasNarrow) return;
      wasNarrow = !wasNarrow;
      if (choice.run !== null) draw(bedplate.choice.state);
    }).observe(byId("microbenchmark-plot").parentElement);
    for (const name of ["test", "metric"])
      byId(`microbenchmark-${name}`).addEventListener("change", (event) =>
        bedplate.choice.change({ [`microbenchmark.${name}`]: event.target.value }),
      );
    byId("microbenchmark-logarithmic").addEventListener("change", (event) =>
      bedplate.choice.change({ "microbenchmark.logarithmic": event.target.checked ? "yes" : null }),
    );
  }

  bedplate.view({
    name: "microbenchmark",
    keys: ["run", "shown", "microbenchmark.test", "microbenchmark.metric", "microbenchmark.logarithmic"],
    place: "microbenchmark",
    draw,
  });
})();
