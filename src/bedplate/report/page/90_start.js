"use strict";
// The choice that a reader makes, and what answers to it.

(async () => {
  const { element: h } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const MOST_CELLS = 8;
  const state = { run: 0, metric: 0, part: 0, repetition: 1, cells: [], focus: 0, turn: 0 };

  const option = (value, text, selected) => h("option", { value, selected }, text);

  // The metric and the part stay as they are where the run has them.
  const keepWhatIsThere = () => {
    const metrics = bedplate.data.offered(state.run);
    if (!metrics.includes(state.metric)) state.metric = metrics.includes(bedplate.data.first(state.run)) ? bedplate.data.first(state.run) : metrics[0];
    const parts = bedplate.data.parts(state.run, state.metric);
    if (!parts.includes(state.part)) [state.part] = parts;
  };

  const firstChoice = () => {
    const writing = page.runs.findIndex((run) => run.run.includes("write"));
    const querying = page.runs.findIndex((run) => run.kind === "power");
    state.run = [writing, querying, 0].find((run) => run >= 0);
    state.metric = bedplate.data.first(state.run);
    keepWhatIsThere();
    chooseCells();
  };

  const chooseCells = () => {
    // What was stopped at a limit was measured as well, up to there.
    const told = (entry) => entry && (entry.n > 0 || entry.limit !== null);
    const measured = page.cells.map((_, cell) => cell).filter((cell) => told(bedplate.data.summary(cell, state.run, state.metric, state.part)));
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
    byId("choose-focus")?.replaceChildren(...state.cells.map((cell) => option(cell, bedplate.data.cellName(cell), cell === state.focus)));
    byId("cell-choice").querySelector("summary").textContent = `Choose cells (${state.cells.length} of ${page.cells.length})`;
    byId("cell-list").querySelectorAll("input").forEach((box) => {
      box.checked = state.cells.includes(Number(box.value));
      box.disabled = !box.checked && state.cells.length >= MOST_CELLS;
    });
    bedplate.items.draw(state);
    bedplate.raw.draw(state);
    return Promise.all([bedplate.scores.draw(state), bedplate.courses.draw(state), bedplate.courses.drawLatency(state), bedplate.courses.drawDistribution(state)]);
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
    bedplate.lmdb.draw(state);
    return Promise.all([drawRuns(), bedplate.plans.draw(state)]);
  };

  const grouped = (entries) => {
    const groups = new Map();
    for (const [group, made] of entries) groups.set(group, [...(groups.get(group) ?? []), made]);
    return [...groups].flatMap(([label, options]) => (label ? h("optgroup", { label }, options) : options));
  };

  const SCORES = ["time", "score", "m_time", "m_score"];
  const metricGroup = (name) => {
    if (name.startsWith("latency") || name.startsWith("schedule")) return "latency";
    if (name.startsWith("tps") || name.startsWith("trans")) return "throughput";
    if (SCORES.includes(name) || name.startsWith("tpch_")) return "scores";
    return name.endsWith("_s") ? "times" : "everything else";
  };
  const METRIC_GROUPS = ["throughput", "latency", "times", "scores", "everything else"];

  // The choices that follow from the run.
  const offer = () => {
    byId("choose-metric").replaceChildren(...grouped(bedplate.data.offered(state.run).map((index) => {
      const { name } = page.metrics[index];
      return [metricGroup(name), option(index, name, index === state.metric)];
    }).sort(([one], [other]) => METRIC_GROUPS.indexOf(one) - METRIC_GROUPS.indexOf(other))));
    const parts = bedplate.data.parts(state.run, state.metric);
    byId("part-choice").hidden = page.parts.length < 2;
    byId("choose-part").replaceChildren(...grouped(parts.map((part) => [page.parts[part][1], option(part, page.parts[part][0], part === state.part)])));
  };

  const wire = () => {
    const on = (id, act) => byId(id).addEventListener("change", (event) => act(Number(event.target.value)));
    byId("choose-run").replaceChildren(...page.runs.map((_, index) => option(index, bedplate.data.runName(index), index === state.run)));
    offer();
    const repetitions = [...new Set(page.measurements.repetition.filter((_, i) => !page.measurements.canary[i]))].sort((a, b) => a - b);
    byId("choose-repetition").replaceChildren(...repetitions.map((n) => option(n, String(n), n === state.repetition)));
    byId("cell-list").append(...page.cells.map((_, cell) => h("label", {}, h("input", { type: "checkbox", value: cell, onchange: (event) => {
      state.cells = event.target.checked ? [...state.cells, cell] : state.cells.filter((one) => one !== cell);
      drawRuns();
    } }), h("span", {}, bedplate.data.cellName(cell)))));
    byId("choose-effective").replaceChildren(...page.cells.map((_, cell) => option(cell, bedplate.data.cellName(cell), cell === state.focus)));
    const drawSquares = () => { keepWhatIsThere(); offer(); bedplate.heatMaps.draw(state, chooseCell); bedplate.order.draw(state); };
    on("choose-run", (value) => {
      state.run = value;
      keepWhatIsThere();
      offer();
      // A run of another study has other cells.
      if (!state.cells.some((cell) => bedplate.data.measurements(cell, value).length)) chooseCells();
      drawAll();
    });
    on("choose-metric", (value) => { state.metric = value; drawSquares(); });
    on("choose-part", (value) => { state.part = value; drawSquares(); });
    on("choose-repetition", (value) => { state.repetition = value; drawRuns(); });
    if (byId("choose-focus")) on("choose-focus", (value) => { state.focus = value; state.turn += 1; drawRuns(); });
    on("choose-effective", (value) => bedplate.effective.draw(value));
    // Plotly's colours are drawn in, not styled: another theme, or paper, needs another drawing.
    for (const query of ["(prefers-color-scheme: dark)", "print"]) window.matchMedia(query).addEventListener("change", drawAll);
  };

  await bedplate.data.open();
  firstChoice();
  wire();
  bedplate.effective.drawCommon();
  bedplate.effective.draw(state.focus ?? 0);
  await drawAll();
  document.documentElement.dataset.ready = "yes";
})();
