"use strict";
// Heat maps as tables: one per variant, and the average over the variants that have every square. A square shows its
// figure, or how it differs from its baseline and how sure that is.

(() => {
  const { element: h, number, told, choice, words } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const SHOW = [
    ["figures", "figures"],
    ["difference", "difference to the baseline"],
  ];
  const PRESS = [
    ["follow", "follows its course below"],
    ["baseline", "makes it the baseline"],
    ["contender", "makes it the contender"],
    ["leave", "takes it out of the selection"],
  ];
  /** @type {[string, string[][], string][]} */
  const SELECTS = [
    ["heat-show", SHOW, "heat.show"],
    ["heat-press", PRESS, "heat.press"],
  ];
  const COURSES_MOST = 8;
  // Made over all cells together, not over the repetitions of one.
  const OVER_CELLS = new Set(page.rules.scores);

  const numbered = page.cells.map((cell, index) => ({ ...cell, index }));

  choice.own("heat.show", { values: () => SHOW.map(([name]) => name) });
  choice.own("heat.press", { values: () => PRESS.map(([name]) => name) });

  // The colours run over three stops; the upper half is dark enough for light figures.
  const shade = (depth) => `square${depth > 0.5 ? " upper" : ""}${depth > 0.6 ? " deep" : ""}`;

  // What a square shows: the summary of its runs, or the score over the cells that are shown.
  const entriesOf = async (state) => {
    const { name } = page.metrics[state.metric];
    const summary = (cell) => bedplate.data.summary(cell, state.run, state.metric, state.part);
    if (!OVER_CELLS.has(name) || choice.shown().length === page.cells.length) return summary;
    const over = await bedplate.scores.over(state.run);
    return (cell) => {
      const found = summary(cell);
      const [value, , low, high] = over.get(cell)?.[name] ?? [null, null, null, null];
      return found && { ...found, mean: value, low, high };
    };
  };

  const describe = (index, view) => {
    const { state } = view;
    const metric = page.metrics[state.metric];
    const found = view.entry(index);
    const cell = page.cells[index];
    const parts = [`${bedplate.data.cellName(index)}: ${metric.name} ${told(found)}${bedplate.unit(metric)}`];
    if (found && found.n > 1 && found.minimum !== null)
      parts.push(`range ${told(found, found.minimum)} to ${told(found, found.maximum)}`);
    if (found && found.low !== null)
      parts.push(`95 % interval ${told(found, found.low)} to ${told(found, found.high)}`);
    if (found) parts.push(found.counted);
    const compared = view.differences?.get(index);
    if (compared) parts.push(differenceWords(compared));
    parts.push(`${words.after_power_cut}: ${cell.durability}`);
    if (cell.throttle) parts.push(`emulated device ${cell.throttle}`);
    if (cell.identical_to.length) parts.push(words.filled("same_in_force", { cells: cell.identical_to.join("; ") }));
    return parts.join(" · ");
  };

  const differenceWords = (one) => {
    const { pairs, verdicts } = bedplate;
    const more = verdicts.moreRepetitions(one.found);
    const said = [...one.incomparable, ...one.found.reasons];
    return (
      `${pairs.estimate(one.found, one.found.estimate)} of ` +
      `${bedplate.data.cellName(one.baseline)}, ${pairs.interval(one.found)}: ` +
      `${pairs.word(one)}${more === null ? "" : `, ${more} more repetition${more === 1 ? "" : "s"} would tell`}` +
      `${said.length ? ` (${said.join("; ")})` : ""}`
    );
  };

  const emptyReason = (index, view) => {
    const { state } = view;
    const m = page.measurements;
    const stopped = view.entry(index);
    if (stopped && stopped.limit !== null)
      return [bedplate.beyond(stopped.limit), [`stopped at its limit, which is no measurement; ${stopped.counted}`]];
    const due = bedplate.data.measurements(index, state.run);
    const reasons = due.flatMap((i) => m.reasons[i]);
    const outcomes = new Set(due.map((i) => m.outcome[i]));
    if (outcomes.has("failed") || due.some((i) => m.unreached[i])) return ["failed", reasons];
    if (outcomes.has("completed"))
      return ["no value", [stopped?.reason ?? `the runs have no ${page.metrics[state.metric].name}`]];
    return ["not run", reasons];
  };

  const SIGNS = { faster: "▲", slower: "▼", higher: "▲", lower: "▼", same: "=", "cannot tell": "?" };
  // Blue is the better side, orange the worse one; where neither is better blue is more.
  const sideOf = (found, metric) => {
    const more = found.kind === "ratio" ? found.estimate > 1 : found.estimate > 0;
    return (metric.better === "lower" ? !more : more) ? "better" : "worse";
  };

  // Filled: it is faster or slower. Plain: it is the same. Hollow: it cannot be told.
  const difference = (index, view) => {
    const { state, differences, depth } = view;
    const one = differences.get(index);
    if (!one)
      return {
        kind: "difference apart",
        figure: told(view.entry(index)),
        sign: view.baselines.has(index) ? "baseline" : "no pair",
      };
    const { found } = one;
    const figure = bedplate.pairs.estimate(found, found.estimate, 2);
    if (one.identical || one.incomparable.length)
      return { kind: "difference apart", figure, sign: one.identical ? "≡ identical" : "∥ side by side" };
    const sign = `${SIGNS[found.verdict]} ${found.verdict}`;
    if (found.verdict === "same") return { kind: "difference alike", figure, sign };
    const side = found.estimate === null ? "" : ` ${sideOf(found, page.metrics[state.metric])}`;
    if (found.verdict === "cannot tell") return { kind: `difference open${side}`, figure, sign };
    return { kind: `difference told${side}`, figure, sign, share: depth(found) };
  };

  const onPress = (index) => {
    const { state } = choice;
    const press = state["heat.press"] ?? "follow";
    if (press === "baseline" || press === "contender")
      choice.change({ [press]: index, ...(press === "baseline" ? { "heat.show": "difference" } : {}) });
    else if (press === "leave") choice.change({ cells: choice.shown().filter((cell) => cell !== index) });
    else
      choice.change({
        courses: state.courses.includes(index) ? state.courses : [...state.courses, index].slice(-COURSES_MOST),
        focus: index,
        "effective.cell": null,
      });
  };

  // What each square says below the maps, and does when it is pressed: one listener serves hundreds of them.
  const said = new WeakMap();
  const squareOf = (event) => event.target.closest("#heat-list td[tabindex]");
  const tell = (event) => {
    const saysIt = said.get(squareOf(event));
    if (saysIt) byId("heat-detail").textContent = saysIt();
  };
  const press = (event) => {
    const cell = squareOf(event)?.dataset.cell;
    if (cell === undefined) return;
    event.preventDefault();
    onPress(Number(cell));
  };
  const saying = (made, make) => {
    said.set(made, make);
    return made;
  };
  const list = byId("heat-list");
  list?.addEventListener("focusin", tell);
  list?.addEventListener("mouseover", tell);
  list?.addEventListener("click", press);
  list?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") press(event);
  });

  const square = (index, view) => {
    const found = view.entry(index);
    if (!found || found.mean === null) {
      const [word, reasons] = emptyReason(index, view);
      const text = `${bedplate.data.cellName(index)}: ${word}. ${[...new Set(reasons)].join("; ")}`;
      const kind = found && found.limit !== null ? "empty stopped" : "empty";
      return saying(h("td", { class: kind, tabindex: "0", title: text }, word), () => text);
    }
    const made = view.differences
      ? difference(index, view)
      : {
          kind: shade(view.share(found.mean)),
          figure: told(found),
          share: view.share(found.mean),
        };
    const isBest = view.best === index ? "best durable" : "";
    const label = [bedplate.data.cellName(index), [made.figure, made.sign, isBest].filter(Boolean).join(", ")].join(
      ": ",
    );
    const doubt = ["suspect", "unknown"].includes(found.basis) ? found.basis : "";
    const drawn = h(
      "td",
      {
        class: [made.kind, doubt, view.baselines.has(index) ? "baseline" : "", isBest && "best"]
          .filter(Boolean)
          .join(" "),
        share: made.share?.toFixed(3),
        tabindex: "0",
        role: "button",
        "aria-label": label,
        "data-cell": index,
      },
      made.figure,
      made.sign ? h("small", {}, made.sign) : null,
      isBest ? h("small", {}, `★ ${isBest}`) : null,
    );
    return saying(drawn, () => describe(index, view));
  };

  const grid = (rows, columns, caption, make) =>
    h(
      "figure",
      { class: "map" },
      h("figcaption", {}, caption),
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, columns.some(Boolean) ? "fs \\ db" : "fs"),
            columns.map((column) => h("th", { scope: "col" }, column || "–")),
          ),
        ),
        h(
          "tbody",
          {},
          rows.map((row) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, row),
              columns.map((column) => make(row, column)),
            ),
          ),
        ),
      ),
    );

  const panel = (name, study, view, axes) => {
    const cells = numbered.filter((cell) => cell.study === study && cell.panel === name);
    const pruned = page.pruned.filter((cell) => cell.study === study && cell.panel === name);
    const shown = cells.filter((cell) => view.shown.has(cell.index));
    const rows = axes.rows.filter((row) =>
      [...shown, ...(view.narrowed ? [] : pruned)].some((cell) => cell.row === row),
    );
    const durability = [...new Set(shown.map((cell) => cell.durability))].join(", ");
    return grid(
      rows,
      axes.columns,
      h("span", {}, bedplate.data.panelName(shown[0]), h("span", { class: "note" }, ` — ${durability}`)),
      (row, column) => {
        const cell = cells.find((one) => one.row === row && one.column === column);
        if (cell && view.shown.has(cell.index)) return square(cell.index, view);
        const gone = cell ? null : pruned.find((one) => one.row === row && one.column === column);
        const where = `${name} · ${bedplate.data.blocks(row, column)}`;
        const [word, text] = cell
          ? ["–", `${where}: not among the cells that are shown`]
          : gone
            ? ["pruned", `${where}: pruned. ${gone.reasons.join("; ")}`]
            : page.studies[study].selection
              ? ["–", `${where}: not among the selected cells`]
              : ["not planned", `${where}: not in the plan`];
        return saying(h("td", { class: "empty", title: text, tabindex: "0" }, word), () => text);
      },
    );
  };

  const average = (made, axes, view, { promise, others }) => {
    if (!made.used.length) return null;
    const left = made.left_out.length ? ` Left out, as they lack a square: ${made.left_out.join(", ")}.` : "";
    const apart = others ? ` Not in it: ${others} of other durability classes.` : "";
    const has = (row, column) => made.values.has(JSON.stringify([row, column]));
    const figure = grid(
      axes.rows.filter((row) => axes.columns.some((column) => has(row, column))),
      axes.columns,
      `Average of ${made.used.length} variant${made.used.length === 1 ? "" : "s"}, ${promise} (n = ${made.used.length})`,
      (row, column) => {
        if (!has(row, column)) return h("td", { class: "empty" }, "–");
        const value = made.values.get(JSON.stringify([row, column]));
        const depth = view.share(value);
        return h("td", { class: shade(depth), share: depth.toFixed(3) }, number(value));
      },
    );
    figure.append(h("p", { class: "note" }, `Over ${made.used.join(", ")}.${left}${apart}`));
    return figure;
  };

  // The maps of one study: what they share, and which squares there are.
  const study = (number_, view) => {
    const { state } = view;
    const metric = page.metrics[state.metric];
    const due = new Set(page.measurements.cell.filter((_, i) => page.measurements.run[i] === state.run));
    const every = numbered.filter((cell) => cell.study === number_ && (due.has(cell.index) || due.size === 0));
    const mine = every.filter((cell) => view.shown.has(cell.index));
    const maps = new Map(mine.map((cell) => [cell.panel, new Map()]));
    for (const cell of mine) {
      const value = view.entry(cell.index)?.mean ?? null;
      if (value !== null) maps.get(cell.panel).set(JSON.stringify([cell.row, cell.column]), value);
    }
    const ends = bedplate.heatScale.common(
      [...maps.values()].flatMap((squares) => [...squares.values()]),
      metric.scale,
    );
    const pruned = view.narrowed ? [] : page.pruned.filter((cell) => cell.study === number_);
    return {
      mine,
      maps,
      ends,
      axes: {
        rows: bedplate.heatScale.axis([...mine, ...pruned], "row"),
        columns: bedplate.heatScale.axis(mine, "column"),
      },
    };
  };

  const legendOf = (ends, number_, metric, promises) => {
    const { name, marks } = page.studies[number_];
    const mixed = promises.includes(", ") ? `, whatever a power cut leaves (${promises})` : "";
    const [pale, strong] = metric.better === "lower" ? [ends.high, ends.low] : [ends.low, ends.high];
    const better = metric.better === "neither" ? "" : " (better)";
    return h(
      "p",
      { class: "ramp" },
      `${bedplate.data.several ? `${name}: ` : ""}${number(pale)}`,
      h("i"),
      `${number(strong)}${bedplate.unit(metric)}${better}, one ${ends.logarithmic ? "logarithmic" : "linear"} scale for all maps${mixed}`,
      marks.length ? ` · ${marks.map((mark) => mark.split(":")[0]).join(", ")}` : "",
    );
  };

  const differenceLegend = () =>
    h(
      "ul",
      { class: "chosen" },
      [
        ["shown worse", "worse"],
        ["shown better", "better"],
        ["alike", words.filled("same_within", { margin: words.margin("ratio", bedplate.pairs.margin()) })],
        ["open", "cannot tell: hollow"],
        ["apart", "no verdict: the baseline, identical, side by side"],
      ].map(([kind, said]) => h("li", {}, h("span", { class: `swatch block difference ${kind}` }), said)),
    );

  const table = (view, metric) => () =>
    bedplate.table(
      [
        "Cell",
        `Mean${bedplate.unit(metric)}#`,
        "Least#",
        "Greatest#",
        "95 % interval",
        "Variation#",
        "n",
        ...(view.differences ? ["Contender / baseline#", "Its interval", "Verdict", "Baseline"] : []),
      ],
      choice.shown().map((index) => () => {
        const found = view.entry(index);
        const one = view.differences?.get(index);
        const interval = found && found.low !== null ? `${told(found, found.low)} – ${told(found, found.high)}` : "–";
        const judged = !view.differences
          ? []
          : one
            ? [
                bedplate.pairs.estimate(one.found, one.found.estimate),
                bedplate.pairs.interval(one.found),
                bedplate.pairs.word(one),
                bedplate.data.cellName(one.baseline),
              ]
            : ["–", "–", "–", "–"];
        return [
          bedplate.cellHead(index),
          told(found),
          told(found, found?.minimum),
          told(found, found?.maximum),
          interval,
          bedplate.percent(found?.variation),
          found ? found.counted : "n = 0",
          ...judged,
        ];
      }),
      { cells: choice.shown(), entriesOf: (cell) => [view.entry(cell)] },
    );

  const definition = (state, view) => {
    const metric = page.metrics[state.metric];
    const direction = metric.better === "neither" ? `a description, ${metric.direction}` : metric.direction;
    const whose = bedplate.data.runAndPart(state.run, state.part);
    const over = OVER_CELLS.has(metric.name)
      ? `Over the ${choice.shown().length} cells that are shown, for ${whose}.`
      : `${words.capital(bedplate.centre(metric))} over the repetitions of ${whose}.`;
    const sample = bedplate.sampleSize(
      choice.shown().map((cell) => view.entry(cell)?.n ?? 0),
      "square",
    );
    const audit = bedplate.scores.remark(metric.name);
    const beside =
      state["heat.show"] === "difference" && !view.differences
        ? " There is no difference to show: choose a baseline in the bar above, or let a press on a square make it one."
        : "";
    return `${metric.name}: ${metric.definition}; ${direction}. ${over}${sample}${audit}${beside}`;
  };

  // Each contender beside its baseline, and how deep a difference is coloured beside the largest.
  const withDifferences = async (view) => {
    const { state } = view;
    if (state["heat.show"] !== "difference" || state.baseline === null) return view;
    const found = bedplate.pairs.pairsOf(state);
    const judged = await bedplate.pairs.judged(found, [state]);
    const size = (one) =>
      one.estimate === null ? 0 : Math.abs(one.kind === "ratio" ? Math.log(one.estimate) : one.estimate);
    const largest = Math.max(...judged.map((one) => size(one.found)).filter(Number.isFinite), 0);
    const differences = new Map();
    for (const one of judged) if (!differences.has(one.contender)) differences.set(one.contender, one);
    return {
      ...view,
      differences,
      depth: (one) => (largest ? Math.min(1, size(one) / largest) : 0),
      baselines: new Set(found.map((one) => one.baseline)),
    };
  };

  const drawStudy = (number_, view) => {
    const { state } = view;
    const metric = page.metrics[state.metric];
    const { mine, maps, ends, axes } = study(number_, view);
    if (!mine.length && view.narrowed) return;
    const valued = mine.filter(({ index }) => (view.entry(index)?.mean ?? null) !== null);
    const best = bedplate.heatScale.bestDurable(valued, (one) => view.entry(one).mean, metric.better);
    // What is better is never the paler one.
    const share = (value) => bedplate.heatScale.share(value, ends);
    const here = { ...view, share: metric.better === "lower" ? (value) => 1 - share(value) : share, best };
    // One square alone is no map: its figure is in the table of cells.
    const drawn = [...maps.keys()].filter((name) => mine.filter((cell) => cell.panel === name).length > 1);
    const before = bedplate.data.several ? `${page.studies[number_].name}: ` : "";
    if (!ends)
      byId("heat-list").append(
        h(
          "p",
          { class: "note" },
          `${before}no run of ${bedplate.data.runAndPart(state.run, state.part)} has a value for ${metric.name}.`,
        ),
      );
    else if (!view.differences && drawn.length)
      byId("heat-legend").append(legendOf(ends, number_, metric, bedplate.heatScale.promises(valued)));
    const safest = bedplate.heatScale.ofSafestClass(maps, valued);
    const mean =
      ends && !view.differences && safest.maps.size > 1 && drawn.length > 1
        ? average(bedplate.heatScale.average(safest.maps, metric.scale), axes, here, safest)
        : null;
    byId("heat-list").append(...[mean].filter(Boolean), ...drawn.map((name) => panel(name, number_, here, axes)));
    if (drawn.length < maps.size)
      byId("heat-list").append(
        h(
          "p",
          { class: "note" },
          `${maps.size - drawn.length} of ${maps.size} variants have one square each, which is no map: see `,
          h("a", { href: "#summary" }, "Cells"),
          ".",
        ),
      );
  };

  const draw = async (state, isCurrent) => {
    const entry = await entriesOf(state);
    const shown = new Set(choice.shown());
    const view = await withDifferences({
      state,
      entry,
      shown,
      narrowed: shown.size < page.cells.length,
      differences: null,
      baselines: new Set(),
    });
    if (!isCurrent()) return;
    const focused = document.activeElement?.closest?.("#heat-list td[data-cell]")?.dataset.cell;
    byId("heat-definition").textContent = definition(state, view);
    for (const [id, options, key] of SELECTS) {
      byId(id).replaceChildren(
        ...options.map(([name, said]) =>
          h("option", { value: name, selected: name === (state[key] ?? options[0][0]) }, said),
        ),
      );
    }
    byId("heat-list").replaceChildren();
    byId("heat-legend").replaceChildren(...(view.differences ? [differenceLegend()] : []));
    if (!shown.size)
      byId("heat-list").append(
        h("p", { class: "note" }, "No cell is left: the filters and the selection exclude each other."),
      );
    page.studies.forEach((_, number_) => drawStudy(number_, view));
    bedplate.lazyTable("heat-table", table(view, page.metrics[state.metric]));
    if (focused !== undefined)
      byId("heat-list").querySelector(`td[data-cell="${focused}"]`)?.focus({ preventScroll: true });
  };

  for (const [id, options, key] of SELECTS) {
    byId(id)?.addEventListener("change", (event) =>
      choice.change({ [key]: event.target.value === options[0][0] ? null : event.target.value }),
    );
  }
  bedplate.view({
    name: "heat maps",
    keys: ["run", "metric", "part", "shown", "baseline", "contender", "compare.margin", "heat.show", "heat.press"],
    place: "heat-list",
    draw,
  });
})();
