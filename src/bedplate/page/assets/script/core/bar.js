"use strict";
// The bar that stays in sight: contents, run, metric and part.

(() => {
  const { element: h, choice } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const option = (value, text, selected) => h("option", { value, selected }, text);

  const grouped = (entries) => {
    const groups = new Map();
    for (const [group, made] of entries) groups.set(group, [...(groups.get(group) ?? []), made]);
    return [...groups].flatMap(([label, options]) => (label ? h("optgroup", { label }, options) : options));
  };

  const SCORES = bedplate.document.rules.scores;
  const metricGroup = (name) => {
    if (name.startsWith("latency") || name.startsWith("schedule")) return "latency";
    if (name.startsWith("tps") || name.startsWith("trans")) return "throughput";
    if (SCORES.includes(name) || name.startsWith("tpch_")) return "scores";
    return name.endsWith("_s") ? "times" : "everything else";
  };
  const METRIC_GROUPS = ["throughput", "latency", "times", "scores", "everything else"];

  // The choices that follow from the run.
  const draw = (state) => {
    byId("choose-run").replaceChildren(
      ...page.runs.map((_, index) => option(index, bedplate.data.runName(index), index === state.run)),
    );
    byId("choose-metric").replaceChildren(
      ...grouped(
        bedplate.data
          .offered(state.run)
          .map((index) => {
            const { name } = page.metrics[index];
            return [metricGroup(name), option(index, name, index === state.metric)];
          })
          .sort(([one], [other]) => METRIC_GROUPS.indexOf(one) - METRIC_GROUPS.indexOf(other)),
      ),
    );
    const parts = bedplate.data.parts(state.run, state.metric);
    byId("part-choice").hidden = page.parts.length < 2;
    byId("choose-part").replaceChildren(
      ...grouped(parts.map((part) => [page.parts[part][1], option(part, page.parts[part][0], part === state.part)])),
    );
  };

  for (const key of ["run", "metric", "part"]) {
    byId(`choose-${key}`).addEventListener("change", (event) => choice.change({ [key]: Number(event.target.value) }));
  }
  // The contents of a narrow window.
  byId("menu").addEventListener("click", ({ target }) => {
    if (target.closest("a")) byId("menu").open = false;
  });
  bedplate.view({ name: "bar", keys: ["run", "metric", "part"], draw });
})();
