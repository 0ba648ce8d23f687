"use strict";
// TPC-H's scores over a choice of cells, and the specification's own figures, which nobody audited.

bedplate.scores = (() => {
  const { element: h, number, words } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const NAMES = page.rules.scores;
  const OFFICIAL = {
    power: [["tpch_power", "power"]],
    throughput: [
      ["tpch_throughput", "throughput"],
      ["tpch_composite", "composite"],
    ],
  };

  const NAMED_MOST = 3;

  const meter = (share, text) =>
    h(
      "div",
      { class: "meter" },
      h("span", { class: "rail" }, h("i", { width: `${Math.max(0, Math.min(1, share ?? 0)) * 100}%` })),
      h("b", {}, text),
    );

  const figure = ([value, share, low, high, reasons]) => {
    if (value === null) return h("span", { class: "note" }, `none: ${reasons.join("; ")}`);
    const interval = low === null ? null : h("span", { class: "small" }, `95 %: ${number(low)}–${number(high)}`);
    return h(
      "div",
      {},
      meter(share, number(value)),
      h("span", { class: "small" }, `${(share * 100).toFixed(1)} % of ideal`),
      interval,
    );
  };

  const table = (view) => {
    const rows = [...view.cells].sort((one, other) => (other.score[0] ?? -1) - (one.score[0] ?? -1));
    const heads = [
      "Cell",
      words.capital(words.after_power_cut),
      "time, s",
      `score, of ${view.queries.length}`,
      "m-time, s",
      `m-score, of ${view.kept.length}`,
      "n",
    ];
    return bedplate.table(heads, [
      ...rows.map((cell) => [
        h(
          "div",
          {},
          bedplate.data.cellName(cell.cell),
          cell.timeouts.length ? h("span", { class: "small" }, `over the limit: ${cell.timeouts.join(", ")}`) : null,
        ),
        page.cells[cell.cell].durability,
        ...NAMES.map((name) => figure(cell[name])),
        h(
          "span",
          { class: "whole" },
          `n = ${cell.n}${cell.basis === "trusted" ? "" : ` (${words.basis[cell.basis] ?? cell.basis})`}`,
        ),
      ]),
      ...view.left_out.map(([cell, reason]) => [
        bedplate.data.cellName(cell),
        page.cells[cell].durability,
        reason,
        "–",
        "–",
        "–",
        "n = 0",
      ]),
    ]);
  };

  const official = () => {
    const columns = page.runs.flatMap((run, index) =>
      (OFFICIAL[run.kind] ?? []).map(([metric, said]) => ({ metric, said, run: index })),
    );
    const shown = columns.filter(({ metric }) => bedplate.data.metricOf.has(metric));
    const notesOf = new Map(page.tpch.power_notes.map(([run, cell, notes]) => [`${run}/${cell}`, notes]));
    const cells = bedplate.choice
      .shown()
      .filter((cell) => shown.some(({ run }) => bedplate.data.measurements(cell, run).length));
    // What holds of every power stands once, and not in every row.
    const noted = cells.flatMap((cell) =>
      shown
        .filter(({ metric, run }) => metric === "tpch_power" && bedplate.data.named(cell, run, metric)?.n)
        .map(({ run }) => notesOf.get(`${run}/${cell}`) ?? []),
    );
    const everywhere = (noted[0] ?? []).filter((note) => noted.every((notes) => notes.includes(note)));
    const value = (cell, { metric, run }) => {
      const found = bedplate.data.named(cell, run, metric);
      if (!found || found.mean === null)
        return h("span", { class: "note" }, `none${found?.reason ? `: ${found.reason}` : ""}`);
      const range =
        found.n > 1 && found.minimum !== null
          ? h("span", { class: "small" }, `${number(found.minimum)}–${number(found.maximum)}`)
          : null;
      const notes =
        metric === "tpch_power"
          ? (notesOf.get(`${run}/${cell}`) ?? []).filter((note) => !everywhere.includes(note))
          : [];
      return h(
        "div",
        {},
        number(found.mean),
        range,
        notes.map((note) => h("span", { class: "small" }, note)),
      );
    };
    const made = bedplate.table(
      [
        "Cell",
        words.capital(words.after_power_cut),
        ...shown.map((one) => `${one.said} of ${bedplate.data.runName(one.run)}`),
      ],
      cells.map((index) => [
        bedplate.data.cellName(index),
        page.cells[index].durability,
        ...shown.map((one) => value(index, one)),
      ]),
    );
    return { made, everywhere };
  };

  const meant = (study) => bedplate.choice.shown().filter((cell) => page.cells[cell].study === study);

  const few = (all, join, more) =>
    [
      ...all.slice(0, NAMED_MOST),
      ...(all.length > NAMED_MOST
        ? [`${all.length - NAMED_MOST} more ${more}${all.length === NAMED_MOST + 1 ? "" : "s"}`]
        : []),
    ].join(join);

  const inWords = ([, said, groups]) =>
    said + groups.map((group) => few(group.map(bedplate.data.cellName), "; ", "cell")).join(" | ");

  // A view over the cells that are meant: the document's own where these are all of them.
  const viewOver = (place, times) => {
    const whole = page.tpch.scores[place];
    const selected = meant(whole.study);
    const all = page.cells.filter((cell) => cell.study === whole.study).length;
    if (selected.length === all) return { ...whole, selected, all };
    const made = bedplate.tpchScores.scores(times.views[place], selected, times.factors);
    const unbounded = new Set(whole.cells.filter((cell) => !cell.bounded).map((cell) => cell.cell));
    const bound = (cell, [value, share, low, high, reasons]) =>
      unbounded.has(cell) ? [value, share, null, null, reasons] : [value, share, low, high, reasons];
    return {
      ...made,
      study: whole.study,
      run: whole.run,
      selected,
      all,
      cells: made.cells.map((cell) => ({
        ...cell,
        ...Object.fromEntries(NAMES.map((name) => [name, bound(cell.cell, cell[name])])),
      })),
      dropped: made.dropped.map(([query, reasons]) => {
        const said = reasons.slice(0, NAMED_MOST).map(inWords);
        const rest = reasons.length - said.length;
        return [query, rest > 0 ? [...said, `${rest} more reason${rest === 1 ? "" : "s"}`] : said];
      }),
    };
  };

  const overWords = (view) => {
    const study = page.studies[view.study];
    const of =
      view.selected.length === view.all ? `all ${view.all} cells` : `${view.selected.length} of ${view.all} cells`;
    const doubt = view.only_suspect;
    const cells = few(doubt.map(bedplate.data.cellName), "; ", "cell");
    const suspect = doubt.length
      ? ` ${words.filled(doubt.length === view.cells.length ? "none_trusted" : "some_untrusted", { cells })}`
      : "";
    return (
      `${bedplate.data.several ? `${study.name}: ` : ""}over ` +
      `${of}${study.selection ? ` of the selection ${study.selection}` : ""}.${suspect}`
    );
  };

  const drawOfficial = () => {
    const { made, everywhere } = official();
    byId("scores-audit").textContent =
      `QphH@SF, means over the repetitions with their range: ${page.tpch.note}.` +
      `${everywhere.length ? ` Power: ${everywhere.join("; ")}.` : ""}`;
    byId("scores-official").replaceChildren(made);
  };

  const draw = async (state, isCurrent) => {
    drawOfficial();
    const times = await bedplate.unpack(page.tpch.times);
    if (!isCurrent()) return;
    const views = page.tpch.scores;
    if (!views.length) {
      byId("scores-note").textContent = "No pass ran the queries one by one, so that there are no scores.";
      byId("scores-dropped").hidden = true;
      return;
    }
    const run = views.some((view) => view.run === state.run) ? state.run : views[0].run;
    const chosen = views
      .map((view, place) => [view, place])
      .filter(([view]) => view.run === run)
      .map(([, place]) => viewOver(place, times));
    const which =
      run === state.run
        ? `${bedplate.data.runName(run)}, best score first. An interval says how steady a cell is; it needs three complete repetitions.`
        : `${bedplate.data.runName(state.run)} has no scores; these are those of ${bedplate.data.runName(run)}.`;
    byId("scores-note").textContent = `${which} ${chosen.map(overWords).map(words.capital).join(" ")}`;
    const head = (view) => (bedplate.data.several ? h("h3", {}, page.studies[view.study].name) : null);
    const all = (make) => chosen.flatMap((view) => [head(view), make(view)].filter((part) => part !== null));
    byId("scores-table").replaceChildren(...all(table));
    byId("scores-kept").textContent = chosen
      .map((view) => {
        const study = bedplate.data.several ? `${page.studies[view.study].name}: ` : "";
        const dropped = view.dropped.map(([query]) => query);
        return (
          `${study}${view.kept.length} of ${view.queries.length} queries are left in the m-figures` +
          `${dropped.length ? `; left out: ${dropped.join(", ")}` : ""}.`
        );
      })
      .join(" ");
    bedplate.lazyTable("scores-dropped", () =>
      h(
        "div",
        {},
        all((view) =>
          view.dropped.length
            ? bedplate.table(
                ["Query", "Why it is left out"],
                view.dropped.map(([query, reasons]) => [
                  query,
                  h(
                    "div",
                    {},
                    reasons.map((reason) => h("div", {}, reason)),
                  ),
                ]),
              )
            : h("p", {}, "None."),
        ),
      ),
    );
  };

  // The scores of a run over the cells that are shown: a map from cell to its figures by the metric's name.
  const over = async (run) => {
    const times = await bedplate.unpack(page.tpch.times);
    const found = new Map();
    page.tpch.scores.forEach((view, place) => {
      if (view.run === run) for (const cell of viewOver(place, times).cells) found.set(cell.cell, cell);
    });
    return found;
  };

  bedplate.view({ name: "scores", keys: ["run", "shown"], place: "scores", draw });

  // What a metric of the specification's own is not.
  const remark = (name) => (name.startsWith("tpch_") && page.tpch ? ` This is ${page.tpch.note}.` : "");

  return { over, remark };
})();
