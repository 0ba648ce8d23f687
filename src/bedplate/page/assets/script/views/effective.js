"use strict";
// What was asked of a cell, what was in force, and the commands that make it again.

(() => {
  const { element: h } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const text = (value) => (value === null ? "–" : String(value));

  const comparisons = (rows) =>
    h(
      "div",
      { class: "wide", tabindex: "0" },
      (() => {
        const made = bedplate.table(
          ["What", "Asked", "Effective", "Read from"],
          rows.map((row) => row.map(text)),
        );
        made.querySelectorAll("tbody tr").forEach((line, i) => {
          if (rows[i][1] !== null && rows[i][2] !== null && text(rows[i][1]) !== text(rows[i][2]))
            line.className = "differs";
        });
        return made;
      })(),
    );

  const facts = (entries) =>
    h(
      "dl",
      { class: "facts" },
      entries.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, text(value))]),
    );

  bedplate.choice.own("effective.cell", { code: bedplate.choice.cellCode });

  // The cell that is asked for here, else the one that is looked at.
  const draw = (state) => {
    const index = state["effective.cell"] ?? state.focus ?? 0;
    byId("choose-effective").replaceChildren(
      ...page.cells.map((_, one) => h("option", { value: one, selected: one === index }, bedplate.data.cellName(one))),
    );
    const cell = page.cells[index];
    const place = byId("effective-cell");
    const found = cell && page.effective[cell.study].cells[cell.id];
    if (!found) {
      place.replaceChildren(h("p", {}, "No visit of this cell has been recorded."));
      return;
    }
    const extra = [
      [bedplate.words.after_power_cut, [cell.durability, ...found.durability].join("; ")],
      ["identical to", cell.identical_to.join("; ") || null],
      ["shown is", `${found.visit}, executor ${found.executor}`],
      ...Object.entries(found.versions),
      ...Object.entries(found.device).map(([name, value]) => [`device ${name}`, value]),
      ...found.flushes.map(([device, pattern, calls, flushes]) => [
        `flushes of the ${device} device`,
        `${flushes} in ${calls} ${pattern} fsyncs`,
      ]),
      ...found.timings.map(([step, seconds]) => [`time: ${step}`, `${seconds} s`]),
    ].filter(([, value]) => value !== null);
    place.replaceChildren(
      found.rows.length
        ? comparisons(found.rows)
        : h(
            "p",
            { class: "note" },
            page.effective[cell.study].common.length
              ? "Nothing tells this cell apart from the others."
              : "Nothing was read back.",
          ),
      facts(extra),
      h("h3", {}, "Commands"),
      h("pre", { tabindex: "0" }, found.commands.length ? found.commands.join("\n") : "None was recorded."),
      found.commands.length
        ? h(
            "p",
            { class: "save" },
            h(
              "button",
              {
                type: "button",
                onclick: () =>
                  bedplate.save.download(
                    `${bedplate.save.slug(`commands-${cell.id}`)}.txt`,
                    "text/plain;charset=utf-8",
                    `${found.commands.join("\n")}\n`,
                  ),
              },
              "Save commands",
            ),
          )
        : "",
      found.kernel_messages.length ? h("pre", { tabindex: "0" }, found.kernel_messages.join("\n")) : "",
    );
  };

  const drawCommon = () =>
    byId("effective-common").replaceChildren(
      ...page.effective.map((study, number) =>
        h(
          "div",
          {},
          bedplate.data.several ? h("h3", {}, page.studies[number].name) : "",
          study.common.length ? comparisons(study.common) : h("p", { class: "note" }, "Nothing is alike in all cells."),
        ),
      ),
    );

  byId("choose-effective").addEventListener("change", (event) =>
    bedplate.choice.change({ "effective.cell": Number(event.target.value) }),
  );
  bedplate.view({ name: "effective", keys: ["focus", "effective.cell"], place: "effective-cell", draw });
  bedplate.view({ name: "effective alike", keys: [], place: "effective-common", draw: drawCommon });
})();
