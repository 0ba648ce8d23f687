"use strict";
// The choice that a reader makes, and what answers to it.

(() => {
  const { element: h } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const MOST_CELLS = 8;
  const state = { run: 0, metric: 0, repetition: 1, cells: [], focus: 0, turn: 0 };

  const option = (value, text, selected) => h("option", { value, selected }, text);

  const firstChoice = () => {
    const tps = bedplate.data.metricOf.get("tps");
    [state.metric] = bedplate.data.offered.includes(tps) ? [tps] : bedplate.data.offered;
    const writing = page.runs.findIndex((run) => run.run.includes("write"));
    if (writing >= 0) state.run = writing;
    const measured = page.cells.map((_, cell) => cell).filter((cell) => bedplate.data.summary(cell, state.run, state.metric)?.n);
    // One cell of each variant, those with the usual 8 KiB blocks where there are any.
    const panels = new Map();
    for (const cell of measured) {
      const name = bedplate.data.panelName(page.cells[cell]);
      const usual = page.cells[cell].column_bytes === 8192 ? 2 : 0;
      const score = usual + (page.cells[cell].row_bytes === 4096 ? 1 : 0);
      if (!panels.has(name) || panels.get(name)[1] < score) panels.set(name, [cell, score]);
    }
    state.cells = [...panels.values()].map(([cell]) => cell).slice(0, 4);
    state.focus = state.cells[0];
  };

  const drawRuns = () => {
    state.turn += 1;
    if (!state.cells.includes(state.focus)) [state.focus] = state.cells;
    byId("choose-focus").replaceChildren(...state.cells.map((cell) => option(cell, bedplate.data.cellName(cell), cell === state.focus)));
    byId("cell-choice").querySelector("summary").textContent = `Choose cells (${state.cells.length} of ${page.cells.length})`;
    byId("cell-list").querySelectorAll("input").forEach((box) => {
      box.checked = state.cells.includes(Number(box.value));
      box.disabled = !box.checked && state.cells.length >= MOST_CELLS;
    });
    return Promise.all([bedplate.courses.draw(state), bedplate.courses.drawLatency(state), bedplate.courses.drawDistribution(state)]);
  };

  const chooseCell = (cell) => {
    if (!state.cells.includes(cell)) state.cells = [...state.cells, cell].slice(-MOST_CELLS);
    state.focus = cell;
    byId("choose-effective").value = String(cell);
    bedplate.effective.draw(cell);
    drawRuns();
  };

  const drawAll = () => {
    bedplate.heatMaps.draw(state, chooseCell);
    bedplate.tables.drawCaches(state.run);
    bedplate.tables.drawCheckpoints(state.run);
    bedplate.order.draw(state);
    return drawRuns();
  };

  const metricGroups = () => {
    const groups = new Map();
    bedplate.data.offered.forEach((index) => {
      const metric = page.metrics[index];
      const name = metric.name.startsWith("latency") || metric.name.startsWith("schedule") ? "latency" : metric.name.startsWith("tps") || metric.name.startsWith("trans") ? "throughput" : "everything else";
      groups.set(name, [...(groups.get(name) ?? []), option(index, metric.name, index === state.metric)]);
    });
    return [...groups].map(([label, options]) => h("optgroup", { label }, options));
  };

  const wire = () => {
    const on = (id, act) => byId(id).addEventListener("change", (event) => act(Number(event.target.value)));
    byId("choose-run").replaceChildren(...page.runs.map((_, index) => option(index, bedplate.data.runName(index), index === state.run)));
    byId("choose-metric").replaceChildren(...metricGroups());
    const repetitions = [...new Set(page.measurements.repetition.filter((_, i) => !page.measurements.canary[i]))].sort((a, b) => a - b);
    byId("choose-repetition").replaceChildren(...repetitions.map((n) => option(n, String(n), n === state.repetition)));
    byId("cell-list").append(...page.cells.map((_, cell) => h("label", {}, h("input", { type: "checkbox", value: cell, onchange: (event) => {
      state.cells = event.target.checked ? [...state.cells, cell] : state.cells.filter((one) => one !== cell);
      drawRuns();
    } }), h("span", {}, bedplate.data.cellName(cell)))));
    byId("choose-effective").replaceChildren(...page.cells.map((_, cell) => option(cell, bedplate.data.cellName(cell), cell === state.focus)));
    on("choose-run", (value) => { state.run = value; drawAll(); });
    on("choose-metric", (value) => { state.metric = value; bedplate.heatMaps.draw(state, chooseCell); bedplate.order.draw(state); });
    on("choose-repetition", (value) => { state.repetition = value; drawRuns(); });
    on("choose-focus", (value) => { state.focus = value; state.turn += 1; drawRuns(); });
    on("choose-effective", (value) => bedplate.effective.draw(value));
    // Plotly's colours are drawn in, not styled: another theme, or paper, needs another drawing.
    for (const query of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(query).addEventListener("change", drawAll);
  };

  firstChoice();
  wire();
  bedplate.effective.drawCommon();
  bedplate.effective.draw(state.focus ?? 0);
  drawAll().then(() => { document.documentElement.dataset.ready = "yes"; });
})();
