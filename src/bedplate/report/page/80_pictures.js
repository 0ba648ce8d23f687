"use strict";
// Each picture of the page with the table behind it: what can be saved. A picture without an id here is a table itself.

(() => {
  const BEHIND = {
    "heat-list": "heat-table", "courses-plot": "courses-table", "lmdb-plot": "lmdb-table", "raw-throughput": "raw-table", "raw-cpu": "raw-table",
    "items-plot": "items-table", "latency-linear": "latency-table", "latency-logarithmic": "latency-table", "distribution-plot": "distribution-table",
    "effects-shares": "effects-table", "effects-ratios": "effects-table", "order-plot": "order-table", "plans-trees": "plans-table",
  };
  const TABLES = ["scores-table", "scores-official", "caches-table", "checkpoints-table"];

  for (const [id, table] of Object.entries(BEHIND)) bedplate.save.attach(document.getElementById(id), { name: id.replace(/-(list|plot)$/, ""), rows: bedplate.save.rowsBehind(table) });
  for (const id of TABLES) bedplate.save.attach(document.getElementById(id), { name: id.replace(/-table$/, "") });
  // Tables that stand on the page before any script.
  document.querySelectorAll("#answer .wide, #summary .wide, #claims .wide, #durability .wide, #machine .wide, #failures .wide").forEach((place) => {
    if (!place.closest("details")) bedplate.save.attach(place, { name: place.closest("section").id });
  });
})();
