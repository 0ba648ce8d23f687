"use strict";
// Every run at its place in the study: drift takes no side, but it should be seen.

(() => {
  const { element: h, number, charts } = bedplate;
  const page = bedplate.document;
  const m = page.measurements;

  // More variants than colours: the next eight have another mark.
  const SYMBOLS = ["circle", "square", "triangle-up", "cross"];
  const MARKS = ["", "■ ", "▲ ", "✚ "];
  const FEW_VISITS = 12;

  const draw = (state) => {
    // Places are kept for whole runs: of a part, or a metric that only parts have, its run's first figure is drawn.
    const ofRun =
      state.part === 0 && m.figures[state.metric].some((figure, i) => figure !== null && m.run[i] === state.run);
    const shownMetric = ofRun ? state.metric : bedplate.data.first(state.run);
    const metric = page.metrics[shownMetric];
    const figures = m.figures[shownMetric];
    const shownCells = new Set(bedplate.choice.shown());
    const rows = bedplate.data.all.filter((i) => m.canary[i] || (m.run[i] === state.run && shownCells.has(m.cell[i])));
    const key = (i) => (m.canary[i] ? `canary ${m.study[i]}` : `${m.cell[i]}`);
    const levels = new Map();
    for (const i of rows) if (figures[i] !== null) levels.set(key(i), [...(levels.get(key(i)) ?? []), figures[i]]);
    const middles = new Map([...levels].map(([name, values]) => [name, bedplate.spread.median(values)]));
    const ratio = (i) => (figures[i] === null || !middles.get(key(i)) ? null : figures[i] / middles.get(key(i)));
    // Only those that are drawn: a page of several studies has dozens.
    const drawn = new Set(
      rows.filter((i) => !m.canary[i] && ratio(i) !== null).map((i) => page.cells[m.cell[i]].panel),
    );
    const panels = [...new Set(page.cells.map((cell) => cell.panel))].filter((panel) => drawn.has(panel));
    // Places count within a study: each has a lane of its own.
    const lanes = [...new Set(rows.filter((i) => ratio(i) !== null).map((i) => m.study[i]))].sort((a, b) => a - b);
    const axis = (study) => (lanes.indexOf(study) > 0 ? String(lanes.indexOf(study) + 1) : "");
    const doubtOf = (i) => {
      if (m.validity[i] === "valid") return "";
      const word = bedplate.words.basis[m.validity[i]] ?? m.validity[i];
      return ` · ${word}: ${m.reasons[i].join("; ")}`;
    };
    const name = (i) => (m.canary[i] ? "canary" : bedplate.data.cellName(m.cell[i]));
    const trace = (study, group, chosen, tint, symbol, size, mode = "markers") => ({
      legendgroup: group,
      x: chosen.map((i) => m.order[i]),
      y: chosen.map(ratio),
      mode,
      hoverinfo: "text",
      xaxis: `x${axis(study)}`,
      yaxis: `y${axis(study)}`,
      line: { width: 1.4, color: tint },
      text: chosen.map((i) =>
        charts.plain(
          `${name(i)} · repetition ${m.repetition[i]} · ${number(figures[i])}${bedplate.unit(metric)}` +
            `${m.canary[i] && m.emulated[i] ? " · emulated" : ""}${doubtOf(i)}`,
        ),
      ),
      marker: {
        size,
        // One symbol for all is drawn faster than a list of a thousand.
        symbol: chosen.every((i) => m.validity[i] === "valid")
          ? symbol
          : chosen.map((i) => (m.validity[i] === "valid" ? symbol : `${symbol}-open`)),
        color: tint,
        opacity: 0.9,
        line: { width: 1.4, color: tint },
      },
    });
    const shown = rows.filter((i) => ratio(i) !== null);
    const traces = lanes.flatMap((study) => {
      const here = shown.filter((i) => m.study[i] === study);
      const canary = here.filter((i) => m.canary[i]).sort((one, other) => m.order[one] - m.order[other]);
      return [
        ...panels.map((panel, place) =>
          trace(
            study,
            panel,
            here.filter((i) => !m.canary[i] && page.cells[m.cell[i]].panel === panel),
            charts.series(place),
            SYMBOLS[Math.floor(place / 8) % SYMBOLS.length],
            7,
          ),
        ),
        // The canary's course: one cell again and again, so that what moves it is the machine.
        trace(study, "canary", canary, charts.colour("--ink"), "diamond", 10, "lines+markers"),
      ].filter((one) => one.x.length);
    });
    const counts = { failed: 0, not_run: 0, suspect: 0, unknown: 0 };
    for (const i of rows) {
      if (m.outcome[i] in counts) counts[m.outcome[i]] += 1;
      else if (m.validity[i] !== "valid") counts[m.validity[i]] += 1;
    }
    const canaries = shown.filter((i) => m.canary[i]).length;
    document.getElementById("order-note").textContent =
      `${metric.name}, ${bedplate.data.runName(state.run)}: n = ${shown.length - canaries} runs ` +
      `and ${canaries} canaries; ${counts.suspect} suspect, ${counts.unknown} ${bedplate.words.doubts.unknown}, ` +
      `${counts.failed} failed, ${counts.not_run} not run. A cell with one run is at 1 by ` +
      `definition.`;
    charts.legend(
      "order-legend",
      ["order-plot"],
      [
        ...panels.map((panel, place) => ({
          group: panel,
          swatch: h("span", { class: "swatch", colour: `var(--series-${(place % 8) + 1})` }),
          words: `${MARKS[Math.floor(place / 8) % MARKS.length]}${panel}`,
        })),
        ...(canaries ? [{ group: "canary", swatch: h("span", {}, "◆"), words: "canary, joined by a line" }] : []),
        { swatch: h("span", {}, "○"), words: `suspect, or ${bedplate.words.doubts.unknown}` },
      ],
    );
    const axes = Object.fromEntries(
      lanes.flatMap((study, place) => {
        const high = 1 - place / lanes.length;
        const low = 1 - (place + 1) / lanes.length + (place + 1 < lanes.length ? 0.34 / lanes.length : 0);
        const title = bedplate.data.several ? `${page.studies[study].name}: visits in order` : "visits in order";
        return [
          [
            `xaxis${axis(study)}`,
            charts.axis({
              anchor: `y${axis(study)}`,
              title: { text: charts.plain(title), font: { size: 12 } },
              // No tick stands between two visits.
              ...(shown.every((i) => m.order[i] < FEW_VISITS) ? { dtick: 1 } : {}),
              showgrid: false,
              automargin: false,
            }),
          ],
          [
            `yaxis${axis(study)}`,
            charts.axis({ anchor: `x${axis(study)}`, domain: [low, high], tickformat: ".4~g", automargin: false }),
          ],
        ];
      }),
    );
    charts.draw(
      "order-plot",
      traces,
      charts.layout({
        height: 90 + 250 * Math.max(1, lanes.length),
        hovermode: "closest",
        // Room that is known beforehand: what finds its own draws every mark twice.
        margin: { l: 62, r: 12, t: 8, b: 44 },
        shapes: lanes.map((study) => ({
          type: "line",
          xref: `x${axis(study)} domain`,
          yref: `y${axis(study)}`,
          x0: 0,
          x1: 1,
          y0: 1,
          y1: 1,
          line: { color: charts.colour("--muted"), width: 1 },
          layer: "below",
        })),
        ...axes,
      }),
    );
    bedplate.lazyTable("order-table", () =>
      bedplate.table(
        ["Order#", "Cell", "Repetition#", "Outcome", "Validity", `${metric.name}#`, "/ median of its cell#", "Reasons"],
        [...rows]
          .sort((a, b) => m.study[a] - m.study[b] || m.order[a] - m.order[b])
          .map((i) => () => [
            String(m.order[i]),
            name(i),
            String(m.repetition[i]),
            m.outcome[i].replace("_", " "),
            m.validity[i],
            `${number(figures[i])}${m.emulated[i] && figures[i] !== null ? " (emulated)" : ""}`,
            ratio(i) === null ? "–" : ratio(i).toFixed(3),
            m.reasons[i].join("; "),
          ]),
      ),
    );
  };

  bedplate.view({ name: "order", keys: ["run", "metric", "part", "shown"], place: "order-plot", draw });
})();
