"use strict";
// Latency over time of one run, and how the latencies of the drawn runs are distributed.

(() => {
  const { element: h, number, charts, courses } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);

  const LEVELS = [
    ["latency_ms_max", "maximum", "--series-8", 1],
    ["latency_ms_p99", "p99", "--series-2", 1.4],
    ["latency_ms_p95", "p95", "--series-5", 1.4],
    ["latency_ms_p50", "median", "--series-1", 2],
  ];

  const drawLatency = async (state, isCurrent) => {
    const cell = state.focus ?? undefined;
    const run = cell === undefined ? undefined : courses.pick(cell, state);
    const note = byId("latency-note");
    const nothing = (why) => {
      note.textContent = why;
      for (const id of ["latency-linear", "latency-logarithmic"]) {
        bedplate.span.unlink(id);
        charts.clear(id);
      }
      bedplate.lazyTable("latency-table", () => h("p", {}, "No latencies."));
    };
    if (run === undefined) {
      nothing("The chosen cell has no course for this run.");
      return;
    }
    const course = await bedplate.packedData.course(run);
    if (!isCurrent()) return;
    const known = LEVELS.filter(([name]) => course[name]);
    if (!known.length) {
      nothing(`${bedplate.data.runName(state.run)} makes no transactions, so that it has no latencies.`);
      return;
    }
    note.textContent = `${courses.label({ cell, run })}, ${bedplate.data.runName(state.run)}, n = 1 run.`;
    for (const type of ["linear", "log"]) {
      const traces = known.map(([name, words, tint, width]) => ({
        x: course.second,
        y: course[name],
        mode: "lines",
        name: words,
        line: { color: charts.colour(tint), width },
        hovertemplate: `${words} %{y:.4~g} ms<extra></extra>`,
      }));
      const ends = known.map(([name, words, tint]) => {
        const value = course[name].findLast((entry) => entry !== null);
        return {
          xref: "paper",
          x: 1.01,
          y: type === "log" ? Math.log10(value) : value,
          xanchor: "left",
          showarrow: false,
          text: words,
          font: { size: 11, color: charts.colour(tint) },
        };
      });
      charts.draw(
        type === "log" ? "latency-logarithmic" : "latency-linear",
        traces,
        charts.layout({
          height: 320,
          shapes: charts.shades(run, course.second[0]),
          annotations: type === "log" ? ends : ends.slice(0, 2),
          margin: { l: 62, r: 64, t: 26, b: 40 },
          title: {
            text: type === "log" ? "ms, logarithmic" : "ms, linear",
            x: 0,
            xref: "paper",
            xanchor: "left",
            y: 0.98,
            font: { size: 12, color: charts.colour("--ink") },
          },
          xaxis: charts.axis({
            automargin: false,
            ...bedplate.span.range(),
            title: { text: "seconds", font: { size: 12 } },
          }),
          yaxis: charts.axis({
            automargin: false,
            type,
            rangemode: type === "log" ? "normal" : "tozero",
          }),
        }),
      );
      bedplate.span.link(type === "log" ? "latency-logarithmic" : "latency-linear");
    }
    bedplate.lazyTable("latency-table", () =>
      bedplate.table(
        ["Second#", ...known.map(([, words]) => `${words}, ms#`)],
        course.second.map((second, i) => () => [String(second), ...known.map(([name]) => number(course[name][i]))]),
      ),
    );
  };

  // The bins of several runs together; the page's bins are eight to a doubling, by their upper bounds.
  const summed = (all) => {
    const bins = new Map();
    for (const one of all)
      one.high_ms.forEach((high, i) => {
        const key = Math.ceil(Math.log2(high) * 8 - 0.01);
        const known = bins.get(key);
        bins.set(
          key,
          known
            ? {
                low: Math.min(known.low, one.low_ms[i]),
                high: Math.max(known.high, high),
                count: known.count + one.count[i],
              }
            : { low: one.low_ms[i], high, count: one.count[i] },
        );
      });
    const sorted = [...bins].sort(([one], [other]) => one - other).map(([, bin]) => bin);
    return {
      low_ms: sorted.map((bin) => bin.low),
      high_ms: sorted.map((bin) => bin.high),
      count: sorted.map((bin) => bin.count),
    };
  };

  const totalled = (group, name, place, bins, turn = 0) => {
    const total = bins.count.reduce((a, b) => a + b, 0);
    let left = total;
    return {
      group,
      name,
      place,
      turn,
      bins,
      total,
      slower: bins.count.map((count) => {
        left -= count;
        return left / total;
      }),
    };
  };

  const drawDistribution = async (state, isCurrent) => {
    const picked = courses.chosen(state).filter((one) => page.measurements.latencies[one.run]);
    if (!picked.length) {
      byId("distribution-note").textContent = "None of the chosen runs has its latencies recorded.";
      charts.clear("distribution-plot");
      bedplate.lazyTable("distribution-table", () => h("p", {}, "No latencies."));
      return;
    }
    const found = await Promise.all(picked.map((one) => bedplate.packedData.latencies(one.run)));
    if (!isCurrent()) return;
    const many = courses.isMany(picked);
    const drawn = many
      ? courses
          .variants(picked.map((one, i) => ({ ...one, bins: found[i] })))
          .map((group) =>
            totalled(
              group.name,
              `${group.name} (${group.members.length} runs)`,
              group.place,
              summed(group.members.map((one) => one.bins)),
            ),
          )
      : picked.map((one, i) => totalled(courses.groupOf(one), courses.label(one), one.place, found[i], one.turn));
    const traces = drawn.map((one) => ({
      x: one.bins.high_ms,
      y: one.slower.map((share) => (share > 0 ? 100 * share : null)),
      mode: "lines",
      name: charts.plain(one.name),
      legendgroup: one.group,
      opacity: one.turn ? 0.6 : 1,
      line: courses.line(one.place, { width: one.turn ? 1 : 1.8 }),
      hovertemplate: `%{y:.3~r} % slower than %{x:.4~g} ms · ${charts.plain(one.name)}<extra></extra>`,
    }));
    const counted =
      `n = ${drawn.reduce((sum, one) => sum + one.total, 0).toLocaleString("en-US")} transactions ` +
      `of ${picked.length} run${picked.length > 1 ? "s" : ""} of ` +
      `${bedplate.data.runName(state.run)}`;
    byId("distribution-note").textContent = many
      ? `${counted}; the runs of a variant are counted together.`
      : `${counted}: ${drawn.map((one) => `${one.total.toLocaleString("en-US")} (${one.name})`).join(" · ")}`;
    charts.draw(
      "distribution-plot",
      traces,
      charts.layout({
        height: 360,
        hovermode: "closest",
        xaxis: charts.axis({ type: "log", title: { text: "latency, ms", font: { size: 12 } } }),
        yaxis: charts.axis({ type: "log", tickformat: ".3~r", ticksuffix: " %" }),
      }),
    );
    bedplate.lazyTable("distribution-table", () =>
      bedplate.table(
        [many ? "Variant" : "Run", "From, ms#", "To, ms#", "Transactions#", "Slower than that#"],
        drawn.flatMap(({ name, bins, slower }) =>
          bins.count.map((count, i) => () => [
            name,
            number(bins.low_ms[i]),
            number(bins.high_ms[i]),
            String(count),
            slower[i].toPrecision(3),
          ]),
        ),
      ),
    );
  };

  bedplate.view({
    name: "latency",
    keys: ["run", "focus", "repetition"],
    place: "latency-note",
    draw: drawLatency,
  });
  bedplate.view({
    name: "distribution",
    keys: courses.KEYS,
    place: "distribution-note",
    draw: drawDistribution,
  });
})();
