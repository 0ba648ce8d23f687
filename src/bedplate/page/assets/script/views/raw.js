"use strict";
// Tools that move bytes: throughput, and beside it what it took of the processor, in the chosen cells.

(() => {
  const { told, charts } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const PLOTS = [
    ["raw-throughput", "throughput_mib_per_s"],
    ["raw-cpu", "cpu_s_per_gib"],
  ];
  const MORE = [
    "operations_per_s",
    "latency_ms_p99",
    "latency_ms_max",
    "machine_cpu_s_per_gib",
    "device_read_mib",
    "device_written_mib",
  ];
  const choice = { logarithmic: false };

  bedplate.choice.own("raw.logarithmic");

  // The stages of a run, in the order in which they ran.
  const stagesOf = (run) =>
    page.parts
      .map(([name, group], part) => ({ name, group, run, part }))
      .filter(({ group, part }) => part > 0 && group === "phases");
  const isRaw = (run) => Boolean(page.runs[run]?.moves);
  const hasStages = (run) => page.runs[run].moves.stages.length > 0;

  // A dataset without levels has no other words than the type of its workload.
  const jobsOn = ({ kind, moves, dataset_words: words }) =>
    `The jobs of ${moves.tool}${words === kind ? "" : ` on ${words}`}`;
  // The places on the axis: stages of one run, or all jobs of a tool on one dataset.
  const places = (run) => {
    const { dataset, kind, moves } = page.runs[run];
    if (hasStages(run)) return stagesOf(run).filter(({ name }) => moves.stages.includes(name));
    return page.runs
      .map((one, index) => ({ name: one.run, run: index, part: 0, one }))
      .filter(({ one }) => one.dataset === dataset && one.kind === kind);
  };

  const entryOf = (cell, place, metric) =>
    bedplate.data.summary(cell, place.run, bedplate.data.metricOf.get(metric), place.part);

  const words = (entry, metric) => {
    if (!entry || entry.mean === null) return entry?.reason ? `none: ${entry.reason}` : "none";
    return charts.told(entry, bedplate.unit(metric));
  };

  const bars = (cell, place, shown, metric) => {
    const entries = shown.map((one) => entryOf(cell, one, metric.name));
    return {
      type: "bar",
      name: charts.plain(bedplate.data.cellName(cell)),
      offsetgroup: String(place),
      legendgroup: String(cell),
      x: shown.map(({ name }) => name),
      y: entries.map((entry) => entry?.mean ?? null),
      text: entries.map((entry) => bedplate.data.doubtMark(entry)),
      textposition: "outside",
      cliponaxis: false,
      constraintext: "none",
      marker: { color: charts.series(place) },
      error_y: charts.range(entries),
      customdata: entries.map((entry, i) =>
        charts.plain(`${shown[i].name} · ${bedplate.data.cellName(cell)}: ${words(entry, metric)}`),
      ),
      hovertemplate: "%{customdata}<extra></extra>",
    };
  };

  /** @param {string[]} of */
  const plot = ([id, name], cells, shown) => {
    const metric = page.metrics[bedplate.data.metricOf.get(name)];
    if (!metric) {
      charts.clear(id);
      return;
    }
    charts.draw(
      id,
      cells.map((cell, place) => bars(cell, place, shown, metric)),
      charts.groups({
        height: 340,
        title: `${metric.name}, ${metric.unit}`,
        ticks: shown.map((one) => one.name),
        logarithmic: choice.logarithmic,
      }),
    );
  };

  const table = (cells, run, shown) => {
    const names = [...PLOTS.map(([, name]) => name), ...MORE].filter((name) => bedplate.data.metricOf.has(name));
    // Seeks and small files have no bytes, and so no bar.
    const rows = hasStages(run) ? stagesOf(run) : shown;
    const heads = names.map((name) => {
      const { unit } = page.metrics[bedplate.data.metricOf.get(name)];
      return `${name}, ${unit}#`;
    });
    const having = rows.filter((one) => cells.some((cell) => names.some((name) => entryOf(cell, one, name))));
    return bedplate.table(
      ["", "Cell", bedplate.words.capital(bedplate.words.after_power_cut), ...heads, "n"],
      having.flatMap((one) =>
        cells.map((cell) => [
          one.name,
          bedplate.data.cellName(cell),
          page.cells[cell].durability,
          ...names.map((name) => {
            const entry = entryOf(cell, one, name);
            return `${told(entry)}${bedplate.data.doubtMark(entry, " ")}`;
          }),
          names.map((name) => entryOf(cell, one, name)).find((entry) => entry)?.counted ?? "n = 0",
        ]),
      ),
    );
  };

  const draw = (state) => {
    choice.logarithmic = state["raw.logarithmic"] === "yes";
    byId("raw-logarithmic").checked = choice.logarithmic;
    const run = isRaw(state.run) ? state.run : page.runs.findIndex((_, index) => isRaw(index));
    const shown = places(run);
    const sizes = (cell) =>
      shown.map((one) =>
        Math.max(
          0,
          ...PLOTS.map(([, name]) => (bedplate.data.metricOf.has(name) ? (entryOf(cell, one, name)?.n ?? 0) : 0)),
        ),
      );
    // The cells chosen for the courses of another run may have none of this one.
    const away =
      state.courses.length > 0 &&
      !state.courses.some((cell) => shown.some((one) => bedplate.data.measurements(cell, one.run).length));
    const cells = away ? bedplate.choice.usual(run) : state.courses;
    const defined = PLOTS.map(([, name]) => page.metrics[bedplate.data.metricOf.get(name)]).filter((metric) => metric);
    byId("raw-note").textContent =
      `${hasStages(run) ? bedplate.data.runName(run) : jobsOn(page.runs[run])}, geometric means over the repetitions.` +
      bedplate.sampleSize(cells.flatMap(sizes), "bar") +
      (run === state.run ? "" : ` ${bedplate.data.runName(state.run)} is no sequential I/O.`) +
      (away ? " None of the cells chosen under Courses has such a run: its leader and its runner-up are shown." : "") +
      (cells.length ? "" : " No cell is chosen.") +
      defined.map((metric) => ` ${metric.name}: ${metric.definition}.`).join("");
    charts.legend("raw-legend", ["raw-throughput", "raw-cpu"], charts.cellEntries(cells));
    PLOTS.forEach((one) => plot(one, cells, shown));
    bedplate.lazyTable("raw-table", () => table(cells, run, shown));
  };

  if (byId("raw"))
    byId("raw-logarithmic").addEventListener("change", (event) =>
      bedplate.choice.change({ "raw.logarithmic": event.target.checked ? "yes" : null }),
    );

  bedplate.view({ name: "raw", keys: ["run", "courses", "shown", "raw.logarithmic"], place: "raw", draw });
})();
