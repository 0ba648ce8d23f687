"use strict";
// Tables that stand on the page before any script: they are sorted and folded as others are, and answer to the choice by hiding
// rows, each of which names its cell.

(() => {
  const page = bedplate.document;
  const { alike, longTables } = bedplate;
  // The figures of the table of cells, as far as the document has them.
  const entriesOf = (cell) =>
    page.runs.flatMap((_, run) => [
      { entry: bedplate.data.summary(cell, run, bedplate.data.first(run)), isFirst: true },
      { entry: bedplate.data.named(cell, run, "latency_ms_p99"), isFirst: false },
    ]);
  for (const table of document.querySelectorAll("main .wide > table")) {
    const ofCells = table.matches("#summary table") ? (rows) => alike.byFigures(rows, entriesOf) : alike.byText;
    longTables.attach(table, { alike: table.querySelector("tr[data-cell]") ? ofCells : null });
  }

  for (const place of ["summary", "durability"])
    bedplate.view({
      name: `rows of ${place}`,
      keys: ["shown"],
      place,
      draw: () => {
        const shown = new Set(bedplate.choice.shown().map(String));
        for (const table of document.querySelectorAll(`#${place} table`))
          if (!longTables.choose(table, shown))
            for (const row of table.querySelectorAll("tr[data-cell]")) row.hidden = !shown.has(row.dataset.cell);
      },
    });
})();
