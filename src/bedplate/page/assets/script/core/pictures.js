"use strict";
// Each picture of the page with the table behind it: what can be saved. A picture without an id here is a table itself.

(() => {
  // Those whose table or legend is not called as they are: `NAME-plot`, `NAME-table`, `NAME-legend`.
  const BEHIND = {
    "heat-list": ["heat-table", "heat-legend"],
    "courses-plot": ["courses-table", "chosen"],
    "raw-throughput": ["raw-table", "raw-legend"],
    "raw-cpu": ["raw-table", "raw-legend"],
    "latency-linear": ["latency-table"],
    "latency-logarithmic": ["latency-table"],
    "distribution-plot": ["distribution-table", "chosen"],
    "effects-shares": ["effects-table"],
    "effects-ratios": ["effects-table"],
    "plans-trees": ["plans-table"],
  };
  for (const { id } of document.querySelectorAll("[id$='-plot']"))
    BEHIND[id] ??= [id.replace(/plot$/, "table"), id.replace(/plot$/, "legend")];
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
    .querySelectorAll("#answer .front")
    .forEach((place, study) => bedplate.save.attachCopy(place, bedplate.document.mails[study]));
})();
