"use strict";
// What the factors do to the chosen metric: shares of the variation, ratios between levels, and what goes together.
// The figures are Python's (statistics/effects.py): they are of whole studies, and no selection changes them.

(() => {
  const { element: h, charts, words } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const ROW = 26;
  const AROUND = 70;
  const SHARES = [0, 0.2, 0.4, 0.6, 0.8, 1];

  const percent = (value) => `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)} %`;
  const short = (text) => (text.length > 42 ? `${text.slice(0, 41)}…` : text);

  // Of the chosen metric and part where there are effects on it, else of what the run is about.
  const entries = (state) => {
    const ofRun = page.effects.filter((one) => one.run === state.run);
    const metric = page.metrics[state.metric].name;
    const part = state.part ? page.parts[state.part][0] : "";
    const chosen =
      [
        ofRun.filter((one) => one.metric === metric && one.part === part),
        ofRun.filter((one) => one.metric === metric),
      ].find((found) => found.length) ?? [];
    if (chosen.length) return { found: chosen.filter((one) => one.part === chosen[0].part), asked: true };
    const first = page.metrics[bedplate.data.first(state.run)].name;
    const usual = ofRun.find((one) => one.metric === first) ?? ofRun[0];
    return {
      found: usual ? ofRun.filter((one) => one.metric === usual.metric && one.part === usual.part) : [],
      asked: false,
    };
  };

  // The cells of a durability class, the part of them within a file system, or those of all classes, of one of the studies.
  const designs = (found) =>
    found.flatMap((entry) =>
      entry.designs.map((design, place) => ({
        entry,
        design,
        value: `${entry.study}.${place}`,
        name: `${bedplate.data.several ? `${page.studies[entry.study].name}: ` : ""}${design.name}`,
      })),
    );

  const wider = (low, high) => [Math.min(low, 0.95), Math.max(high, 1.05)];

  // The two pictures share a line; one alone has all of it. Plotly keeps the width of its first drawing.
  const makeRoom = (design) => {
    const pictures = [
      ["effects-shares", design.shares],
      ["effects-ratios", design.ratios],
    ];
    const changed = pictures.some(([id, rows]) => byId(id).closest("figure").hidden !== !rows.length);
    for (const [id, rows] of pictures) {
      byId(id).closest("figure").hidden = !rows.length;
      if (changed) charts.clear(id);
    }
  };

  // The lines of a picture, and their names before or over them.
  const named = (id, names) => {
    const narrow = charts.isNarrow(id);
    return {
      height: AROUND + (narrow ? charts.NARROW_LINE_PX : ROW) * names.length,
      hovermode: "closest",
      margin: { l: 8, r: 16, t: narrow ? 16 : 8, b: 38 },
      bargap: narrow ? 0.72 : 0.45,
      annotations: narrow ? charts.namesAbove(names) : [],
      yaxis: charts.axis({ fixedrange: true, type: "category", showgrid: false, showticklabels: !narrow }),
    };
  };

  const drawShares = (design) => {
    const rows = [...design.shares].reverse();
    if (!rows.length) return;
    const names = rows.map(([name]) => charts.plain(short(name)));
    const bounded = rows.every(([, , low]) => low !== null);
    charts.draw(
      "effects-shares",
      [
        {
          type: "bar",
          orientation: "h",
          y: names,
          x: rows.map(([, share]) => share),
          hoverinfo: "text",
          textposition: "none",
          text: rows.map(([name, share, low, high]) =>
            charts.plain(`${name}: ${percent(share)}${low === null ? "" : ` (${percent(low)}–${percent(high)})`}`),
          ),
          marker: { color: charts.series(0), opacity: 0.75 },
          error_x: bounded
            ? {
                type: "data",
                symmetric: false,
                array: rows.map(([, share, , high]) => high - share),
                arrayminus: rows.map(([, share, low]) => share - low),
                color: charts.colour("--ink"),
                thickness: 1.2,
                width: 4,
              }
            : { visible: false },
        },
      ],
      charts.layout({
        ...named("effects-shares", names),
        xaxis: charts.axis({
          tickvals: SHARES,
          ticktext: SHARES.map((share) => `${Math.round(100 * share)} %`),
          range: [0, 1.02],
          fixedrange: true,
        }),
      }),
    );
  };

  const drawRatios = (design) => {
    const rows = [...design.ratios].reverse();
    if (!rows.length) return;
    const [low, high] = wider(
      Math.min(...rows.map((row) => row[4] ?? row[3])),
      Math.max(...rows.map((row) => row[5] ?? row[3])),
    );
    const names = rows.map(([factor, level, baseline]) => charts.plain(short(`${factor}: ${level} / ${baseline}`)));
    const ends = (from, to, verdict) => {
      if (from === null && to === null) return ", no interval";
      const [low, high] = [from, to].map((end) => (end === null ? "…" : bedplate.ratioFigure(end)));
      return ` (${low}–${high})${verdict ? `: ${verdict}` : ", cannot be distinguished from 1"}`;
    };
    charts.draw(
      "effects-ratios",
      [
        {
          type: "scatter",
          mode: "markers",
          y: names,
          x: rows.map((row) => row[3]),
          hoverinfo: "text",
          text: rows.map(([factor, level, baseline, ratio, from, to, verdict]) =>
            charts.plain(
              `${factor}: ${level} / ${baseline} · ${bedplate.ratioFigure(ratio)} times${ends(from, to, verdict)}`,
            ),
          ),
          marker: {
            size: 9,
            color: charts.series(0),
            symbol: rows.map((row) => (row[6] && row[6] !== "same" ? "circle" : "circle-open")),
            line: { width: 1.6, color: charts.series(0) },
          },
          error_x: {
            visible: design.judged,
            type: "data",
            symmetric: false,
            array: rows.map((row) => (row[5] === null ? 0 : row[5] - row[3])),
            arrayminus: rows.map((row) => (row[4] === null ? 0 : row[3] - row[4])),
            color: charts.series(0),
            thickness: 1.4,
            width: 4,
          },
        },
      ],
      charts.layout({
        ...named("effects-ratios", names),
        shapes: [
          {
            type: "line",
            yref: "paper",
            x0: 1,
            x1: 1,
            y0: 0,
            y1: 1,
            line: { color: charts.colour("--muted"), width: 1 },
            layer: "below",
          },
        ],
        xaxis: charts.axis({
          type: "log",
          ...charts.logEnds([low, high]),
          fixedrange: true,
        }),
      }),
    );
  };

  const table = (design) =>
    h(
      "div",
      {},
      bedplate.table(
        ["Factor", `${words.capital(words.share)}#`, "from#", "to#"],
        design.shares.map(([name, ...values]) => [
          name,
          ...values.map((value) => (value === null ? "–" : percent(value))),
        ]),
      ),
      bedplate.table(
        ["Factor", "Level", "Baseline", "Ratio#", "from#", "to#", "Verdict"],
        design.ratios.map(([factor, level, baseline, ratio, low, high, verdict]) => [
          factor,
          level,
          baseline,
          ...[ratio, low, high].map((value) => (value === null ? "–" : bedplate.ratioFigure(value))),
          verdict || "cannot tell",
        ]),
      ),
    );

  const empty = (found) => {
    const why = found.flatMap((entry) => entry.incomparable);
    const crossing = found.flatMap((entry) => entry.crossing);
    byId("effects-strongest").textContent = why.length
      ? words.filled("no_effects", { reasons: why.join("; ") })
      : [words.filled(crossing.length ? "no_factor_in_a_class" : "no_factor"), ...crossing].join(" ");
    byId("effects-pictures").hidden = true;
    byId("effects-note").textContent = "";
    byId("effects-together").replaceChildren();
    bedplate.lazyTable("effects-table", () => h("p", {}, "There is nothing to show."));
  };

  const draw = (state) => {
    const { found, asked } = entries(state);
    const offered = designs(found);
    const chosen = offered.find((one) => one.value === state["effects.design"]) ?? offered[0];
    byId("effects-design").replaceChildren(
      ...offered.map(({ value, name }) => h("option", { value, selected: value === chosen?.value }, name)),
    );
    byId("effects-design").closest(".ramp").hidden = offered.length < 2;
    if (!chosen) {
      empty(found);
      return;
    }
    const { entry, design } = chosen;
    byId("effects-pictures").hidden = false;
    byId("effects-strongest").textContent = entry.strongest && design === entry.designs[0] ? entry.strongest : "";
    byId("effects-strongest").hidden = !byId("effects-strongest").textContent;
    const metric = page.metrics[bedplate.data.metricOf.get(entry.metric)];
    const left = [
      words.leftOut(entry.suspect, entry.unknown),
      entry.unusable ? words.filled("runs_without_figure", { n: entry.unusable }) : "",
      entry.stopped ? words.filled("stopped_cells", { n: entry.stopped }) : "",
    ].filter(Boolean);
    byId("effects-note").textContent = [
      `${bedplate.data.runName(entry.run)}${entry.part ? `, ${entry.part}` : ""}: ` +
        `${metric ? `${metric.name}, ${metric.definition}` : entry.metric}.`,
      asked
        ? ""
        : `There are no effects on ${page.metrics[state.metric].name}, which is no positive figure of ` +
          `whole runs; these are on what the run is about.`,
      `n = ${design.cells} cells in ${design.repetitions} repetition${design.repetitions === 1 ? "" : "s"}.`,
      design.confidence
        ? `Intervals of ratios have a confidence of ${design.confidence}.`
        : words.filled("descriptions_only"),
      left.length ? `${words.capital(words.filled("left_out", { runs: left.join(", ") }))}.` : "",
      ...design.notes,
      design.across
        ? ""
        : [
            ...entry.crossing,
            ...(entry.crossing.length ? ["The parts of the design across all classes show it."] : []),
          ].join(" "),
    ]
      .filter(Boolean)
      .join(" ");
    makeRoom(design);
    drawShares(design);
    drawRatios(design);
    const together = byId("effects-together");
    if (design.interactions.length)
      together.replaceChildren(
        h("h3", {}, "What one factor changes about another"),
        h(
          "ul",
          { class: "evidence" },
          design.interactions.map((said) => h("li", {}, said)),
        ),
      );
    else together.replaceChildren(h("p", { class: "note" }, design.judged ? words.filled("no_interplay") : ""));
    bedplate.lazyTable("effects-table", () => table(design));
  };

  bedplate.choice.own("effects.design", { usual: null });
  byId("effects-design")?.addEventListener("change", (event) =>
    bedplate.choice.change({ "effects.design": event.target.value }),
  );
  bedplate.view({
    name: "effects",
    keys: ["run", "metric", "part", "effects.design"],
    draw,
    place: "effects",
  });
})();
