"use strict";
// Every run at its place in the study: drift takes no side, but it should be seen.

bedplate.order = (() => {
  const { element: h, number, charts } = bedplate;
  const page = bedplate.document;
  const m = page.measurements;

  const median = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  };

  const draw = (state) => {
    // Places are kept for whole runs: of a part, or a metric that only parts have, its run's first figure is drawn.
    const ofRun = state.part === 0 && m.figures[state.metric].some((figure, i) => figure !== null && m.run[i] === state.run);
    const shownMetric = ofRun ? state.metric : bedplate.data.first(state.run);
    const metric = page.metrics[shownMetric];
    const figures = m.figures[shownMetric];
    const rows = bedplate.data.all.filter((i) => m.canary[i] || m.run[i] === state.run);
    const key = (i) => (m.canary[i] ? `canary ${m.study[i]}` : `${m.cell[i]}`);
    const levels = new Map();
    for (const i of rows) if (figures[i] !== null) levels.set(key(i), [...(levels.get(key(i)) ?? []), figures[i]]);
    const middles = new Map([...levels].map(([name, values]) => [name, median(values)]));
    const ratio = (i) => (figures[i] === null || !middles.get(key(i)) ? null : figures[i] / middles.get(key(i)));
    const panels = [...new Set(page.cells.map((cell) => cell.panel))];
    const name = (i) => (m.canary[i] ? "canary" : bedplate.data.cellName(m.cell[i]));
    const trace = (chosen, tint, symbol, size) => ({
      x: chosen.map((i) => m.order[i]), y: chosen.map(ratio), mode: "markers", hoverinfo: "text",
      text: chosen.map((i) => charts.plain(`${name(i)} · repetition ${m.repetition[i]} · ${number(figures[i])}${bedplate.unit(metric)}${m.canary[i] && m.emulated[i] ? " · emulated" : ""}${m.validity[i] === "suspect" ? " · suspect: " + m.reasons[i].join("; ") : ""}`)),
      marker: { size, symbol: chosen.map((i) => (m.validity[i] === "suspect" ? `${symbol}-open` : symbol)), color: tint, opacity: 0.9, line: { width: 1.4, color: tint } },
    });
    const shown = rows.filter((i) => ratio(i) !== null);
    const traces = panels.map((panel, place) => trace(shown.filter((i) => !m.canary[i] && page.cells[m.cell[i]].panel === panel), charts.series(place), "circle", 7));
    traces.push(trace(shown.filter((i) => m.canary[i]), charts.colour("--ink"), "diamond", 10));
    const counts = { failed: 0, not_run: 0, suspect: 0 };
    for (const i of rows) {
      if (m.outcome[i] in counts) counts[m.outcome[i]] += 1;
      else if (m.validity[i] === "suspect") counts.suspect += 1;
    }
    const canaries = shown.filter((i) => m.canary[i]).length;
    document.getElementById("order-note").textContent = `${metric.name}, ${bedplate.data.runName(state.run)}: n = ${shown.length - canaries} runs and ${canaries} canaries; ${counts.suspect} suspect, ${counts.failed} failed, ${counts.not_run} not run. A cell with one run stands at 1 by definition.`;
    document.getElementById("order-legend").replaceChildren(...panels.map((panel, place) => h("li", {}, h("span", { class: "swatch", colour: `var(--series-${(place % 8) + 1})` }), panel)), h("li", {}, "◆ canary"), h("li", {}, "○ suspect"));
    charts.draw("order-plot", traces, charts.layout({ height: 340, hovermode: "closest",
      shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: charts.colour("--muted"), width: 1 }, layer: "below" }],
      xaxis: charts.axis({ title: { text: "visits in the order they ran", font: { size: 12 } }, showgrid: false }), yaxis: charts.axis({ tickformat: ".2~f" }) }));
    bedplate.lazyTable("order-table", () => bedplate.table(["Order#", "Cell", "Repetition#", "Outcome", "Validity", `${metric.name}#`, "/ median of its cell#", "Reasons"],
      [...rows].sort((a, b) => m.study[a] - m.study[b] || m.order[a] - m.order[b]).map((i) => [
        String(m.order[i]), name(i), String(m.repetition[i]), m.outcome[i].replace("_", " "), m.validity[i], `${number(figures[i])}${m.emulated[i] && figures[i] !== null ? " (emulated)" : ""}`, ratio(i) === null ? "–" : ratio(i).toFixed(3), m.reasons[i].join("; ")])));
  };

  return { draw };
})();
