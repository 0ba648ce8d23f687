"use strict";
// How sure a search became: after each block of visits the chance of the cells that came closest to be the best.

(() => {
  const { element: h, charts, percent } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const REST = "all other cells";

  const line = (search, name, chances, colour, more = {}) => ({
    x: search.minutes,
    y: chances,
    name: charts.plain(name),
    mode: "lines+markers",
    cliponaxis: false,
    legendgroup: name,
    line: { color: colour, width: 2, ...more },
    marker: { size: 5, color: colour },
    text: chances.map((chance) => charts.plain(`${name}: ${percent(chance)}`)),
    hoverinfo: "text",
  });

  // From the end of the block before a proof to the end of its last block.
  const proofs = (search) =>
    search.proofs.flatMap((proof, at) =>
      proof ? charts.bands([""], at ? search.minutes[at - 1] : 0, search.minutes[at], charts.colour("--phase")) : [],
    );

  const draw = (search) => {
    const last = search.minutes.length - 1;
    const names = search.lines.map(([name]) => name);
    byId(`${search.id}-note`).textContent = search.note;
    if (last < 0) return;
    const near = `leader within ${search.margin} of the best`;
    const colours = names.map((_, at) => charts.series(at));
    const muted = charts.colour("--muted");
    charts.legend(
      `${search.id}-legend`,
      [`${search.id}-plot`],
      [
        ...names.map((name, at) => ({
          group: name,
          swatch: h("span", { class: "swatch block", colour: `var(--series-${(at % 8) + 1})` }),
          words: name,
        })),
        { group: REST, swatch: h("span", { class: "swatch block", colour: "var(--muted)" }), words: REST },
        { group: near, swatch: h("span", { class: "swatch block", colour: "var(--ink)" }), words: near },
      ],
    );
    charts.draw(
      `${search.id}-plot`,
      [
        ...search.lines.map(([name, chances], at) => line(search, name, chances, colours[at])),
        line(search, REST, search.rest, muted),
        line(search, near, search.near, charts.colour("--ink"), { dash: "dash" }),
      ],
      charts.layout({
        height: 320,
        hovermode: "closest",
        shapes: proofs(search),
        xaxis: charts.axis({ title: { text: "minutes of visits", font: { size: 12 } }, rangemode: "tozero" }),
        yaxis: charts.axis({ range: [-0.03, 1.03], tickformat: ".0%" }),
      }),
    );
    bedplate.lazyTable(`${search.id}-table`, () =>
      bedplate.table(
        [
          "Block",
          "Minutes#",
          "Visits#",
          "Leader",
          "Leader near the best#",
          ...names.map((name) => `${name}#`),
          `${REST}#`,
        ],
        search.minutes.map((minutes, at) => () => [
          search.proofs[at] ? `${at + 1}, proof ${search.proofs[at]}` : `${at + 1}`,
          minutes.toFixed(0),
          String(search.visits[at]),
          search.leaders[at],
          percent(search.near[at]),
          ...search.lines.map(([, chances]) => percent(chances[at])),
          percent(search.rest[at]),
        ]),
      ),
    );
  };

  for (const search of page.searches ?? [])
    bedplate.view({ name: search.id, keys: [], place: `${search.id}-plot`, draw: () => draw(search) });
})();
