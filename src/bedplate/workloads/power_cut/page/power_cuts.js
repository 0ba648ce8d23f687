"use strict";
// Power cuts: the speed of a cell against the share of its cuts that were bad, what was lost, and how long recovery took.

(() => {
  const { element: h, number, charts, words } = bedplate;
  const page = bedplate.document;
  const all = page.power_cuts ?? [];
  const KIND = "power_cut";
  // A colour for each class; its words stand in the key of the mark too.
  const [DURABLE, BOUNDED, UNSAFE] = words.classes;
  const COLOURS = { [DURABLE]: "--good", [BOUNDED]: "--warn", [UNSAFE]: "--bad" };
  // A wide ring around a small diamond: both are seen where they have the same share, and so are the ends of their intervals.
  /** @type {[string, object, number][]} */
  const CACHES = [
    ["volatile-512", { symbol: "square-open", size: 23, opacity: 1, line: { width: 2 } }, 13],
    ["volatile-4k", { symbol: "circle-open", size: 17, opacity: 1, line: { width: 2.5 } }, 9],
    ["protected", { symbol: "diamond", size: 8, opacity: 1 }, 4],
  ];
  const MARKS = { "volatile-512": "□", "volatile-4k": "◯", protected: "◆" };
  const MOST_ROWS = 40;
  const GOLDEN = 0.618;
  const [LEAST_SHARE, MOST_SHARE] = [-5, 105];

  const drawnOf = (cut, side) => cut.caches[side]?.drawn ?? null;
  const tint = (cut, side) => charts.colour(COLOURS[cut.caches[side]?.class] ?? "--series-8");
  const verdict = (cut, side) => (cut.refused.length ? "verdict refused" : (cut.caches[side]?.class ?? "not cut"));
  const soughtWords = (cut, side) =>
    cut.caches[side]?.sought[1] ? `${cut.caches[side].sought[0]} of ${cut.caches[side].sought[1]}` : "–";
  const name = (cut) => `${bedplate.data.cellName(cut.cell)}${cut.name ? ` · ${cut.name}` : ""}`;
  const percent = (share) => `${number(100 * share)} %`;
  const shareWords = ([bad, cuts, low, high]) => `${bad} of ${cuts} bad, ${percent(low)} to ${percent(high)}`;

  // The run of the page where it has a speed in these cells, else the first one that has.
  const speedOf = (state, cuts) => {
    const value = (run, metric) =>
      cuts.some((cut) => (bedplate.data.summary(cut.cell, run, metric)?.mean ?? null) !== null);
    if (page.runs[state.run].kind !== KIND && state.part === 0 && value(state.run, state.metric))
      return [state.run, state.metric];
    const run = page.runs.findIndex((one, index) => one.kind !== KIND && value(index, bedplate.data.first(index)));
    return run < 0 ? null : [run, bedplate.data.first(run)];
  };

  const speeds = (cuts, run, metric) =>
    CACHES.map(([side, marker, ends]) => {
      const here = cuts.filter(
        (cut) => drawnOf(cut, side) && (bedplate.data.summary(cut.cell, run, metric)?.mean ?? null) !== null,
      );
      const share = (cut) => drawnOf(cut, side)[0] / drawnOf(cut, side)[1];
      const entry = (cut) => bedplate.data.summary(cut.cell, run, metric);
      return {
        type: "scatter",
        mode: "markers",
        cliponaxis: false,
        name: words.caches[side],
        x: here.map((cut) => entry(cut).mean),
        y: here.map((cut) => 100 * share(cut)),
        marker: { ...marker, color: here.map((cut) => tint(cut, side)) },
        error_y: {
          type: "data",
          symmetric: false,
          thickness: 1,
          width: ends,
          color: charts.colour("--muted"),
          array: here.map((cut) => 100 * (drawnOf(cut, side)[3] - share(cut))),
          arrayminus: here.map((cut) => 100 * (share(cut) - drawnOf(cut, side)[2])),
        },
        customdata: here.map((cut) =>
          charts.plain(
            `${name(cut)}: ${bedplate.told(entry(cut))}${bedplate.unit(page.metrics[metric])}; ` +
              `${words.caches[side]}${side === cut.fits ? " (this device)" : ""}: ${shareWords(drawnOf(cut, side))}; ` +
              `${verdict(cut, side)}`,
          ),
        ),
        hovertemplate: "%{customdata}<extra></extra>",
      };
    });

  // What stands at the marks of each cell: its name, and the classes in words, as colours are not told apart by everyone.
  const marksOf = (cuts, run, metric) => {
    const speed = (cell) => bedplate.data.summary(cell, run, metric)?.mean ?? null;
    const cells = [...new Set(cuts.map((cut) => cut.cell))]
      .filter((cell) => speed(cell) !== null)
      .sort((one, other) => speed(one) - speed(other));
    const short = cells.map((cell) => bedplate.data.panelName(page.cells[cell]));
    const names = new Set(short).size === short.length ? short : cells.map(bedplate.data.cellName);
    return cells.map((cell, place) => {
      const here = cuts.filter((cut) => cut.cell === cell);
      const shares = here.flatMap((cut) =>
        CACHES.filter(([side]) => drawnOf(cut, side)).map(
          ([side]) => (100 * drawnOf(cut, side)[0]) / drawnOf(cut, side)[1],
        ),
      );
      const classes = here.map((cut) =>
        [...new Set([cut.fits, "protected"].map((side) => verdict(cut, side)))].join(" / "),
      );
      return {
        x: speed(cell),
        lowest: Math.min(...shares),
        number: place + 1,
        lines: [names[place], [...new Set(classes)].join("; ")],
      };
    });
  };

  // The cells by their numbers, in the order of their speed; nothing where their names stand in the picture.
  const keyWords = (marks, kind) => {
    if (kind === "names") return [];
    if (kind === "none")
      return [
        h(
          "li",
          { width: "100%" },
          `There is no room for the keys of ${marks.length} cells: choose fewer, zoom in, or read the table.`,
        ),
      ];
    return [
      h("li", { width: "100%" }, `Cells by their numbers in the picture, and their class ${words.after_power_cut}:`),
      ...marks.map(({ number: key, lines }) => h("li", {}, h("b", {}, String(key)), lines.join(": "))),
    ];
  };

  const legend = (marks, kind) =>
    document
      .getElementById("cut-speed-legend")
      .replaceChildren(
        ...CACHES.map(([side]) => h("li", {}, `${MARKS[side]} ${words.caches[side]}`)),
        ...Object.entries(COLOURS).map(([word, variable]) =>
          h("li", {}, h("span", { class: "swatch", colour: `var(${variable})` }), word),
        ),
        h("li", {}, h("span", { class: "swatch", colour: "var(--series-8)" }), "unknown, or verdict refused"),
        ...keyWords(marks, kind),
      );

  const drawSpeed = (state, cuts, isCurrent) => {
    const chosen = speedOf(state, cuts);
    const note = document.getElementById("cut-speed-note");
    // It stays in the page, as what is seen of it decides when it is drawn, and takes no room without a speed.
    document.getElementById("cut-speed-plot").style.minHeight = chosen ? "" : "0";
    document.getElementById("cut-speed-table").hidden = !chosen;
    bedplate.save.offer("cut-speed-plot", Boolean(chosen));
    if (!chosen) {
      note.textContent = "No cell whose power was cut has a speed here: a plan with another workload gives them one.";
      charts.clear("cut-speed-plot");
      document.getElementById("cut-speed-legend").replaceChildren();
      bedplate.lazyTable("cut-speed-table", () => h("p", {}, "Nothing to list."));
      return null;
    }
    const [run, metric] = chosen;
    const unit = bedplate.unit(page.metrics[metric]);
    const without = cuts.filter((cut) => (bedplate.data.summary(cut.cell, run, metric)?.mean ?? null) === null);
    note.textContent =
      `${page.metrics[metric].name}, ${bedplate.data.runName(run)}, ${bedplate.centre(page.metrics[metric])}s, against the share of ` +
      `the drawn cuts that were bad; lines are exact 95 % intervals. The words are the classes ` +
      `with the volatile cache of the device and with a protected one; ` +
      `${[...new Set(cuts.map((cut) => cut.sectors))].join("; ")}.` +
      `${without.length ? ` ${without.length} recordings of cells without this figure are left out.` : ""}`;
    const marks = marksOf(cuts, run, metric);
    const drawn = charts.draw(
      "cut-speed-plot",
      speeds(cuts, run, metric),
      charts.layout({
        height: 420,
        hovermode: "closest",
        margin: { l: 62, r: 18, t: bedplate.markKeys.ROOM_PX, b: 48 },
        shapes: bedplate.markKeys.stems(marks, MOST_SHARE),
        xaxis: charts.axis({
          title: {
            text: charts.plain(`${page.metrics[metric].name}${unit ? `,${unit}` : ""}`),
            font: { size: 12 },
          },
          rangemode: "tozero",
        }),
        yaxis: charts.axis({
          title: { text: "bad cuts, %", font: { size: 12 } },
          range: [LEAST_SHARE, MOST_SHARE],
        }),
      }),
    );
    bedplate.lazyTable("cut-speed-table", () =>
      bedplate.table(
        [
          "Cell",
          `${page.metrics[metric].name}${unit}#`,
          ...CACHES.flatMap(([side]) => [`${words.caches[side]}, drawn`, "Sought", "Verdict"]),
        ],
        cuts.map((cut) => [
          name(cut),
          bedplate.told(bedplate.data.summary(cut.cell, run, metric)),
          ...CACHES.flatMap(([side]) => [
            drawnOf(cut, side) ? shareWords(drawnOf(cut, side)) : "–",
            soughtWords(cut, side),
            verdict(cut, side),
          ]),
        ]),
      ),
    );
    return drawn.then(() =>
      isCurrent() ? bedplate.markKeys.put("cut-speed-plot", marks, (kind) => legend(marks, kind)) : null,
    );
  };

  // Of sorted values, between the two nearest.
  const quantile = (sorted, share) => {
    const place = share * (sorted.length - 1);
    const below = sorted[Math.floor(place)];
    return below + (place % 1) * (sorted[Math.ceil(place)] - below);
  };

  // Box and ends of each recording; of hundreds of cuts nobody reads one by one.
  const spreadTable = (cuts, values, unit) =>
    bedplate.table(
      [
        "Cell",
        "Cuts#",
        ...["Least", "Lower quarter", "Median", "Upper quarter", "Greatest"].map((head) => `${head}${unit}#`),
      ],
      cuts.map((cut) => [
        name(cut),
        String(values(cut).length),
        ...[0, 0.25, 0.5, 0.75, 1].map((share) => number(quantile(values(cut), share))),
      ]),
    );

  // Every cut of each recording with the middle half and the median, one recording below the other.
  const drawSpread = (id, cuts, values, { note, title, unit, logarithmic }) => {
    const found = cuts.filter((cut) => values(cut).length);
    const here = found.slice(0, MOST_ROWS);
    const rest = found.length - here.length;
    document.getElementById(`${id}-note`).textContent =
      note(found) + (rest ? ` Drawn are the first ${MOST_ROWS}: choose cells to see the other ${rest}.` : "");
    bedplate.lazyTable(`${id}-table`, () =>
      found.length ? spreadTable(found, values, unit) : h("p", {}, "Nothing to list."),
    );
    if (!here.length) {
      charts.clear(`${id}-plot`);
      return;
    }
    const rows = here.map((cut, row) => ({
      row,
      own: values(cut),
      tint: tint(cut, cut.fits),
      says: charts.plain(name(cut)),
    }));
    charts.draw(
      `${id}-plot`,
      [
        {
          x: rows.flatMap(({ own }) => [quantile(own, 0.25), quantile(own, 0.75), null]),
          y: rows.flatMap(({ row }) => [row, row, null]),
          mode: "lines",
          line: { width: 16, color: charts.colour("--line") },
          hoverinfo: "skip",
        },
        {
          x: rows.flatMap(({ own }) => own),
          // Beside each other, where many lie at one place.
          y: rows.flatMap(({ row, own }) => own.map((_, i) => row + 0.5 * (((i * GOLDEN) % 1) - 0.5))),
          mode: "markers",
          marker: { size: 4, opacity: 0.6, color: rows.flatMap(({ own, tint: colour }) => own.map(() => colour)) },
          text: rows.flatMap(({ own, says }) => own.map(() => says)),
          hoverinfo: "x+text",
        },
        {
          x: rows.map(({ own }) => quantile(own, 0.5)),
          y: rows.map(({ row }) => row),
          mode: "markers",
          marker: { symbol: "line-ns", size: 16, line: { width: 2, color: charts.colour("--ink") } },
          text: rows.map(({ says }) => `median, ${says}`),
          hoverinfo: "x+text",
        },
      ],
      charts.layout({
        height: 80 + 38 * here.length,
        hovermode: "closest",
        margin: { l: 12, r: 18, t: 8, b: 44 },
        yaxis: charts.axis({
          range: [here.length - 0.4, -0.6],
          tickmode: "array",
          tickvals: rows.map(({ row }) => row),
          ticktext: rows.map(({ says }) => says),
          showgrid: false,
        }),
        xaxis: charts.axis({
          title: { text: title, font: { size: 12 } },
          ...(logarithmic ? { type: "log" } : { rangemode: "tozero" }),
        }),
      }),
    );
  };

  const counted = (here) => `${here.length} recording${here.length === 1 ? "" : "s"}`;

  const shownCuts = () => {
    const shown = new Set(bedplate.choice.shown());
    return all.filter((cut) => shown.has(cut.cell));
  };
  const drawSpreads = () => {
    const cuts = shownCuts();
    drawSpread("cut-lost", cuts, (cut) => cut.lost, {
      note: (here) =>
        here.length
          ? `Acknowledged transactions that each cut lost, of ${counted(here)} that lost some; cuts that lost none are not drawn.`
          : "No cut of the cells that are shown lost an acknowledged transaction that could be counted.",
      title: "transactions lost at one cut",
      unit: "",
      logarithmic: true,
    });
    drawSpread("cut-recovery", cuts, (cut) => cut.recovery_s, {
      note: (here) =>
        here.length
          ? `Seconds of ${words.recovery}, of each cut after which it answered. In memory: no device's time.`
          : "After no cut of the cells that are shown did the engine answer.",
      title: "seconds until the engine answered",
      unit: ", s",
      logarithmic: false,
    });
  };

  bedplate.view({
    name: "speed of power cuts",
    keys: ["run", "metric", "part", "shown"],
    place: "cut-speed-plot",
    draw: (state, isCurrent) => drawSpeed(state, shownCuts(), isCurrent),
  });
  bedplate.view({ name: "power cuts", keys: ["shown"], place: "cut-lost-plot", draw: drawSpreads });
})();
