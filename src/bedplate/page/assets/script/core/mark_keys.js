"use strict";
// Keys of the marks of a scatter in a row above it: names where they have room, else numbers, and a line from each to its
// mark. None stands over another, and no two lines cross: the row has the order of the marks.

bedplate.markKeys = (() => {
  const { charts } = bedplate;
  const FONT_PX = 11;
  const BETWEEN_PX = { names: 8, numbers: 4 };
  // Between the picture and the middle of the row; and what both need above the picture.
  const ABOVE_PX = 30;
  const ROOM_PX = 56;
  // What a key may reach out over the ends of the axis, where only figures of the other axis stand, and below the row.
  const OUT_PX = [50, 14];
  const MOST_NAMES = 12;

  const brush = document.createElement("canvas").getContext("2d");
  const wide = (lines) => {
    brush.font = `${FONT_PX}px ${getComputedStyle(document.body).fontFamily}`;
    return Math.max(...lines.map((line) => brush.measureText(line).width)) + 2;
  };

  // The middles of keys, as near to where they are wanted (ascending) as they can all be: neighbours that would overlap
  // stand together around the mean of their wants. Null where the row is too short.
  const spread = (wanted, widths, [left, right], between = BETWEEN_PX.names) => {
    const along = widths.reduce(
      (sums, width, i) => [...sums, i ? sums[i - 1] + (widths[i - 1] + width) / 2 + between : 0],
      [],
    );
    const [low, high] = [left + widths[0] / 2, right - widths.at(-1) / 2 - along.at(-1)];
    if (high < low) return null;
    const pools = [];
    wanted.forEach((want, i) => {
      let pool = { sum: want - along[i], count: 1 };
      while (pools.length && pools.at(-1).sum / pools.at(-1).count > pool.sum / pool.count) {
        const before = pools.pop();
        pool = { sum: before.sum + pool.sum, count: before.count + pool.count };
      }
      pools.push(pool);
    });
    return pools
      .flatMap(({ sum, count }) => Array(count).fill(Math.min(high, Math.max(low, sum / count))))
      .map((place, i) => place + along[i]);
  };

  // Names or numbers for the marks that the axis shows: `{ kind, texts, places }`, places and wants in pixels of the axis.
  /** @param {any[]} marks */
  const arranged = (marks, axis) => {
    const wanted = marks.map(({ x }) => axis.d2p(x));
    /** @type {[number, number]} */
    const row = [-OUT_PX[0], axis._length + OUT_PX[1]];
    /** @type {[string, string[][]][]} */
    const kinds = [
      ["names", marks.map(({ lines }) => lines)],
      ["numbers", marks.map(({ number }) => [String(number)])],
    ];
    for (const [kind, texts] of marks.length ? kinds.slice(marks.length <= MOST_NAMES ? 0 : 1) : []) {
      const places = spread(wanted, texts.map(wide), row, BETWEEN_PX[kind]);
      if (places) return { kind, texts, wanted, places };
    }
    return { kind: "none", texts: [], wanted, places: [] };
  };

  const annotation = ({ x }, lines, want, place) => ({
    x,
    xref: "x",
    y: 1,
    yref: "paper",
    yanchor: "middle",
    ax: place - want,
    ay: -ABOVE_PX,
    showarrow: true,
    arrowhead: 0,
    arrowwidth: 1,
    standoff: 0,
    borderpad: 1,
    arrowcolor: charts.colour("--muted"),
    text: lines.map(charts.plain).join("<br>"),
    align: "center",
    font: { size: FONT_PX, color: charts.colour("--ink") },
  });

  // Puts keys over a drawn picture, and again when it was zoomed or has another width. `marks` are `{ x, number, lines }`
  // in ascending order of x; `told(kind)` hears whether names, numbers or none stand there.
  const put = (id, marks, told) => {
    const node = document.getElementById(id);
    const label = () => {
      const axis = node._fullLayout.xaxis;
      const [from, to] = axis.range;
      const seen = marks.filter(({ x }) => x >= from && x <= to);
      const { kind, texts, wanted, places } = arranged(seen, axis);
      told(kind);
      return Plotly.relayout(node, {
        annotations: texts.map((lines, i) => annotation(seen[i], lines, wanted[i], places[i])),
      });
    };
    node.removeAllListeners("plotly_relayout");
    node.on("plotly_relayout", (moved) => {
      if (!("annotations" in moved)) label();
    });
    return label();
  };

  // The thin line of each mark's place, up to where its key's line begins.
  const stems = (marks, top) =>
    marks.map(({ x, lowest }) => ({
      type: "line",
      xref: "x",
      yref: "y",
      x0: x,
      x1: x,
      y0: lowest,
      y1: top,
      line: { width: 1, color: charts.colour("--line") },
      layer: "below",
    }));

  return { ROOM_PX, put, spread, stems };
})();
