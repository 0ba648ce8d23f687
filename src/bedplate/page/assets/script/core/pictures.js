"use strict";
// Each picture of the page with the table behind it: what can be saved. A picture without an id here is a table itself.

(() => {
  const BEHIND = {
    "heat-list": ["heat-table", "heat-legend"],
    "courses-plot": ["courses-table", "chosen"],
    "lmdb-plot": ["lmdb-table"],
    "raw-throughput": ["raw-table", "raw-legend"],
    "raw-cpu": ["raw-table", "raw-legend"],
    "items-plot": ["items-table", "items-legend"],
    "latency-linear": ["latency-table"],
    "latency-logarithmic": ["latency-table"],
    "distribution-plot": ["distribution-table", "chosen"],
    "effects-shares": ["effects-table"],
    "effects-ratios": ["effects-table"],
    "order-plot": ["order-table", "order-legend"],
    "ranking-plot": ["ranking-table", "ranking-legend"],
    "plans-trees": ["plans-table"],
    "cut-speed-plot": ["cut-speed-table", "cut-speed-legend"],
    "cut-lost-plot": ["cut-lost-table"],
    "cut-recovery-plot": ["cut-recovery-table"],
  };
  const TABLES = ["compare-table", "scores-table", "scores-official", "caches-table", "checkpoints-table"];

  for (const [id, [table, legend]] of Object.entries(BEHIND))
    bedplate.save.attach(document.getElementById(id), {
      name: id.replace(/-(list|plot)$/, ""),
      rows: bedplate.save.rowsBehind(table),
      legend,
    });
  for (const id of TABLES) bedplate.save.attach(document.getElementById(id), { name: id.replace(/-table$/, "") });
  // Tables that stand on the page before any script.
  document
    .querySelectorAll(
      "#answer .wide, #summary .wide, #claims .wide, #durability .wide, #machine .wide, #failures .wide",
    )
    .forEach((place) => {
      if (!place.closest("details:not(.part)") && !place.querySelector(".plot"))
        bedplate.save.attach(place, { name: place.closest("section").id });
    });
  // Each study's answer as a text for a mail.
  document
    .querySelectorAll("#answer .headline")
    .forEach((place, study) => bedplate.save.attachCopy(place, bedplate.document.mails[study]));
})();
