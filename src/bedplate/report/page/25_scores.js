"use strict";
// TPC-H's scores over all cells, and the specification's own figures, which nobody audited.

bedplate.scores = (() => {
  const { element: h, number } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const NAMES = ["time", "score", "m_time", "m_score"];
  const OFFICIAL = { power: [["tpch_power", "power"]], throughput: [["tpch_throughput", "throughput"], ["tpch_composite", "composite"]] };

  const meter = (share, text) => h("div", { class: "meter" },
    h("span", { class: "rail" }, h("i", { width: `${Math.max(0, Math.min(1, share ?? 0)) * 100}%` })), h("b", {}, text));

  const figure = ([value, share, low, high, reasons]) => {
    if (value === null) return h("span", { class: "note" }, `none: ${reasons.join("; ")}`);
    const interval = low === null ? null : h("span", { class: "small" }, `95 %: ${number(low)}–${number(high)}`);
    return h("div", {}, meter(share, number(value)), h("span", { class: "small" }, `${(share * 100).toFixed(1)} % of ideal`), interval);
  };

  const table = (view) => {
    const rows = [...view.cells].sort((one, other) => (other.score[0] ?? -1) - (one.score[0] ?? -1));
    const heads = ["Cell", "After a power cut", "time, s", `score, of ${view.queries.length}`, "m-time, s", `m-score, of ${view.kept.length}`, "n"];
    return bedplate.table(heads, [
      ...rows.map((cell) => [
        h("div", {}, bedplate.data.cellName(cell.cell), cell.timeouts.length ? h("span", { class: "small" }, `over the limit: ${cell.timeouts.join(", ")}`) : null),
        page.cells[cell.cell].durability,
        ...NAMES.map((name) => figure(cell[name])),
        h("span", { class: "whole" }, `n = ${cell.n}${cell.basis === "suspect" ? " (suspect)" : ""}`)]),
      ...view.left_out.map(([cell, reason]) => [bedplate.data.cellName(cell), page.cells[cell].durability, reason, "–", "–", "–", "n = 0"]),
    ]);
  };

  const official = () => {
    const columns = page.runs.flatMap((run, index) => (OFFICIAL[run.kind] ?? []).map(([metric, words]) => ({ metric, words, run: index })));
    const shown = columns.filter(({ metric }) => bedplate.data.metricOf.has(metric));
    const value = (cell, { metric, run }) => {
      const found = bedplate.data.named(cell, run, metric);
      if (!found || found.median === null) return h("span", { class: "note" }, `none${found?.reason ? `: ${found.reason}` : ""}`);
      const range = found.n > 1 && found.minimum !== null ? h("span", { class: "small" }, `${number(found.minimum)}–${number(found.maximum)}`) : null;
      return h("div", {}, number(found.median), range);
    };
    return bedplate.table(["Cell", "After a power cut", ...shown.map((one) => `${one.words} of ${bedplate.data.runName(one.run)}, QphH@SF`)],
      page.cells.map((cell, index) => [bedplate.data.cellName(index), cell.durability, ...shown.map((one) => value(index, one))]));
  };

  const draw = (state) => {
    if (!byId("scores")) return;
    const views = page.tpch.scores;
    const run = views.some((view) => view.run === state.run) ? state.run : views[0].run;
    const chosen = views.filter((view) => view.run === run);
    byId("scores-note").textContent = run === state.run
      ? `${bedplate.data.runName(run)}, best score first. An interval says how steady a cell is; it needs three complete repetitions.`
      : `${bedplate.data.runName(state.run)} has no scores; these are those of ${bedplate.data.runName(run)}.`;
    const head = (view) => (bedplate.data.several ? h("h3", {}, page.studies[view.study].title) : null);
    const all = (make) => chosen.flatMap((view) => [head(view), make(view)].filter((part) => part !== null));
    byId("scores-table").replaceChildren(...all(table));
    byId("scores-kept").textContent = chosen.map((view) => {
      const study = bedplate.data.several ? `${page.studies[view.study].title}: ` : "";
      const dropped = view.dropped.map(([query]) => query);
      return `${study}${view.kept.length} of ${view.queries.length} queries are left in the m-figures${dropped.length ? `; left out: ${dropped.join(", ")}` : ""}.`;
    }).join(" ");
    bedplate.lazyTable("scores-dropped", () => h("div", {}, all((view) => (view.dropped.length
      ? bedplate.table(["Query", "Why it is left out"], view.dropped.map(([query, reasons]) => [query, h("div", {}, reasons.map((reason) => h("div", {}, reason)))]))
      : h("p", {}, "None.")))));
    byId("scores-audit").textContent = `QphH@SF, medians over the repetitions with their range: ${page.tpch.note}.`;
    byId("scores-official").replaceChildren(official());
  };

  return { draw };
})();
