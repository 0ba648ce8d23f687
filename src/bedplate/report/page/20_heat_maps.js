"use strict";
// Heat maps as tables: one per variant, and the average over the variants that have every square.

(() => {
  const { element: h, number } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);

  const axis = (cells, name) => {
    const sizes = new Map();
    for (const cell of cells) sizes.set(cell[name], cell[`${name}_bytes`] ?? 0);
    return [...sizes].sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1)).map(([label]) => label);
  };

  const share = (value, map) => {
    if (map.high === map.low) return 0.5;
    if (map.logarithmic) return Math.log(value / map.low) / Math.log(map.high / map.low);
    return (value - map.low) / (map.high - map.low);
  };

  // The colours run over three stops; the upper half is dark enough for light figures.
  const shade = (depth) => `square${depth > 0.5 ? " upper" : ""}${depth > 0.6 ? " deep" : ""}`;

  // Made over all cells together, not over the repetitions of one.
  const OVER_CELLS = new Set(["time", "score", "m_time", "m_score"]);

  const describe = (index, state) => {
    const metric = page.metrics[state.metric];
    const found = bedplate.data.summary(index, state.run, state.metric, state.part);
    const cell = page.cells[index];
    const parts = [`${bedplate.data.cellName(index)}: ${metric.name} ${number(found?.median)}${bedplate.unit(metric)}`];
    if (found && found.n > 1 && found.minimum !== null) parts.push(`range ${number(found.minimum)} to ${number(found.maximum)}`);
    if (found && found.low !== null) parts.push(`95 % interval ${number(found.low)} to ${number(found.high)}`);
    if (found) parts.push(found.counted);
    parts.push(`after a power cut: ${cell.durability}`);
    if (cell.throttle) parts.push(`emulated device ${cell.throttle}`);
    if (cell.identical_to.length) parts.push(`in force is the same as in ${cell.identical_to.join("; ")}`);
    return parts.join(" · ");
  };

  const emptyReason = (index, state) => {
    const m = page.measurements;
    const stopped = bedplate.data.summary(index, state.run, state.metric, state.part);
    if (stopped && stopped.limit !== null) return [bedplate.beyond(stopped.limit), [`stopped at its limit, which is no measurement; ${stopped.counted}`]];
    const due = bedplate.data.measurements(index, state.run);
    const reasons = due.flatMap((i) => m.reasons[i]);
    const outcomes = new Set(due.map((i) => m.outcome[i]));
    if (outcomes.has("failed") || due.some((i) => m.unreached[i])) return ["failed", reasons];
    const reason = bedplate.data.summary(index, state.run, state.metric, state.part)?.reason;
    if (outcomes.has("completed")) return ["no value", [reason ?? `the runs have no ${page.metrics[state.metric].name}`]];
    return ["not run", reasons];
  };

  const square = (index, state, map, onChoose) => {
    const found = bedplate.data.summary(index, state.run, state.metric, state.part);
    const show = (text) => { byId("heat-detail").textContent = text; };
    if (!found || found.median === null) {
      const [word, reasons] = emptyReason(index, state);
      const text = `${bedplate.data.cellName(index)}: ${word}. ${[...new Set(reasons)].join("; ")}`;
      return h("td", { class: found && found.limit !== null ? "empty stopped" : "empty", tabindex: "0", title: text, onfocus: () => show(text), onmouseenter: () => show(text) }, word);
    }
    const depth = share(found.median, map);
    const text = describe(index, state);
    return h("td", {
      class: `${shade(depth)}${found.basis === "suspect" ? " suspect" : ""}`,
      share: depth.toFixed(3), tabindex: "0", "aria-label": text, "data-cell": index,
      onfocus: () => show(text), onmouseenter: () => show(text), onclick: () => onChoose(index),
      onkeydown: (event) => { if (event.key === "Enter") onChoose(index); },
    }, number(found.median));
  };

  const grid = (rows, columns, caption, make) => h("figure", { class: "map" },
    h("figcaption", {}, caption),
    h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, columns.some(Boolean) ? "fs \\ db" : "fs"), columns.map((column) => h("th", { scope: "col" }, column || "–")))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row" }, row), columns.map((column) => make(row, column)))))));

  const panel = (name, study, state, map, axes, onChoose) => {
    const cells = page.cells.map((cell, index) => ({ ...cell, index })).filter((cell) => cell.study === study && cell.panel === name);
    const pruned = page.pruned.filter((cell) => cell.study === study && cell.panel === name);
    const rows = axes.rows.filter((row) => [...cells, ...pruned].some((cell) => cell.row === row));
    const caption = cells.length ? bedplate.data.panelName(cells[0]) : name;
    const durability = [...new Set(cells.map((cell) => cell.durability))].join(", ");
    return grid(rows, axes.columns, h("span", {}, caption, h("span", { class: "note" }, ` — ${durability}`)), (row, column) => {
      const cell = cells.find((one) => one.row === row && one.column === column);
      if (cell) return square(cell.index, state, map, onChoose);
      const gone = pruned.find((one) => one.row === row && one.column === column);
      const where = `${name} · ${bedplate.data.blocks(row, column)}`;
      const absent = page.studies[study].selection ? "not among the selected cells" : "not in the plan";
      const text = gone ? `${where}: pruned. ${gone.reasons.join("; ")}` : `${where}: ${absent}`;
      const show = () => { byId("heat-detail").textContent = text; };
      return h("td", { class: "empty", title: text, tabindex: "0", onfocus: show, onmouseenter: show }, gone ? "pruned" : page.studies[study].selection ? "–" : "not planned");
    });
  };

  const average = (map, axes) => {
    if (!map.n) return null;
    const values = new Map(map.average.map(([row, column, value]) => [`${row}/${column}`, value]));
    const left = map.left_out.length ? ` Left out, as they lack a square: ${map.left_out.join(", ")}.` : "";
    const made = grid(axes.rows.filter((row) => axes.columns.some((column) => values.has(`${row}/${column}`))), axes.columns,
      `Average of ${map.n} variant${map.n === 1 ? "" : "s"} (n = ${map.n})`, (row, column) => {
        const value = values.get(`${row}/${column}`);
        if (value === undefined) return h("td", { class: "empty" }, "–");
        const depth = share(value, map);
        return h("td", { class: shade(depth), share: depth.toFixed(3) }, number(value));
      });
    made.append(h("p", { class: "note" }, `Over ${map.used.join(", ")}.${left}`));
    return made;
  };

  const draw = (state, onChoose) => {
    const metric = page.metrics[state.metric];
    const direction = metric.better === "neither" ? "a description, neither way is better" : `${metric.better} is better`;
    const whose = bedplate.data.runAndPart(state.run, state.part);
    const over = OVER_CELLS.has(metric.name) ? `Over all cells, for ${whose}.` : `Median over the repetitions of ${whose}.`;
    const audit = metric.name.startsWith("tpch_") && page.tpch ? ` This is ${page.tpch.note}.` : "";
    byId("heat-definition").textContent = `${metric.name}: ${metric.definition}; ${direction}. ${over}${audit}`;
    const list = byId("heat-list");
    const legend = byId("heat-legend");
    list.replaceChildren();
    legend.replaceChildren();
    page.studies.forEach((study, number_) => {
      const map = bedplate.data.heatMap(number_, state.run, state.metric, state.part);
      // A run belongs to the cells of its engine.
      const due = new Set(page.measurements.cell.filter((_, i) => page.measurements.run[i] === state.run));
      const mine = page.cells.filter((cell, index) => cell.study === number_ && (due.has(index) || due.size === 0));
      if (!map) {
        list.append(h("p", { class: "note" }, `${bedplate.data.several ? `${study.title}: ` : ""}no run of ${whose} has a value for ${metric.name}.`));
      }
      const ends = map ?? { low: 0, high: 0, n: 0, logarithmic: false };
      const axes = { rows: axis([...mine, ...page.pruned.filter((cell) => cell.study === number_)], "row"), columns: axis(mine, "column") };
      if (map) {
        legend.append(h("p", { class: "ramp" }, `${bedplate.data.several ? `${study.title}: ` : ""}${number(map.low)}`, h("i"), `${number(map.high)}${bedplate.unit(metric)}, one ${map.logarithmic ? "logarithmic" : "linear"} scale for all maps`,
          study.marks.length ? ` · ${study.marks.map((mark) => mark.split(":")[0]).join(", ")}` : ""));
      }
      for (const name of new Set(mine.map((cell) => cell.panel))) list.append(panel(name, number_, state, ends, axes, onChoose));
      const mean = map && new Set(mine.map((cell) => cell.panel)).size > 1 ? average(map, axes) : null;
      if (mean) list.append(mean);
    });
    bedplate.lazyTable("heat-table", () => bedplate.table(
      ["Cell", "After a power cut", `Median${bedplate.unit(metric)}#`, "Least#", "Greatest#", "95 % interval", "Variation#", "n"],
      page.cells.map((cell, index) => {
        const found = bedplate.data.summary(index, state.run, state.metric, state.part);
        const interval = found && found.low !== null ? `${number(found.low)} – ${number(found.high)}` : "–";
        return [bedplate.data.cellName(index), cell.durability, number(found?.median), number(found?.minimum), number(found?.maximum), interval,
          bedplate.percent(found?.variation), found ? found.counted : "n = 0"];
      })));
  };

  bedplate.view({ name: "heat maps", keys: ["run", "metric", "part", "shown"], place: "heat-list", draw: (state) => draw(state, (cell) => bedplate.choice.change({ courses: [...state.courses.filter((one) => one !== cell), cell].slice(-8), focus: cell, "effective.cell": cell })) });
})();
