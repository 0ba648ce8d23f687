"use strict";
// Every cell by the chosen figure, the best first within each class of durability: a dot with its interval, and the figure.

(() => {
  const { element: h, told } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  // Seen at once, and unfolded; the table has all.
  const SEEN = 12;
  const MOST = 40;

  const { classes } = bedplate.words;
  const classOf = (cell) => page.cells[cell].durability_class;
  // As traffic lights would have it, in colours that everybody tells apart.
  const COLOURS = [3, 5, 2, 8];

  const ranked = ({ run, metric, part }) => {
    const sign = page.metrics[metric].better === "lower" ? 1 : -1;
    return bedplate.choice
      .shown()
      .map((cell) => ({ cell, found: bedplate.data.summary(cell, run, metric, part) }))
      .filter(({ found }) => found && found.mean !== null)
      .sort((one, other) => sign * (one.found.mean - other.found.mean));
  };

  // What all cells have alike need not stand in each name.
  const namesOf = (rows) => {
    const panels = rows.map(({ cell }) => bedplate.data.panelName(page.cells[cell]));
    const blocks = new Set(rows.map(({ cell }) => `${page.cells[cell].row}/${page.cells[cell].column}`));
    const isTelling = rows.length > 1 && blocks.size === 1 && new Set(panels).size === panels.length;
    return new Map(rows.map(({ cell }, i) => [cell, isTelling ? panels[i] : bedplate.data.cellName(cell)]));
  };

  const ends = ({ mean, low, high, minimum, maximum }) => [low ?? minimum ?? mean, high ?? maximum ?? mean];

  // Round numbers at both ends of the scale; what may be zero begins there.
  const scaleOf = (rows, metric) => {
    const all = rows.flatMap(({ found }) => ends(found));
    const { low, high } = bedplate.charts.roundEnds(metric.scale === "ratio" ? all : [...all, 0], 4);
    return { low, high, place: (value) => (100 * (value - low)) / (high - low) };
  };

  const row = ({ cell, found }, name, { place }) => {
    const [from, to] = ends(found);
    const colour = `var(--series-${COLOURS[classes.indexOf(classOf(cell))]})`;
    const text =
      `${bedplate.data.cellName(cell)}: ${told(found)}, ${told(found, from)} to ${told(found, to)}; ` +
      `${found.counted}; ${page.cells[cell].durability}`;
    const mark = (kind, style) => {
      const made = h("i", { class: kind, colour });
      Object.assign(made.style, style);
      return made;
    };
    return h(
      "div",
      { class: "rank", "data-cell": cell, title: text },
      h("span", { class: "name" }, name),
      h(
        "span",
        { class: "rail" },
        mark("interval", { left: `${place(from)}%`, width: `${place(to) - place(from)}%` }),
        mark(found.basis === "trusted" ? "dot" : "dot hollow", { left: `${place(found.mean)}%`, outlineColor: colour }),
      ),
      h("span", { class: "number" }, told(found)),
    );
  };

  // The best of a class, as many of one class as of the other where not all have room.
  const group = (durability, own, count, names, scale) => {
    const made = own.slice(0, Math.floor(MOST / count)).map((one) => row(one, names.get(one.cell), scale));
    const seen = own.length > SEEN / count + 1 ? Math.max(2, Math.floor(SEEN / count)) : own.length;
    const rest = made.slice(seen);
    return [
      h("p", { class: "class" }, durability),
      ...made.slice(0, seen),
      ...(rest.length ? [h("details", {}, h("summary", {}, `${rest.length} more`), rest)] : []),
    ];
  };

  const note = (state, rows) => {
    const metric = page.metrics[state.metric];
    if (!rows.length) return `No cell that is shown has a value for ${metric.name}.`;
    const hasIntervals = rows.some(({ found }) => found.low !== null);
    return (
      `${metric.name}, ${bedplate.data.runAndPart(state.run, state.part)}, ${metric.direction}: ` +
      `dots are ${bedplate.centre(metric)}s, lines ${hasIntervals ? "95\u00a0% intervals" : "from the least to the greatest run"}.` +
      `${rows.some(({ found }) => found.basis !== "trusted") ? " A hollow dot has no run that is trusted." : ""}` +
      bedplate.sampleSize(
        rows.map(({ found }) => found.n),
        "dot",
      ) +
      (rows.length > MOST
        ? ` Of ${rows.length} cells the best are drawn, as many of each class; the table has all.`
        : "")
    );
  };

  const draw = (state) => {
    const rows = ranked(state);
    const metric = page.metrics[state.metric];
    const here = classes.filter((one) => rows.some(({ cell }) => classOf(cell) === one));
    const names = namesOf(rows);
    const scale = rows.length ? scaleOf(rows, metric) : null;
    byId("ranking-note").textContent = note(state, rows);
    byId("ranking-plot").replaceChildren(
      ...here.flatMap((one) =>
        group(
          one,
          rows.filter(({ cell }) => classOf(cell) === one),
          here.length,
          names,
          scale,
        ),
      ),
      ...(rows.length
        ? [
            h(
              "div",
              { class: "rank scale", "aria-hidden": "true" },
              h("span", { class: "name" }),
              h(
                "span",
                { class: "ends" },
                h("span", {}, bedplate.charts.written(scale.low)),
                h("span", {}, bedplate.charts.written(scale.high)),
              ),
              h("span", { class: "number" }, bedplate.unit(metric) || metric.name),
            ),
          ]
        : []),
    );
    bedplate.save.offer("ranking-plot", rows.length > 0);
    bedplate.lazyTable("ranking-table", () =>
      rows.length
        ? bedplate.table(
            ["Cell", `Mean${bedplate.unit(metric)}#`, "From#", "To#", "n"],
            rows.map(({ cell, found }) => () => [
              bedplate.cellHead(cell),
              told(found),
              ...ends(found).map((end) => told(found, end)),
              found.counted,
            ]),
            {
              cells: rows.map(({ cell }) => cell),
              entriesOf: (cell) => [bedplate.data.summary(cell, state.run, state.metric, state.part)],
            },
          )
        : h("p", {}, "Nothing to list."),
    );
  };

  bedplate.view({ name: "ranking", keys: ["run", "metric", "part", "shown"], place: "ranking-plot", draw });
})();
