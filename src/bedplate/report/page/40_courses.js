"use strict";
// Courses of the chosen runs, one time axis for all; latency over time and its distribution.

bedplate.courses = (() => {
  const { element: h, number, charts } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const LANES = [
    { title: "tps", columns: ["tps"], weight: 3 },
    { title: "latency p99, ms", columns: ["latency_ms_p99"], weight: 2 },
    { title: "written to the device, MiB/s", columns: ["device_written_mib_per_s"], weight: 1.4 },
    { title: "read from the device, MiB/s", columns: ["device_read_mib_per_s"], weight: 1.4 },
    { title: "requests in the device queue", columns: ["queue_depth"], weight: 1.4 },
    { title: "dirty pages, MiB", columns: ["dirty_mib"], weight: 1.4 },
    { title: "waiting for I/O (PSI io some), share of time", columns: ["pressure_io_some"], weight: 1.4 },
  ];

  // The run of a cell to show: the repetition that was asked for, else the first one with a course.
  const pick = (cell, state) => {
    const m = page.measurements;
    const due = bedplate.data.measurements(cell, state.run).filter((i) => m.course[i]);
    return due.find((i) => m.repetition[i] === state.repetition) ?? due[0];
  };

  const chosen = (state) => state.courses.map((cell, place) => ({ cell, place, run: pick(cell, state) })).filter((one) => one.run !== undefined);

  const label = (one) => {
    const m = page.measurements;
    const doubt = m.validity[one.run] === "suspect" ? ", suspect" : "";
    return `${bedplate.data.cellName(one.cell)} · repetition ${m.repetition[one.run]}${doubt}`;
  };

  const legend = (state) => {
    byId("chosen").replaceChildren(...state.courses.map((cell, place) => {
      const run = pick(cell, state);
      const words = run === undefined ? `${bedplate.data.cellName(cell)}: no course (${page.measurements.reasons[bedplate.data.measurements(cell, state.run)[0]]?.join("; ") || "none was recorded"})` : label({ cell, run });
      return h("li", {}, h("span", { class: "swatch", colour: `var(--series-${(place % 8) + 1})` }), words);
    }), ...[page.runs[state.run]?.kind ? ["phase", "every other phase"] : ["warmup", "warm-up"], ["checkpoint", "checkpoint"]].map(([name, words]) => h("li", {}, h("span", { class: `swatch block ${name}` }), words)));
  };

  // A query is known by its number where there is no room for more.
  const short = (phase) => phase.replace(/^query /, "");

  // The names of phases, where they fit into their shades.
  const phaseNames = (course, courses) => {
    const wide = byId("courses-plot").clientWidth - 70;
    const seconds = Math.max(...courses.map((one) => one.second[one.second.length - 1])) - Math.min(...courses.map((one) => one.second[0])) + 1;
    const across = (start, end) => ((end - start) / seconds) * wide;
    return course.phases.filter(([name, start, end]) => across(start, end) > 4 + 6.5 * short(name).length).map(([name, start, end]) => ({
      text: charts.plain(short(name)), x: (start + end) / 2, y: 1, xref: "x", yref: "y domain", xanchor: "center", yanchor: "top", showarrow: false, font: { size: 11, color: charts.colour("--muted") } }));
  };

  // The phase of every second, as text for the reader who points at it.
  const phaseOf = (course) => {
    const names = new Map();
    for (const [name, start, end] of course.phases) for (let second = start; second < end; second += 1) names.set(second, charts.plain(name));
    return course.second.map((second) => names.get(second) ?? "between phases");
  };

  const drawCourses = (picked, courses) => {
    const known = LANES.filter((lane) => courses.some((course) => lane.columns.some((name) => course[name])));
    // Without transactions the first lane is what the device does, and reading comes first.
    const lanes = known[0]?.columns[0] === "tps" ? known : [...known.filter((lane) => lane.columns[0] === "device_read_mib_per_s").map((lane) => ({ ...lane, weight: 2.4 })), ...known.filter((lane) => lane.columns[0] !== "device_read_mib_per_s")];
    const weights = lanes.map((lane) => lane.weight);
    const total = weights.reduce((a, b) => a + b, 0);
    const height = 120 + total * 62;
    const gap = 34 / height;
    const made = { height, annotations: [], xaxis: charts.axis({ anchor: "free", position: 0, title: { text: `seconds since the start of the ${courses[0].phases ? "first phase" : "measured window"}`, font: { size: 12 } } }) };
    let top = 1 - 20 / height;
    const usable = top - gap * (lanes.length - 1);
    const traces = [];
    lanes.forEach((lane, index) => {
      const bottom = top - (usable * weights[index]) / total;
      const name = index ? `yaxis${index + 1}` : "yaxis";
      made[name] = charts.axis({ domain: [Math.max(bottom, 0), top], rangemode: "tozero", nticks: lane.weight > 2 ? 6 : 4 });
      made.annotations.push({ text: lane.title, xref: "paper", yref: "paper", x: 0, y: top, xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 12, color: charts.colour("--ink") } });
      picked.forEach((one, place) => {
        for (const column of lane.columns) {
          if (!courses[place][column]) continue;
          const phases = courses[place].phases ? phaseOf(courses[place]) : null;
          traces.push({ x: courses[place].second, y: courses[place][column], ...(phases ? { customdata: phases } : {}), yaxis: index ? `y${index + 1}` : "y", mode: "lines", name: charts.plain(label(one)),
            line: { color: charts.series(one.place), width: 1.5 }, connectgaps: false, hovertemplate: `%{y:.4~g} ${charts.plain(page.cells[one.cell].panel)}${phases ? " · %{customdata}" : ""}<extra></extra>` });
        }
      });
      top = bottom - gap;
    });
    made.shapes = charts.shades(picked[0].run, courses[0].second[0], lanes.map((_, index) => (index ? index + 1 : "")), courses[0].phases);
    if (courses[0].phases) made.annotations.push(...phaseNames(courses[0], courses));
    charts.draw("courses-plot", traces, charts.layout({ ...made, margin: { l: 52, r: 12, t: 4, b: 44 } }));
  };

  const coursesTable = (picked, courses) => {
    const columns = ["tps", "latency_ms_p50", "latency_ms_p99", "latency_ms_max", "device_written_mib_per_s", "device_read_mib_per_s", "queue_depth", "dirty_mib", "pressure_io_some"]
      .filter((name) => courses.some((course) => course[name]));
    const named = courses.map((course) => (course.phases ? new Map(course.phases.flatMap(([name, start, end]) => Array.from({ length: end - start }, (_, i) => [start + i, name]))) : null));
    const phase = (place, second) => (named[place] ? named[place].get(second) ?? "–" : second < 0 ? "warm-up" : "measure");
    const rows = picked.flatMap((one, place) => courses[place].second.map((second, i) => [
      bedplate.data.cellName(one.cell), phase(place, second), String(second), ...columns.map((name) => number(courses[place][name]?.[i]))]));
    return bedplate.table(["Cell", "Phase", "Second#", ...columns.map((name) => `${name}#`)], rows);
  };

  const draw = async (state, isCurrent) => {
    legend(state);
    const picked = chosen(state);
    if (!picked.length) {
      byId("courses-note").textContent = "None of the chosen cells has a course for this run.";
      charts.clear("courses-plot");
      bedplate.lazyTable("courses-table", () => h("p", {}, "No course."));
      return;
    }
    const courses = await Promise.all(picked.map((one) => bedplate.shelf.course(one.run)));
    if (!isCurrent()) return;
    byId("courses-note").textContent = `${bedplate.data.runName(state.run)}, ${picked.length} run${picked.length > 1 ? "s, one of each cell; the shades belong to the first" : ""}.`;
    drawCourses(picked, courses);
    bedplate.lazyTable("courses-table", () => coursesTable(picked, courses));
  };

  const LEVELS = [["latency_ms_max", "maximum", "--series-8", 1], ["latency_ms_p99", "p99", "--series-2", 1.4], ["latency_ms_p95", "p95", "--series-5", 1.4], ["latency_ms_p50", "median", "--series-1", 2]];

  const drawLatency = async (state, isCurrent) => {
    const cell = state.focus ?? undefined;
    const run = cell === undefined ? undefined : pick(cell, state);
    const note = byId("latency-note");
    if (!note) return;
    const nothing = (why) => {
      note.textContent = why;
      charts.clear("latency-linear");
      charts.clear("latency-logarithmic");
      bedplate.lazyTable("latency-table", () => h("p", {}, "No latencies."));
    };
    if (run === undefined) {
      nothing("The chosen cell has no course for this run.");
      return;
    }
    const course = await bedplate.shelf.course(run);
    if (!isCurrent()) return;
    const known = LEVELS.filter(([name]) => course[name]);
    if (!known.length) {
      nothing(`${bedplate.data.runName(state.run)} makes no transactions, so that it has no latencies.`);
      return;
    }
    note.textContent = `${label({ cell, run })}, ${bedplate.data.runName(state.run)}, n = 1 run.`;
    for (const type of ["linear", "log"]) {
      const traces = known.map(([name, words, tint, width]) => ({ x: course.second, y: course[name], mode: "lines", name: words, line: { color: charts.colour(tint), width }, hovertemplate: `${words} %{y:.4~g} ms<extra></extra>` }));
      const ends = known.map(([name, words, tint]) => {
        const value = course[name].findLast((entry) => entry !== null);
        return { xref: "paper", x: 1.01, y: type === "log" ? Math.log10(value) : value, xanchor: "left", showarrow: false, text: words, font: { size: 11, color: charts.colour(tint) } };
      });
      charts.draw(type === "log" ? "latency-logarithmic" : "latency-linear", traces, charts.layout({
        height: 320, shapes: charts.shades(run, course.second[0]), annotations: type === "log" ? ends : ends.slice(0, 2), margin: { l: 52, r: 64, t: 26, b: 40 },
        title: { text: type === "log" ? "ms, logarithmic" : "ms, linear", x: 0, xref: "paper", xanchor: "left", y: 0.98, font: { size: 12, color: charts.colour("--ink") } },
        xaxis: charts.axis({ title: { text: "seconds", font: { size: 12 } } }),
        yaxis: charts.axis({ type, rangemode: type === "log" ? "normal" : "tozero", ...(type === "log" ? { dtick: 1 } : {}) }) }));
    }
    bedplate.lazyTable("latency-table", () => bedplate.table(["Second#", ...known.map(([, words]) => `${words}, ms#`)],
      course.second.map((second, i) => [String(second), ...known.map(([name]) => number(course[name][i]))])));
  };

  const drawDistribution = async (state, isCurrent) => {
    if (!byId("distribution-note")) return;
    const picked = chosen(state).filter((one) => page.measurements.latencies[one.run]);
    if (!picked.length) {
      byId("distribution-note").textContent = "None of the chosen runs has its latencies recorded.";
      charts.clear("distribution-plot");
      bedplate.lazyTable("distribution-table", () => h("p", {}, "No latencies."));
      return;
    }
    const found = await Promise.all(picked.map((one) => bedplate.shelf.latencies(one.run)));
    if (!isCurrent()) return;
    const slower = found.map((bins) => {
      const total = bins.count.reduce((a, b) => a + b, 0);
      let left = total;
      return bins.count.map((count) => { left -= count; return left / total; });
    });
    const traces = picked.map((one, place) => ({ x: found[place].high_ms, y: slower[place].map((share) => (share > 0 ? share : null)), mode: "lines", name: charts.plain(label(one)),
      line: { color: charts.series(one.place), width: 1.8, shape: "linear" }, hovertemplate: `%{y:.3~p} slower than %{x:.4~g} ms · ${charts.plain(page.cells[one.cell].panel)}<extra></extra>` }));
    byId("distribution-note").textContent = picked.map((one, place) => `n = ${found[place].count.reduce((a, b) => a + b, 0).toLocaleString("en-US")} transactions (${page.cells[one.cell].panel})`).join(" · ");
    charts.draw("distribution-plot", traces, charts.layout({ height: 360, hovermode: "closest",
      xaxis: charts.axis({ type: "log", title: { text: "latency, ms", font: { size: 12 } }, dtick: 1 }),
      yaxis: charts.axis({ type: "log", tickformat: "~p", dtick: 1 }) }));
    bedplate.lazyTable("distribution-table", () => bedplate.table(["Cell", "From, ms#", "To, ms#", "Transactions#", "Slower than that#"],
      picked.flatMap((one, place) => found[place].count.map((count, i) => [bedplate.data.cellName(one.cell), number(found[place].low_ms[i]), number(found[place].high_ms[i]), String(count), slower[place][i].toPrecision(3)]))));
  };

  const MOST_CELLS = 8;
  let listed = null;

  // Which cells, which repetition, and the one that is looked at alone.
  const drawChoice = (state) => {
    const shown = bedplate.choice.shown();
    byId("cell-choice").querySelector("summary").textContent = `Choose cells (${state.courses.length} of ${shown.length})`;
    // Boxes stay the same elements under the pointer while the same cells are shown.
    if (listed !== shown) byId("cell-list").replaceChildren(h("legend", { class: "note" }, "Up to eight"), ...shown.map((cell) => h("label", {}, h("input", {
      type: "checkbox", value: cell,
      onchange: (event) => bedplate.choice.change({ courses: event.target.checked ? [...bedplate.choice.state.courses, cell] : bedplate.choice.state.courses.filter((one) => one !== cell) }),
    }), h("span", {}, bedplate.data.cellName(cell)))));
    listed = shown;
    for (const box of byId("cell-list").querySelectorAll("input")) {
      box.checked = state.courses.includes(Number(box.value));
      box.disabled = !box.checked && state.courses.length >= MOST_CELLS;
    }
    const m = page.measurements;
    const repetitions = [...new Set(m.repetition.filter((_, i) => !m.canary[i]))].sort((a, b) => a - b);
    const option = (value, text, selected) => h("option", { value, selected }, text);
    byId("choose-repetition").replaceChildren(...repetitions.map((n) => option(n, String(n), n === state.repetition)));
    byId("choose-focus")?.replaceChildren(...state.courses.map((cell) => option(cell, bedplate.data.cellName(cell), cell === state.focus)));
  };

  byId("choose-repetition").addEventListener("change", (event) => bedplate.choice.change({ repetition: Number(event.target.value) }));
  byId("choose-focus")?.addEventListener("change", (event) => bedplate.choice.change({ focus: Number(event.target.value) }));
  bedplate.view({ name: "courses choice", keys: ["courses", "shown", "repetition", "focus"], place: "cell-list", draw: drawChoice });
  bedplate.view({ name: "courses", keys: ["run", "courses", "repetition"], place: "courses-plot", draw });
  bedplate.view({ name: "latency", keys: ["run", "focus", "repetition"], place: "latency-note", draw: drawLatency });
  bedplate.view({ name: "distribution", keys: ["run", "courses", "repetition"], place: "distribution-note", draw: drawDistribution });

  return { pick };
})();
