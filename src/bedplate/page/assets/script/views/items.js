"use strict";
// The parts of a run, queries or phases, side by side in the chosen cells. A timeout is drawn, and is no value.

(() => {
  const { element: h, told, charts } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const TIMES = ["query_s", "phase_s", "table_load_s"];
  const choice = { group: null, metric: null, logarithmic: false };
  let last = null;

  for (const name of ["items.group", "items.metric", "items.logarithmic"]) bedplate.choice.own(name);

  // The parts of a run by their groups, and the metrics that a group has, its time first.
  const groups = (run) => {
    const found = new Map();
    for (const metric of bedplate.data.offered(run)) {
      for (const part of bedplate.data.parts(run, metric)) {
        if (!part) continue;
        const group = page.parts[part][1];
        if (!found.has(group)) found.set(group, { parts: new Set(), metrics: new Set() });
        found.get(group).parts.add(part);
        found.get(group).metrics.add(metric);
      }
    }
    const rank = (metric) => {
      const place = TIMES.indexOf(page.metrics[metric].name);
      return place < 0 ? TIMES.length : place;
    };
    return new Map(
      [...found].map(([name, { parts, metrics }]) => [
        name,
        {
          parts: [...parts].sort((a, b) => a - b),
          metrics: [...metrics].sort((a, b) => rank(a) - rank(b) || a - b),
        },
      ]),
    );
  };

  const option = (value, text, selected) => h("option", { value, selected }, text);

  const offer = (found) => {
    if (!found.has(choice.group)) choice.group = found.has("queries") ? "queries" : [...found.keys()][0];
    const { metrics } = found.get(choice.group);
    if (!metrics.includes(choice.metric)) [choice.metric] = metrics;
    byId("choose-group").replaceChildren(...[...found.keys()].map((name) => option(name, name, name === choice.group)));
    byId("choose-item-metric").replaceChildren(
      ...metrics.map((metric) => option(metric, page.metrics[metric].name, metric === choice.metric)),
    );
  };

  // "query 14" is "14" where everything beside it is a query too.
  const labels = (parts) => {
    const names = parts.map(bedplate.data.partName);
    const before = names[0].slice(0, names[0].lastIndexOf(" ") + 1);
    const shared = before && names.every((name) => name.startsWith(before)) ? before : "";
    return { names, ticks: names.map((name) => name.slice(shared.length)), title: shared.trim() };
  };

  const stopped = (entry) => entry.mean === null && entry.limit !== null;

  const words = (entry, unit) => {
    if (stopped(entry)) {
      const limit = `${bedplate.beyond(entry.limit).slice(2)}${unit}`;
      return `${bedplate.words.filled("stopped_at", { limit })}, not measured; ${entry.counted}`;
    }
    return charts.told(entry, unit);
  };

  // The bars of one cell: what was measured, and beside it in the same place what was stopped.
  const bars = (cell, place, parts, ticks, unit) => {
    const entries = parts.map((part) => bedplate.data.summary(cell, last.run, choice.metric, part));
    const tint = charts.series(place);
    const chosen = (keep) => entries.map((entry) => (entry && keep(entry) ? entry : null));
    const shared = (drawn, heights) => ({
      type: "bar",
      name: charts.plain(bedplate.data.cellName(cell)),
      offsetgroup: String(place),
      legendgroup: String(cell),
      x: ticks,
      y: heights.map((value) => (choice.logarithmic && !(value > 0) ? null : value)),
      textposition: "outside",
      textangle: -90,
      textfont: { size: 11, color: charts.colour("--ink") },
      cliponaxis: false,
      constraintext: "none",
      customdata: drawn.map((entry, i) =>
        charts.plain(
          `${bedplate.data.partName(parts[i])} · ${bedplate.data.cellName(cell)}: ${entry ? words(entry, unit) : ""}`,
        ),
      ),
      hovertemplate: "%{customdata}<extra></extra>",
    });
    const measured = chosen((entry) => entry.mean !== null);
    const beyond = chosen(stopped);
    return [
      {
        ...shared(
          measured,
          measured.map((entry) => entry?.mean ?? null),
        ),
        marker: { color: tint },
        text: measured.map((entry) => bedplate.data.doubtMark(entry)),
        error_y: charts.range(measured),
      },
      {
        ...shared(
          beyond,
          beyond.map((entry) => entry?.limit ?? null),
        ),
        text: beyond.map((entry) => (entry ? bedplate.beyond(entry.limit) : "")),
        marker: {
          color: tint,
          line: { width: 1, color: tint },
          pattern: { shape: "/", fillmode: "replace", size: 6, solidity: 0.35 },
        },
      },
    ];
  };

  const legend = (cells, any) =>
    charts.legend(
      "items-legend",
      ["items-plot"],
      [
        ...charts.cellEntries(cells),
        ...(any
          ? [{ swatch: h("span", { class: "swatch block stopped" }), words: "stopped at its limit, not measured" }]
          : []),
      ],
    );

  const table = (cells, parts, metric) =>
    bedplate.table(
      [
        "Part",
        "Cell",
        bedplate.words.capital(bedplate.words.after_power_cut),
        `Mean${bedplate.unit(metric)}#`,
        "Least#",
        "Greatest#",
        "Stopped at#",
        "n",
      ],
      parts.flatMap((part) =>
        cells.map((cell) => {
          const entry = bedplate.data.summary(cell, last.run, choice.metric, part);
          const limit = entry && entry.limit !== null ? `${bedplate.beyond(entry.limit)} (${entry.censored}×)` : "–";
          return [
            bedplate.data.partName(part),
            bedplate.data.cellName(cell),
            page.cells[cell].durability,
            told(entry),
            told(entry, entry?.minimum),
            told(entry, entry?.maximum),
            limit,
            entry ? entry.counted : "n = 0",
          ];
        }),
      ),
    );

  // What there is to choose is there with parts alone, and so is their table.
  const offerAny = (is) => {
    byId("choose-group").closest(".ramp").hidden = !is;
    byId("items-table").hidden = !is;
  };

  const nothing = (why) => {
    offerAny(false);
    byId("items-note").textContent = why;
    byId("items-legend").replaceChildren();
    charts.clear("items-plot");
    // A picture of nothing takes no room; it stays, as what is seen of it decides when it is drawn.
    byId("items-plot").style.minHeight = "0";
    bedplate.lazyTable("items-table", () => h("p", {}, "Nothing to list."));
    bedplate.save.offer("items-plot", false);
  };

  const draw = (state) => {
    last = state;
    choice.group = state["items.group"];
    choice.metric = bedplate.data.metricOf.get(state["items.metric"]);
    choice.logarithmic = state["items.logarithmic"] === "yes";
    byId("choose-logarithmic").checked = choice.logarithmic;
    const found = groups(state.run);
    if (!found.size) {
      const having = page.runs.flatMap((_, run) => (groups(run).size ? [bedplate.data.runName(run)] : []));
      nothing(
        `${bedplate.data.runName(state.run)} has no parts that were measured one by one` +
          `${having.length ? `; these have: ${having.join(", ")}` : ""}.`,
      );
      return;
    }
    offerAny(true);
    offer(found);
    byId("items-plot").style.minHeight = "";
    const { parts } = found.get(choice.group);
    const metric = page.metrics[choice.metric];
    const unit = bedplate.unit(metric);
    const { ticks, title } = labels(parts);
    const traces = state.courses.flatMap((cell, place) => bars(cell, place, parts, ticks, unit));
    const all = state.courses.flatMap((cell) =>
      parts.map((part) => bedplate.data.summary(cell, state.run, choice.metric, part)).filter((entry) => entry),
    );
    const zeros = choice.logarithmic ? all.filter((entry) => entry.mean === 0).length : 0;
    legend(state.courses, all.some(stopped));
    byId("items-note").textContent =
      `${metric.name}: ${metric.definition}. ${bedplate.data.runName(state.run)}, ` +
      `${bedplate.centre(metric)}s over the repetitions.${bedplate.sampleSize(
        all.map((entry) => entry.n + entry.censored),
        "bar",
      )}${zeros ? ` ${zeros} values of 0 have no place on a logarithmic axis.` : ""}${state.courses.length ? "" : " No cell is chosen."}`;
    charts.draw(
      "items-plot",
      traces,
      charts.groups({
        height: 380,
        title: `${metric.name}${unit ? `,${unit}` : ""}`,
        ticks,
        below: title,
        logarithmic: choice.logarithmic,
      }),
    );
    bedplate.lazyTable("items-table", () => table(state.courses, parts, metric));
    bedplate.save.offer("items-plot", state.courses.length > 0);
  };

  if (byId("items")) {
    const choose = (name, value) => bedplate.choice.change({ [`items.${name}`]: value });
    byId("choose-group").addEventListener("change", (event) => choose("group", event.target.value));
    byId("choose-item-metric").addEventListener("change", (event) =>
      choose("metric", page.metrics[Number(event.target.value)].name),
    );
    byId("choose-logarithmic").addEventListener("change", (event) =>
      choose("logarithmic", event.target.checked ? "yes" : null),
    );
  }

  bedplate.view({
    name: "items",
    keys: ["run", "courses", "items.group", "items.metric", "items.logarithmic"],
    place: "items",
    draw,
  });
})();
