"use strict";
// Courses of any number of runs over one time axis: a line for each of a few, a band for each variant of many.

bedplate.courses = (() => {
  const { element: h, number, charts, choice } = bedplate;
  const page = bedplate.document;
  const m = page.measurements;
  const byId = (id) => document.getElementById(id);
  // More lines than these cannot be told from each other.
  const MOST_LINES = 12;
  const MOST_CELLS = 8;
  // So many at a time, that the page goes on answering meanwhile.
  const UNPACKED_AT_ONCE = 60;
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const SECONDS_FEW = 8;
  // `inner` bounds the band of a lane from below; of many runs the lane's own column is drawn.
  const LANES = [
    { title: "tps", column: "tps", weight: 3 },
    {
      title: "latency, ms: median, and the band up to p99",
      many: "latency p99, ms",
      column: "latency_ms_p99",
      inner: "latency_ms_p50",
      weight: 2.2,
    },
    { title: "requests in the device queue", column: "queue_depth", weight: 1.4 },
    { title: "dirty pages, MiB", column: "dirty_mib", weight: 1.4 },
    { title: "waiting for I/O (PSI io some), share of time", column: "pressure_io_some", weight: 1.4 },
    { title: "written to the device, MiB/s", column: "device_written_mib_per_s", weight: 1.4 },
    { title: "read from the device, MiB/s", column: "device_read_mib_per_s", weight: 1.4 },
  ];
  const TABLED = [
    "tps",
    "latency_ms_p50",
    "latency_ms_p95",
    "latency_ms_p99",
    "latency_ms_max",
    "device_written_mib_per_s",
    "device_read_mib_per_s",
    "queue_depth",
    "dirty_mib",
    "pressure_io_some",
  ];

  choice.own("courses.of", { usual: "chosen", values: () => ["chosen", "all"] });
  choice.own("courses.repetitions", { usual: "one", values: () => ["one", "all"] });

  // The run of a cell to show: the repetition that was asked for, else the first one with a course.
  const pick = (cell, state) => {
    const due = bedplate.data.measurements(cell, state.run).filter((i) => m.course[i]);
    return due.find((i) => m.repetition[i] === state.repetition) ?? due[0];
  };

  const cellsOf = (state) => (state["courses.of"] === "all" ? choice.shown() : state.courses);

  // Runs with their cell and its place among the chosen ones, which is its colour.
  const chosen = (state) =>
    cellsOf(state).flatMap((cell, place) => {
      const runs =
        state["courses.repetitions"] === "all"
          ? bedplate.data.measurements(cell, state.run).filter((i) => m.course[i])
          : [pick(cell, state)];
      return runs.filter((run) => run !== undefined).map((run, turn) => ({ cell, place, run, turn }));
    });

  // Runs by variant, where they are too many to be drawn one by one.
  const variants = (picked) => {
    const groups = new Map();
    for (const one of picked) {
      const name = bedplate.data.panelName(page.cells[one.cell]);
      if (!groups.has(name)) groups.set(name, { name, place: groups.size, members: [] });
      groups.get(name).members.push(one);
    }
    return [...groups.values()];
  };
  const isMany = (picked) => picked.length > MOST_LINES;

  const label = (one) => {
    const doubt = m.outcome[one.run] === "completed" ? bedplate.words.doubts[m.validity[one.run]] : null;
    return `${bedplate.data.cellName(one.cell)} · repetition ${m.repetition[one.run]}${doubt ? `, ${doubt}` : ""}`;
  };
  // Of its lines in all lanes: they are put out together.
  const groupOf = (one) => `cell ${one.cell}`;
  const line = (place, more = {}) => ({
    color: charts.series(place),
    width: 1.5,
    dash: DASHES[Math.floor(place / 8) % DASHES.length],
    ...more,
  });
  const swatch = (place) =>
    h("span", { class: `swatch${place >= 8 ? " dashed" : ""}`, colour: `var(--series-${(place % 8) + 1})` });

  const legend = (state, picked) => {
    const shades = [
      page.runs[state.run]?.kind ? ["phase", "every other phase"] : ["warmup", "warm-up"],
      ["checkpoint", isMany(picked) ? null : "checkpoint"],
    ];
    const entries = isMany(picked)
      ? variants(picked).map((group) => [group.place, `${group.name} (${group.members.length} runs)`, group.name])
      : cellsOf(state).flatMap((cell, place) => {
          const runs = picked.filter((one) => one.cell === cell);
          if (runs.length)
            return [
              [
                place,
                runs.length > 1 ? `${bedplate.data.cellName(cell)} · ${runs.length} repetitions` : label(runs[0]),
                groupOf(runs[0]),
              ],
            ];
          const due = bedplate.data.measurements(cell, state.run);
          return [
            [
              place,
              `${bedplate.data.cellName(cell)}: no course (${(due.length && m.reasons[due[0]].join("; ")) || "none was recorded"})`,
              null,
            ],
          ];
        });
    // Cells without a course are told of where they were chosen one by one.
    const told = state["courses.of"] === "all" && !isMany(picked) ? entries.filter(([, , group]) => group) : entries;
    charts.legend(
      "chosen",
      ["courses-plot", "distribution-plot"],
      [
        ...told.map(([place, words, group]) => ({ group, swatch: swatch(place), words })),
        ...shades
          .filter(([, words]) => words)
          .map(([name, words]) => ({ swatch: h("span", { class: `swatch block ${name}` }), words })),
      ],
      ["distribution-legend"],
    );
  };

  // A query is known by its number where there is no room for more.
  const short = (phase) => phase.replace(/^query /, "");

  // The names of phases, where they fit into their shades.
  const phaseNames = (course, courses) => {
    const wide = byId("courses-plot").clientWidth - 80;
    const seconds =
      Math.max(...courses.map((one) => one.second[one.second.length - 1])) -
      Math.min(...courses.map((one) => one.second[0])) +
      1;
    const across = (start, end) => ((end - start) / seconds) * wide;
    return course.phases
      .filter(([name, start, end]) => across(start, end) > 4 + 6.5 * short(name).length)
      .map(([name, start, end]) => ({
        text: charts.plain(short(name)),
        x: (start + end) / 2,
        y: 1,
        xref: "x",
        yref: "y domain",
        xanchor: "center",
        yanchor: "top",
        showarrow: false,
        font: { size: 11, color: charts.colour("--muted") },
      }));
  };

  const phasesBySecond = ({ phases }) =>
    phases &&
    new Map(phases.flatMap(([name, start, end]) => Array.from({ length: end - start }, (_, i) => [start + i, name])));

  const fill = (colour) => {
    const [r, g, b] = /^#(..)(..)(..)$/
      .exec(colour)
      ?.slice(1)
      .map((hex) => parseInt(hex, 16)) ?? [128, 128, 128];
    return `rgba(${r},${g},${b},0.16)`;
  };

  // The lines of one run in one lane; a band is a line without a width that is filled down to another.
  const lines = (one, course, lane, yaxis) => {
    if (!course[lane.column]) return [];
    const named = phasesBySecond(course);
    // As text for the reader who points at a second.
    const phases = named && course.second.map((second) => charts.plain(named.get(second) ?? "between phases"));
    const thin = one.turn ? { width: 1 } : {};
    // A line of a few seconds is hardly seen, and one of a single second not at all.
    const few = course.second.length <= SECONDS_FEW;
    const shared = {
      x: course.second,
      yaxis,
      mode: few ? "lines+markers" : "lines",
      marker: { size: 7, color: charts.series(one.place) },
      connectgaps: false,
      name: charts.plain(label(one)),
      legendgroup: groupOf(one),
      opacity: one.turn ? 0.6 : 1,
      ...(phases ? { customdata: phases } : {}),
    };
    const words = `${charts.plain(page.cells[one.cell].panel)}${phases ? " · %{customdata}" : ""}<extra></extra>`;
    const inner = lane.inner && course[lane.inner];
    return [
      ...(inner
        ? [{ ...shared, y: inner, line: line(one.place, thin), hovertemplate: `median %{y:.4~g} ${words}` }]
        : []),
      {
        ...shared,
        y: course[lane.column],
        line: inner ? line(one.place, { width: 0.6 }) : line(one.place, thin),
        ...(inner ? { fill: "tonexty", fillcolor: fill(charts.series(one.place)) } : {}),
        hovertemplate: `${inner ? "p99 " : ""}%{y:.4~g} ${words}`,
      },
    ];
  };

  const bands = (group, lane, yaxis) => {
    const found = bedplate.spread.bySecond(group.courses, lane.column);
    if (!found.second.length) return [];
    const shared = {
      x: found.second,
      yaxis,
      mode: "lines",
      connectgaps: false,
      name: charts.plain(group.name),
      legendgroup: group.name,
    };
    const edge = { line: { width: 0, color: charts.series(group.place) }, hoverinfo: "skip" };
    return [
      { ...shared, ...edge, y: found.low },
      { ...shared, ...edge, y: found.high, fill: "tonexty", fillcolor: fill(charts.series(group.place)) },
      {
        ...shared,
        y: found.median,
        line: line(group.place),
        customdata: found.low.map((low, i) => `${number(low)} to ${number(found.high[i])}, n = ${found.n[i]}`),
        hovertemplate: `%{y:.4~g} (%{customdata}) ${charts.plain(group.name)}<extra></extra>`,
      },
    ];
  };

  // Checkpoints of several runs: a bar for each along the foot of the first lane, in the colour of its line.
  const checkpointBars = (picked) =>
    picked.flatMap((one, row) =>
      m.windows[one.run].map(([, start, end]) => ({
        type: "rect",
        xref: "x",
        yref: "y domain",
        x0: start,
        x1: end ?? m.duration_s[one.run] ?? start,
        y0: 0.022 * row,
        y1: 0.022 * row + 0.016,
        fillcolor: charts.series(one.place),
        line: { width: 0 },
        layer: "above",
      })),
    );

  // All lanes above one another on one time axis.
  const drawLanes = (lanes, traces, courses, shapes) => {
    const total = lanes.reduce((sum, lane) => sum + lane.weight, 0);
    const height = 120 + total * 62;
    const gap = 34 / height;
    const zero = courses.some((course) => course.phases) ? "first phase" : "measured window";
    const made = {
      height,
      shapes,
      annotations: [],
      xaxis: charts.axis({
        automargin: false,
        anchor: "free",
        position: 0,
        ...bedplate.span.range(),
        title: { text: `seconds since the start of the ${zero}`, font: { size: 12 } },
      }),
    };
    let top = 1 - 20 / height;
    const usable = top - gap * (lanes.length - 1);
    lanes.forEach((lane, index) => {
      const bottom = top - (usable * lane.weight) / total;
      made[index ? `yaxis${index + 1}` : "yaxis"] = charts.axis({
        automargin: false,
        domain: [Math.max(bottom, 0), top],
        rangemode: "tozero",
        nticks: lane.weight > 2 ? 6 : 4,
      });
      made.annotations.push({
        text: lane.title,
        xref: "paper",
        yref: "paper",
        x: 0,
        y: top,
        xanchor: "left",
        yanchor: "bottom",
        showarrow: false,
        font: { size: 12, color: charts.colour("--ink") },
      });
      top = bottom - gap;
    });
    if (courses.length && courses[0].phases && shapes.length) made.annotations.push(...phaseNames(courses[0], courses));
    charts.draw("courses-plot", traces, charts.layout({ ...made, margin: { l: 62, r: 12, t: 4, b: 44 } }));
    bedplate.span.link("courses-plot");
  };

  const drawCourses = (picked, courses) => {
    const many = isMany(picked);
    const known = LANES.filter((lane) => courses.some((course) => course[lane.column])).map((lane) => ({
      ...lane,
      title: (many && lane.many) || lane.title,
    }));
    // Without transactions the first lane is what the device does, and reading comes first.
    const reads = known
      .filter((lane) => lane.column === "device_read_mib_per_s")
      .map((lane) => ({ ...lane, weight: 2.4 }));
    const lanes =
      known[0]?.column === "tps"
        ? known
        : [...reads, ...known.filter((lane) => lane.column !== "device_read_mib_per_s")];
    const axes = lanes.map((_, index) => (index ? `y${index + 1}` : "y"));
    const numbers = lanes.map((_, index) => (index ? index + 1 : ""));
    if (many) {
      const groups = variants(picked.map((one, place) => ({ ...one, course: courses[place] }))).map((group) => ({
        ...group,
        courses: group.members.map((one) => one.course),
      }));
      const traces = lanes.flatMap((lane, index) => groups.flatMap((group) => bands(group, lane, axes[index])));
      const first = Math.min(...courses.filter((course) => !course.phases).map((course) => course.second[0] ?? 0), 0);
      const shapes = first < 0 ? charts.bands(numbers, first, 0, charts.colour("--warmup")) : [];
      drawLanes(lanes, traces, [], shapes);
      return;
    }
    const traces = lanes.flatMap((lane, index) =>
      picked.flatMap((one, place) => lines(one, courses[place], lane, axes[index])),
    );
    const shapes = [
      ...charts.shades(picked[0].run, courses[0].second[0], numbers, courses[0].phases),
      ...(picked.length > 1 ? checkpointBars(picked) : []),
    ];
    drawLanes(lanes, traces, courses, shapes);
  };

  const coursesTable = (picked, courses) => {
    const columns = TABLED.filter((name) => courses.some((course) => course[name]));
    if (isMany(picked)) {
      const groups = variants(picked.map((one, place) => ({ ...one, course: courses[place] })));
      return bedplate.table(
        ["Variant", "Runs#", "Second#", ...columns.map((name) => `${name}, median#`)],
        groups.flatMap((group) => {
          const members = group.members.map((one) => one.course);
          const found = columns.map((name) => bedplate.spread.bySecond(members, name));
          const values = found.map(({ second, median }) => new Map(second.map((one, i) => [one, median[i]])));
          const seconds = [...new Set(found.flatMap(({ second }) => second))].sort((a, b) => a - b);
          return seconds.map((second) => () => [
            group.name,
            String(group.members.length),
            String(second),
            ...values.map((value) => number(value.get(second))),
          ]);
        }),
      );
    }
    const named = courses.map(phasesBySecond);
    const phase = (place, second) =>
      named[place] ? (named[place].get(second) ?? "–") : second < 0 ? "warm-up" : "measure";
    const several = new Set(picked.map((one) => one.cell)).size < picked.length;
    const rows = picked.flatMap((one, place) =>
      courses[place].second.map((second, i) => () => [
        several ? label(one) : bedplate.data.cellName(one.cell),
        phase(place, second),
        String(second),
        ...columns.map((name) => number(courses[place][name]?.[i])),
      ]),
    );
    return bedplate.table(["Cell", "Phase", "Second#", ...columns.map((name) => `${name}#`)], rows);
  };

  // Told where it is coarser than what a figure shows.
  const precision =
    m.steps < 1000
      ? ` To keep this page small, a second is given to 1/${m.steps} of the range of its course; the study has it exactly.`
      : "";

  const words = (state, picked) => {
    const of = state["courses.of"] === "all" ? " of the shown cells" : "";
    const n = `${bedplate.data.runName(state.run)}, n = ${picked.length} run${picked.length > 1 ? "s" : ""}${of}`;
    if (isMany(picked))
      return `${n}: lines are the medians of the runs of a variant in each second, bands reach from the least to the greatest.${precision}`;
    if (picked.length === 1) return `${n}.${precision}`;
    const bars = picked.some((one) => m.windows[one.run].length)
      ? "; the bars at the foot of the first lane are the checkpoints of each"
      : "";
    return `${n}; the shades belong to the first${bars}.${precision}`;
  };

  const unpacked = async (picked, isCurrent) => {
    const courses = [];
    for (let done = 0; done < picked.length && isCurrent(); done += UNPACKED_AT_ONCE) {
      if (done) {
        byId("courses-note").textContent = `Reading ${done} of ${picked.length} courses…`;
        await new Promise((resolve) => {
          setTimeout(resolve);
        });
      }
      courses.push(
        ...(await Promise.all(
          picked.slice(done, done + UNPACKED_AT_ONCE).map((one) => bedplate.packedData.course(one.run)),
        )),
      );
    }
    return courses;
  };

  const draw = async (state, isCurrent) => {
    const picked = chosen(state);
    legend(state, picked);
    if (!picked.length) {
      byId("courses-note").textContent =
        `None of the ${state["courses.of"] === "all" ? "shown" : "chosen"} cells has a course for this run.`;
      bedplate.span.unlink("courses-plot");
      charts.clear("courses-plot");
      bedplate.lazyTable("courses-table", () => h("p", {}, "No course."));
      return;
    }
    const courses = await unpacked(picked, isCurrent);
    if (!isCurrent()) return;
    byId("courses-note").textContent = words(state, picked);
    drawCourses(picked, courses);
    bedplate.lazyTable("courses-table", () => coursesTable(picked, courses));
  };

  let listed = null;

  // Hundreds of boxes, made when they are unfolded. They stay the same elements under the pointer while the same cells are shown.
  const drawBoxes = (state) => {
    const shown = bedplate.choice.shown();
    if (listed !== shown)
      byId("cell-list").replaceChildren(
        h("legend", { class: "note" }, "Up to eight"),
        ...shown.map((cell) =>
          h(
            "label",
            {},
            h("input", {
              type: "checkbox",
              value: cell,
              onchange: (event) =>
                bedplate.choice.change({
                  courses: event.target.checked
                    ? [...bedplate.choice.state.courses, cell]
                    : bedplate.choice.state.courses.filter((one) => one !== cell),
                }),
            }),
            h("span", {}, bedplate.data.cellName(cell)),
          ),
        ),
      );
    listed = shown;
    for (const box of byId("cell-list").querySelectorAll("input")) {
      box.checked = state.courses.includes(Number(box.value));
      box.disabled = !box.checked && state.courses.length >= MOST_CELLS;
    }
  };
  byId("cell-choice")?.addEventListener("toggle", () => {
    if (byId("cell-choice").open) drawBoxes(bedplate.choice.state);
  });

  // Which cells, which repetition, and the one that is looked at alone.
  const drawChoice = (state) => {
    const shown = bedplate.choice.shown();
    byId("cell-choice").querySelector("summary").textContent =
      `Choose cells (${state.courses.length} of ${shown.length})`;
    if (byId("cell-choice").open) drawBoxes(state);
    const repetitions = [...new Set(m.repetition.filter((_, i) => !m.canary[i]))].sort((a, b) => a - b);
    const option = (value, text, selected) => h("option", { value, selected }, text);
    const all = state["courses.repetitions"] === "all";
    byId("choose-repetition").replaceChildren(
      ...repetitions.map((n) => option(n, String(n), !all && n === state.repetition)),
      ...(repetitions.length > 1 ? [option("all", "all", all)] : []),
    );
    byId("choose-courses").value = state["courses.of"];
    byId("choose-focus")?.replaceChildren(
      ...state.courses.map((cell) => option(cell, bedplate.data.cellName(cell), cell === state.focus)),
    );
  };

  byId("choose-repetition")?.addEventListener("change", ({ target }) =>
    choice.change(
      target.value === "all"
        ? { "courses.repetitions": "all" }
        : { "courses.repetitions": null, repetition: Number(target.value) },
    ),
  );
  byId("choose-courses")?.addEventListener("change", ({ target }) =>
    choice.change({ "courses.of": target.value === "all" ? "all" : null }),
  );
  byId("choose-focus")?.addEventListener("change", (event) =>
    bedplate.choice.change({ focus: Number(event.target.value) }),
  );
  bedplate.view({
    name: "courses choice",
    keys: ["courses", "shown", "repetition", "focus", "courses.of", "courses.repetitions"],
    place: "cell-list",
    draw: drawChoice,
  });
  const KEYS = ["run", "courses", "repetition", "courses.of", "courses.repetitions", "shown"];
  bedplate.view({ name: "courses", keys: KEYS, place: "courses-plot", draw });

  return { KEYS, MOST_LINES, chosen, groupOf, isMany, label, line, pick, variants };
})();
