"use strict";
// The contender beside the baseline: ratio, interval, verdict, and how many more repetitions would tell.

bedplate.comparison = (() => {
  const { element: h, pairs, pooled, verdicts, words } = bedplate;
  const page = bedplate.document;
  const byId = (id) => document.getElementById(id);
  const OVER = [
    ["metric", "the run and metric chosen above"],
    ["runs", "every run, in what it is about"],
    ["metrics", "the run chosen above, in every metric"],
  ];
  const percent = (share) => `${Math.round(share * 100)}\u00a0%`;
  const SCORES = new Set(page.rules.scores);
  // A table of more says nothing to a reader; the rest stands in what `bedplate compare` prints.
  const ROWS_MOST = 400;
  const LINES_MOST = 12;
  const SVG = "http://www.w3.org/2000/svg";

  bedplate.choice.own("compare.over", { values: () => OVER.map(([name]) => name) });

  const askedOf = (state) => {
    const whole = (run, metric) => bedplate.data.parts(run, metric).includes(0);
    const over = state["compare.over"] ?? "metric";
    if (over === "runs")
      return page.runs
        .map((_, run) => ({ run, metric: bedplate.data.first(run), part: 0 }))
        .filter(({ run, metric }) => whole(run, metric));
    if (over === "metrics")
      return bedplate.data
        .offered(state.run)
        .filter((metric) => whole(state.run, metric) && !SCORES.has(page.metrics[metric].name))
        .map((metric) => ({ run: state.run, metric, part: 0 }));
    return [{ run: state.run, metric: state.metric, part: state.part }];
  };

  const shape = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  // An interval on a line that all ratios share; the middle is equality.
  const strip = (one, reach) => {
    const { found } = one;
    if (found.kind !== "ratio" || found.estimate === null || !(found.estimate > 0)) return null;
    const place = (value) => Math.max(0, Math.min(100, 50 + (50 * Math.log(value)) / reach));
    const svg = shape("svg", {
      class: "strip",
      viewBox: "0 0 100 14",
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    });
    const line = (kind, x1, x2, y1, y2) =>
      svg.append(shape("line", { class: kind, x1, x2, y1, y2, "vector-effect": "non-scaling-stroke" }));
    line("base", 0, 100, 7, 7);
    line("equal", 50, 50, 0, 14);
    if (found.low !== null || found.high !== null)
      line("interval", place(found.low ?? Number.MIN_VALUE), place(found.high ?? Number.MAX_VALUE), 7, 7);
    line("dot", place(found.estimate), place(found.estimate), 7, 7);
    return svg;
  };

  const KINDS = { faster: "better", slower: "worse", higher: "other", lower: "other", "cannot tell": "open" };
  const badge = (one) => {
    const kind =
      one.identical || one.incomparable.length
        ? "apart"
        : one.found.verdict === "same"
          ? "same"
          : KINDS[one.found.verdict];
    return h("span", { class: `judged ${kind}` }, pairs.word(one));
  };

  const why = (one) => {
    const { found } = one;
    const said = [
      ...one.incomparable,
      ...(one.identical ? [words.filled("identical")] : []),
      ...found.reasons,
      ...one.notes,
    ];
    const runs = words.leftOut(found.suspect, found.unknown);
    if (runs) said.push(words.filled("left_out", { runs }));
    if (found.censored) said.push(words.filled("stopped", { n: found.censored }));
    return said;
  };

  const isOpen = ({ found }) =>
    found.basis && !found.basis.pooled && found.verdict === verdicts.CANNOT_TELL && !found.open_side;

  // How many more repetitions: each takes some milliseconds, so that those that are seen come after the table, and the others when
  // their rows are made.
  const moreOf = (isCurrent) => {
    const open = [];
    const tell = ([one, place]) => {
      const more = verdicts.moreRepetitions(one.found);
      place.textContent = more === null ? "over 100" : `+${more}`;
    };
    const next = () => {
      if (!isCurrent()) return;
      for (const since = performance.now(); open.length && performance.now() - since < 25;) tell(open.shift());
      if (open.length) setTimeout(next);
    };
    return (one, isWhole) => {
      const place = h("span", {}, isOpen(one) ? "…" : "–");
      if (isOpen(one) && isWhole) tell([one, place]);
      else if (isOpen(one) && open.push([one, place]) === 1) setTimeout(next);
      return place;
    };
  };

  const table = (all, isCurrent) => {
    const shown = all.slice(0, ROWS_MOST);
    const several = new Set(all.map((one) => `${one.run}/${one.metric}`)).size > 1;
    const figure = all.every(isDifference)
      ? "Contender − baseline"
      : all.some(isDifference)
        ? "Beside the baseline"
        : "Contender / baseline";
    const reach = Math.max(
      Math.log(1.1),
      ...shown.flatMap(({ found }) =>
        [found.low, found.high, found.estimate]
          .filter((value) => found.kind === "ratio" && value > 0)
          .map((value) => Math.abs(Math.log(value))),
      ),
    );
    const more = moreOf(isCurrent);
    return bedplate.table(
      [
        words.capital(words.sides),
        ...(several ? ["Run and metric"] : []),
        "Means#",
        figure,
        "Verdict",
        "More repetitions#",
        "n#",
        "Beside it",
      ],
      shown.map((one) => (isWhole) => {
        const { found } = one;
        const unit = bedplate.unit(page.metrics[one.metric]);
        return [
          h(
            "div",
            {},
            h("b", {}, bedplate.data.cellName(one.contender)),
            h("span", { class: "small" }, bedplate.data.cellName(one.baseline)),
          ),
          ...(several
            ? [
                h(
                  "div",
                  {},
                  bedplate.data.runName(one.run),
                  h("span", { class: "small" }, page.metrics[one.metric].name),
                ),
              ]
            : []),
          h("div", {}, `${one.figures[1]}${unit}`, h("span", { class: "small" }, `${one.figures[0]}${unit}`)),
          h(
            "div",
            {},
            h("span", { class: "figure" }, pairs.estimate(found, found.estimate)),
            strip(one, reach),
            h("span", { class: "small" }, pairs.interval(found)),
          ),
          badge(one),
          more(one, isWhole),
          String(found.n),
          h(
            "div",
            {},
            why(one).map((said) => h("span", { class: "small" }, said)),
          ),
        ];
      }),
    );
  };

  const isDifference = ({ found }) => found.kind !== "ratio";

  // What the figure is, and what same means of it.
  const meaning = (all) => {
    const ratio =
      `The figure is contender / baseline, of the geometric means within each repetition. A ` +
      `difference of less than ${percent(pairs.margin())} counts as none: that is what same means.`;
    const counts = "Shares of cuts are of all recordings together.";
    const difference =
      `${all.every(isDifference) ? "The figure" : "Of shares and counts it"} is contender − ` +
      `baseline, as what is a share or a count may be zero.` +
      `${all.some(({ found }) => found.basis?.pooled) ? ` ${counts}` : ""} Of a share a difference ` +
      `of less than ${Math.round(pairs.margin() * 100)} points counts as none.`;
    return [
      ...(all.length && all.every(isDifference) ? [] : [ratio]),
      ...(all.some(isDifference) ? [difference] : []),
    ].join(" ");
  };

  const sentence = (all) => {
    const judged = all.filter(({ found }) => found.basis);
    if (!judged.length) return words.filled("none_can_tell");
    const counts = new Map();
    for (const { found } of judged)
      if (found.verdict !== verdicts.CANNOT_TELL) counts.set(found.verdict, (counts.get(found.verdict) ?? 0) + 1);
    return words.canTell(
      judged.length,
      counts,
      judged.map(({ found }) => found.difference_confidence),
    );
  };

  // What holds of all pooled lines, and which pairs are in none.
  const closing = (lines, all) => {
    const confidences = lines.map(({ found }) => found.difference_confidence).filter((one) => one !== null);
    const about = confidences.length
      ? [` ${words.filled("about_pooled", { confidence: words.confidences(confidences) })}`]
      : [];
    const crossing = new Map();
    for (const { baseline, contender } of all) {
      const [first, second] = [baseline, contender].map((cell) => page.cells[cell].promise_here);
      if (first !== second) crossing.set(`${baseline}/${contender}`, `${second} beside ${first}`);
    }
    if (!crossing.size) return about;
    const counts = new Map();
    for (const name of crossing.values()) counts.set(name, (counts.get(name) ?? 0) + 1);
    const classes = [...counts].sort((one, other) => other[1] - one[1]).map(([name, n]) => `${name}: ${n}`);
    const n = crossing.size;
    const said = { n, es: n === 1 ? "es" : "", verb: n === 1 ? "is" : "are", classes: classes.join(", "), way: "" };
    return [...about, ` ${words.filled("pairs_cross", said).trim()}`];
  };

  const nothing = (why_) => {
    byId("compare-note").textContent = why_;
    byId("compare-verdict").textContent = "";
    byId("compare-table").replaceChildren();
    bedplate.save.offer("compare-table", false);
  };

  // What is compared: all pairs, judged, and what is said over them; or `why` nothing is.
  const judgedOf = async (state) => {
    if (state.baseline === null) {
      const maps = document.getElementById("heat-maps");
      const press = maps && !maps.closest("[hidden]") ? ", or press a square of the heat maps to make it one" : "";
      return { why: `No baseline is chosen: choose one in the bar above${press}.` };
    }
    const found = pairs.pairsOf(state);
    if (!found.length)
      return {
        why: `Among the cells that are shown none differs from ${pairs.sideName(state.baseline)} in nothing but what is named.`,
      };
    const asked = askedOf(state);
    const all = await pairs.judged(found, asked);
    const lines = pooled.linesOf(all, state);
    const verdict = () => [
      ...lines.slice(0, LINES_MOST).flatMap((line) => {
        const [first, ...others] = pooled.sentences(line);
        const whose =
          asked.length > 1 ? `${bedplate.data.runName(line.every[0].run)}, ${page.metrics[line.metric].name}: ` : "";
        return [h("b", {}, `${whose}${first}`), h("br"), ...others.flatMap((said) => [h("small", {}, said), h("br")])];
      }),
      sentence(all),
      ...closing(lines, all),
    ];
    return { found, all, verdict };
  };

  const draw = async (state, isCurrent) => {
    byId("compare-over").replaceChildren(
      ...OVER.map(([name, said]) =>
        h("option", { value: name, selected: name === (state["compare.over"] ?? "metric") }, said),
      ),
    );
    byId("compare-margin").replaceChildren(
      ...pairs.MARGINS.map((one) =>
        h("option", { value: one, selected: Number(one) === pairs.margin() * 100 }, `${one} %`),
      ),
    );
    const { why: reason, found, all, verdict } = await judgedOf(state);
    if (!isCurrent()) return;
    if (reason) {
      nothing(reason);
      return;
    }
    const metrics = [...new Set(all.map(({ metric }) => metric))].slice(0, 1).map((metric) => page.metrics[metric]);
    const defined =
      new Set(all.map(({ metric }) => metric)).size === 1 && metrics.length
        ? ` ${metrics[0].name}: ${metrics[0].definition}; ${metrics[0].direction}.`
        : "";
    byId("compare-verdict").replaceChildren(...verdict());
    byId("compare-note").textContent =
      `${found.length} pair${found.length === 1 ? "" : "s"} of cells` +
      `${all.length > ROWS_MOST ? `; the first ${ROWS_MOST} of ${all.length} comparisons are listed` : ""}.` +
      `${defined} ${meaning(all)}`;
    byId("compare-table").replaceChildren(
      all.length ? table(all, isCurrent) : h("p", {}, `${words.capital(words.filled("no_run_in_both"))}.`),
    );
    bedplate.save.offer("compare-table", all.length > 0);
  };

  byId("compare-over").addEventListener("change", (event) =>
    bedplate.choice.change({ "compare.over": event.target.value === "metric" ? null : event.target.value }),
  );
  byId("compare-margin").addEventListener("change", (event) =>
    bedplate.choice.change({
      "compare.margin": Number(event.target.value) === verdicts.MARGIN * 100 ? null : event.target.value,
    }),
  );
  bedplate.view({
    name: "compare",
    keys: ["run", "metric", "part", "shown", "baseline", "contender", "compare.over", "compare.margin"],
    place: "compare-table",
    draw,
  });
  return { judgedOf };
})();
