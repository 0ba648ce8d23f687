"use strict";
// Cache ratios and checkpoints: tables whose cells are the pictures.

(() => {
  const { element: h, told, percent } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const CACHES = [
    ["shared_buffers_hit_ratio", "Shared buffers hit ratio"],
    ["page_cache_hit_ratio", "Page cache hit ratio"],
    ["fast_transaction_share", "Share of fast transactions"],
  ];
  const PARTS = [
    ["tps_in_checkpoint", "Inside"],
    ["tps_settling", "Settling"],
    ["tps_outside", "Outside"],
  ];

  const meter = (share, text) =>
    h(
      "div",
      { class: "meter" },
      h("span", { class: "rail" }, h("i", { width: `${Math.max(0, Math.min(1, share)) * 100}%` })),
      h("b", {}, text),
    );

  const define = (id, names) =>
    byId(id).replaceChildren(
      ...names
        .filter((name) => bedplate.data.metricOf.has(name))
        .flatMap((name) => {
          const metric = page.metrics[bedplate.data.metricOf.get(name)];
          return [h("dt", {}, metric.name), h("dd", {}, metric.definition)];
        }),
    );

  const counted = (cell, run, names) => {
    const found = names.map((name) => bedplate.data.named(cell, run, name)).find((one) => one);
    return h("span", { class: "whole" }, found ? found.counted : "n = 0");
  };

  const drawCaches = ({ run }) => {
    const offered = CACHES.filter(([name]) => bedplate.data.metricOf.has(name));
    const known = offered.length ? offered : CACHES;
    const due = bedplate.choice.shown().filter((cell) => bedplate.data.measurements(cell, run).length);
    const having = due.filter((cell) => known.some(([name]) => bedplate.data.named(cell, run, name)?.n));
    if (!having.length) {
      const reasons = new Set(
        due.flatMap((cell) => known.map(([name]) => bedplate.data.named(cell, run, name)?.reason)).filter(Boolean),
      );
      byId("caches-table").replaceChildren(
        h(
          "p",
          {},
          `No run of ${bedplate.data.runName(run)} has a cache ratio${reasons.size ? `: ${[...reasons].join("; ")}` : ""}.`,
        ),
      );
      define("caches-definitions", []);
      return;
    }
    byId("caches-table").replaceChildren(
      bedplate.table(
        ["Cell", ...known.map(([, words]) => words), "n"],
        due.map((cell) => () => [
          bedplate.cellHead(cell),
          ...known.map(([name]) => {
            const found = bedplate.data.named(cell, run, name);
            return found && found.mean !== null
              ? meter(found.mean, percent(found.mean))
              : h("span", { class: "note" }, `none${found?.reason ? `: ${found.reason}` : ""}`);
          }),
          counted(
            cell,
            run,
            known.map(([name]) => name),
          ),
        ]),
        { cells: due, entriesOf: (cell) => known.map(([name]) => bedplate.data.named(cell, run, name)) },
      ),
    );
    define(
      "caches-definitions",
      known.map(([name]) => name),
    );
  };

  const drawCheckpoints = ({ run }) => {
    const values = PARTS.flatMap(([name]) =>
      bedplate.choice.shown().map((cell) => bedplate.data.named(cell, run, name)?.mean ?? 0),
    );
    const largest = Math.max(...values, 0);
    if (!largest) {
      byId("checkpoints-table").replaceChildren(
        h("p", {}, `No run of ${bedplate.data.runName(run)} held a checkpoint.`),
      );
      define("checkpoints-definitions", []);
      return;
    }
    byId("checkpoints-table").replaceChildren(
      bedplate.table(
        ["Cell", ...PARTS.flatMap(([, words]) => [`${words}, tps`, "variation#"]), "Inside / outside#", "n"],
        bedplate.choice.shown().map((cell) => () => {
          const inside = bedplate.data.named(cell, run, "tps_in_checkpoint")?.mean;
          const outside = bedplate.data.named(cell, run, "tps_outside")?.mean;
          return [
            bedplate.cellHead(cell),
            ...PARTS.flatMap(([name]) => {
              const found = bedplate.data.named(cell, run, name);
              const shown = found && found.mean !== null ? meter(found.mean / largest, told(found)) : "–";
              return [shown, percent(bedplate.data.named(cell, run, `${name}_cv`)?.mean)];
            }),
            inside && outside ? (inside / outside).toFixed(2) : "–",
            counted(
              cell,
              run,
              PARTS.map(([name]) => name),
            ),
          ];
        }),
        {
          cells: bedplate.choice.shown(),
          entriesOf: (cell) => PARTS.map(([name]) => bedplate.data.named(cell, run, name)),
        },
      ),
    );
    define(
      "checkpoints-definitions",
      PARTS.flatMap(([name]) => [name, `${name}_cv`]),
    );
  };

  bedplate.view({ name: "caches", keys: ["run", "shown"], place: "caches-table", draw: drawCaches });
  bedplate.view({
    name: "checkpoints",
    keys: ["run", "shown"],
    place: "checkpoints-table",
    draw: drawCheckpoints,
  });
})();
