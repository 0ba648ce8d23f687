"use strict";
// Every cell by the chosen figure, the best first within each class of durability: a dot with its interval.

(() => {
  const { element: h, told, charts } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  // More lines than these are read in the table.
  const MOST = 40;
  const LINE_PX = 26;
  // In a narrow window names stand over their lines.
  const NARROW_PX = 700;

  const { classes } = bedplate.words;
  const classOf = (cell) => page.cells[cell].durability_class;
  // As traffic lights would have it, in colours that everybody tells apart.
  const COLOURS = [3, 5, 2, 8];
  const colourOf = (name) => COLOURS[classes.indexOf(name)] - 1;

  const ranked = ({ run, metric, part }) => {
    const sign = page.metrics[metric].better === "lower" ? 1 : -1;
    return bedplate.choice
      .shown()
      .map((cell) => ({ cell, found: bedplate.data.summary(cell, run, metric, part) }))
      .filter(({ found }) => found && found.mean !== null)
      .sort((one, other) => sign * (one.found.mean - other.found.mean));
  };

  // The best of each class, as many of one as of the other where not all have room.
  const bestOf = (all) => {
    const here = classes.filter((name) => all.some(({ cell }) => classOf(cell) === name));
    const most = all.length > MOST ? Math.floor(MOST / here.length) : all.length;
    return here.flatMap((name) => all.filter(({ cell }) => classOf(cell) === name).slice(0, most));
  };

  // What all cells have alike need not stand in each name.
  const namesOf = (rows) => {
    const panels = rows.map(({ cell }) => bedplate.data.panelName(page.cells[cell]));
    const blocks = new Set(rows.map(({ cell }) => `${page.cells[cell].row}/${page.cells[cell].column}`));
    const isTelling = rows.length > 1 && blocks.size === 1 && new Set(panels).size === panels.length;
    const names = isTelling ? panels : rows.map(({ cell }) => bedplate.data.cellName(cell));
    return new Map(rows.map(({ cell }, i) => [cell, charts.plain(names[i])]));
  };

  const ends = ({ mean, low, high, minimum, maximum }) => [low ?? minimum ?? mean, high ?? maximum ?? mean];

  const trace = (durability, rows, names) => {
    const own = rows.filter(({ cell }) => classOf(cell) === durability);
    const bounds = own.map(({ found }) => ends(found));
    return {
      x: own.map(({ found }) => found.mean),
      y: own.map(({ cell }) => names.get(cell)),
      mode: "markers",
      cliponaxis: false,
      legendgroup: durability,
      marker: {
        size: 9,
        color: charts.series(colourOf(durability)),
        symbol: own.map(({ found }) => (found.basis === "trusted" ? "circle" : "circle-open")),
      },
      error_x: {
        type: "data",
        symmetric: false,
        color: charts.series(colourOf(durability)),
        thickness: 2,
        width: 0,
        array: own.map(({ found }, i) => bounds[i][1] - found.mean),
        arrayminus: own.map(({ found }, i) => found.mean - bounds[i][0]),
      },
      text: own.map(({ cell, found }, i) =>
        charts.plain(
          `${bedplate.data.cellName(cell)}: ${told(found)}, ${told(found, bounds[i][0])} to ${told(found, bounds[i][1])}; ` +
            `${found.counted}; ${page.cells[cell].durability}`,
        ),
      ),
      hoverinfo: "text",
    };
  };

  const draw = (state) => {
    const all = ranked(state);
    const rows = bestOf(all);
    const metric = page.metrics[state.metric];
    const here = classes.filter((one) => rows.some(({ cell }) => classOf(cell) === one));
    const hasIntervals = rows.some(({ found }) => found.low !== null);
    byId("ranking-note").textContent = rows.length
      ? `${metric.name}, ${bedplate.data.runAndPart(state.run, state.part)}, ${metric.direction}: ` +
        `dots are ${bedplate.centre(metric)}s, lines ${hasIntervals ? "95\u00a0% intervals" : "from the least to the greatest run"}.` +
        `${rows.some(({ found }) => found.basis !== "trusted") ? " A hollow dot has no run that is trusted." : ""}` +
        `${bedplate.sampleSize(
          rows.map(({ found }) => found.n),
          "dot",
        )}${all.length > MOST ? ` The best ${rows.length} of ${all.length} cells, as many of each class; the table has all.` : ""}`
      : `No cell that is shown has a value for ${metric.name}.`;
    if (!rows.length) {
      charts.clear("ranking-plot");
      byId("ranking-legend").replaceChildren();
      bedplate.lazyTable("ranking-table", () => h("p", {}, "Nothing to list."));
      return;
    }
    charts.legend(
      "ranking-legend",
      ["ranking-plot"],
      here.map((one) => ({
        group: one,
        swatch: h("span", { class: "swatch block", colour: `var(--series-${(colourOf(one) % 8) + 1})` }),
        words: one,
      })),
    );
    const nameOf = namesOf(rows);
    const names = [...nameOf.values()];
    const narrow = charts.isNarrow("ranking-plot", NARROW_PX);
    charts.draw(
      "ranking-plot",
      here.map((one) => trace(one, rows, nameOf)),
      charts.layout({
        height: 70 + (narrow ? charts.NARROW_LINE_PX : LINE_PX) * rows.length,
        hovermode: "closest",
        margin: { l: 10, r: 16, t: narrow ? 16 : 4, b: 46 },
        annotations: narrow ? charts.namesAbove(names) : [],
        xaxis: charts.axis({
          rangemode: metric.scale === "ratio" ? "normal" : "tozero",
          title: { text: charts.plain(`${metric.name}${bedplate.unit(metric)}`), font: { size: 12 } },
        }),
        yaxis: charts.axis({
          type: "category",
          categoryorder: "array",
          categoryarray: [...names].reverse(),
          range: [-0.6, rows.length - 0.4],
          tickmode: "linear",
          showticklabels: !narrow,
        }),
      }),
    );
    bedplate.lazyTable("ranking-table", () =>
      bedplate.table(
        ["Cell", `Mean${bedplate.unit(metric)}#`, "From#", "To#", "n"],
        all.map(({ cell, found }) => () => [
          bedplate.cellHead(cell),
          told(found),
          ...ends(found).map((end) => told(found, end)),
          found.counted,
        ]),
        {
          cells: all.map(({ cell }) => cell),
          entriesOf: (cell) => [bedplate.data.summary(cell, state.run, state.metric, state.part)],
        },
      ),
    );
  };

  bedplate.view({ name: "ranking", keys: ["run", "metric", "part", "shown"], place: "ranking-plot", draw });
})();
