"use strict";
// Which cell is held against which, and what came of it: analysis/comparison.py for any choice.
//
// A side is one cell, or all shown cells of a level. Two cells are a pair if they differ in nothing but what the sides
// name. Without a contender every other shown cell, or every other level of the factor, is one.

bedplate.pairs = (() => {
  const { verdicts, choice, words } = bedplate;
  const page = bedplate.document;
  const m = page.measurements;
  const around = page.surroundings;
  // What `same` means, in per cent: what a reader calls no difference.
  const MARGINS = page.rules.margins.map((share) => String(Math.round(100 * share)));
  // Made once for a visit, and told with each of its runs (analysis/overview.py).
  const OF_VISIT = new Set(page.rules.visit_figures);
  choice.own("compare.margin", { values: () => MARGINS });
  const margin = () =>
    choice.state["compare.margin"] ? Number(choice.state["compare.margin"]) / 100 : verdicts.MARGIN;

  const isLevel = (side) => side !== null && typeof side === "object";

  const sparse = (rows) => new Map(rows);
  const own = sparse(around.own);
  const identical = sparse(around.identical);
  const notes = sparse(around.notes);
  const placeOf = new Map(page.factors.map((factor, place) => [factor.name, place]));
  const study = placeOf.get("study");

  // What a power cut leaves is no factor in which cells may differ: it follows from the others.
  const isFactor = (place) => page.factors[place].name !== "class";

  const sideCells = (side) =>
    isLevel(side) ? choice.shown().filter((cell) => choice.levelOf(cell, side.factor) === side.level) : [side];

  // The cells of both sides, and which factors they name: all of them where a cell is named by itself.
  const sidesOf = ({ baseline, contender }) => {
    if (baseline === null) return null;
    const first = sideCells(baseline);
    const others = choice
      .shown()
      .filter(
        (cell) => !first.includes(cell) && (!isLevel(baseline) || choice.levelOf(cell, baseline.factor) !== null),
      );
    const second = contender === null ? others : sideCells(contender);
    const cellNamed = !isLevel(baseline) || (contender !== null && !isLevel(contender));
    const named = new Set(
      cellNamed ? placeOf.keys() : [baseline.factor, ...(contender === null ? [] : [contender.factor])],
    );
    return { first, second, named };
  };

  const namedBy = (state) => sidesOf(state)?.named ?? new Set();
  const isNamed = (name, named) => named.has(name) || [...named].some((other) => name.startsWith(`${other}.`));
  // Within a study only its own factors count: what a cell of another one was asked for keeps no two of its cells apart.
  const level = (cell, place, within) =>
    within !== null && page.cells[cell].foreign?.includes(place) ? -1 : page.cells[cell].levels[place];

  const pairsOf = (state) => {
    const sides = sidesOf(state);
    if (!sides) return [];
    const { first, second, named } = sides;
    const free = page.factors
      .map((factor, place) => place)
      .filter((place) => place !== study && isFactor(place) && !isNamed(page.factors[place].name, named));
    const named_ = page.factors
      .map((factor, place) => place)
      .filter((place) => isFactor(place) && !free.includes(place));
    const grouped = (cells, keyOf) => {
      const groups = new Map();
      for (const cell of cells) groups.set(keyOf(cell), [...(groups.get(keyOf(cell)) ?? []), cell]);
      return groups;
    };
    // Cells at the same levels of what is named are of one kind: which factors two sides share is a matter of two kinds.
    const kindOf = (cell) => named_.map((place) => page.cells[cell].levels[place]).join("/");
    const [kinds, others] = [first, second].map((side) => [...grouped(side, kindOf).values()]);
    // What is alike in all that both kinds have: of the cells of one study, or (null) of all.
    const alike = (own_) =>
      kinds.flatMap((one) =>
        others.flatMap((other) => {
          const parts = [one, other].map((part) =>
            part.filter((cell) => own_ === null || page.cells[cell].study === own_),
          );
          const places = free.filter((place) =>
            parts.every((part) => part.some((cell) => level(cell, place, own_) >= 0)),
          );
          const key = (cell) => places.map((place) => level(cell, place, own_)).join("/");
          const groups = grouped(parts[0], key);
          return parts[1].flatMap((contender) =>
            (groups.get(key(contender)) ?? []).map((baseline) => ({ baseline, contender })),
          );
        }),
      );
    const isWithin = ({ baseline, contender }) => page.cells[baseline].study === page.cells[contender].study;
    const studies = [...new Set([...first, ...second].map((cell) => page.cells[cell].study))];
    const within = studies.flatMap(alike).filter(({ baseline, contender }) => baseline !== contender);
    const atHome = new Set(within.map(({ contender }) => contender));
    const away =
      studies.length > 1
        ? alike(null).filter((pair) => !isWithin(pair) && (named.has("study") || !atHome.has(pair.contender)))
        : [];
    const order = (side) => new Map(side.map((cell, place) => [cell, place]));
    const [ofFirst, ofSecond] = [order(first), order(second)];
    const done = new Set();
    return [...within, ...away]
      .sort(
        (one, other) =>
          ofSecond.get(one.contender) - ofSecond.get(other.contender) ||
          Number(isWithin(other)) - Number(isWithin(one)) ||
          ofFirst.get(one.baseline) - ofFirst.get(other.baseline),
      )
      .filter(({ baseline, contender }) => {
        const pair = [baseline, contender].sort((a, b) => a - b).join("/");
        return !done.has(pair) && done.add(pair);
      });
  };

  // What factors explain: a kernel that is a factor may differ, and so may its build.
  const explained = (cells) => {
    const varying = page.factors.filter(
      (_, place) => new Set(cells.map((cell) => page.cells[cell].levels[place])).size > 1,
    );
    const found = new Set(
      around.following
        .filter(([start]) => varying.some(({ name }) => name.startsWith(start)))
        .flatMap(([, names]) => names),
    );
    return found.has("kernel") ? found.add("kernel_digest") : found;
  };

  // Why two cells stand side by side in a run, without a verdict; empty where they may be compared.
  const incomparable = ({ baseline, contender }, run, metric) => {
    const cells = [baseline, contender];
    const allowed = explained(cells);
    const lived = cells.flatMap((cell) => around.kinds[around.of[cell][page.runs[run].dataset]] ?? []);
    // Within a study cells meet on one node at a time, and nodes may differ where the plan says so.
    const within = page.cells[baseline].study === page.cells[contender].study;
    const nodes = within ? [...new Set(lived.map(([node]) => node))] : [null];
    const groups = nodes.map((node) =>
      lived.filter(([own_]) => node === null || own_ === node).map(([, kind]) => kind),
    );
    const said = cells.flatMap((cell) =>
      (own.get(cell) ?? []).map((why) =>
        words.filled("visits_differ", { cell: bedplate.data.cellName(cell), words: why }),
      ),
    );
    for (const kinds of groups)
      for (const [key, name] of around.names) {
        const values = [...new Set(kinds.flatMap((kind) => kind[key] ?? []))].sort();
        if (!allowed.has(key) && values.length > 1)
          said.push(words.filled("surroundings_differ", { name, values: values.join(", ") }));
      }
    // How a run was asked for changes nothing of what the visit did before it.
    const asked =
      around.asked && !ofVisit(metric)
        ? cells.map((cell) => around.asked[page.cells[cell].study][run] ?? {})
        : [{}, {}];
    for (const name of [...new Set(asked.flatMap(Object.keys))].sort()) {
      const levels = asked.map((one) => one[name] ?? words.default);
      if (levels[0] !== levels[1])
        said.push(words.filled("runs_differ", { name, run: page.runs[run].run, levels: levels.join(", ") }));
    }
    return [...new Set(said)];
  };

  const limits = new Map(page.observations.limits.map(([row, metric, limit]) => [`${row}/${metric}`, limit]));
  const counted = new Map(
    page.observations.counted.map(([row, metric, part, k, n]) => [`${row}/${metric}/${part}`, [k, n]]),
  );
  let within = null;
  // Figures of parts are unpacked when the first verdict over a part is asked for.
  const open = async () => {
    if (within) return;
    const rows = (await bedplate.unpack(page.observations.within)) ?? [];
    within = new Map(
      rows.map(([part, metric, places, values, ends]) => [
        `${part}/${metric}`,
        new Map(places.map((row, i) => [row, [values[i], ends[i]]])),
      ]),
    );
  };

  const figure = (row, metric, part) =>
    part
      ? (within.get(`${part}/${metric}`)?.get(row) ?? [null, null])
      : [m.figures[metric][row], limits.get(`${row}/${metric}`) ?? null];

  const ofVisit = (metric) => OF_VISIT.has(page.metrics[metric].name);
  // A visit's own figure stands with all runs on its dataset.
  const rowsWith = (cell, run, metric) =>
    ofVisit(metric)
      ? page.runs.flatMap((one, place) =>
          one.dataset === page.runs[run].dataset ? bedplate.data.measurements(cell, place) : [],
        )
      : bedplate.data.measurements(cell, run);

  // Of several the one that there is least doubt about, as analysis/comparison.py takes it.
  const doubt = (one) =>
    [one.outcome !== "completed", one.value === null, one.validity !== "valid"].reduce(
      (sum, is) => 2 * sum + Number(is),
      0,
    );
  const observations = (cell, run, metric, part) => {
    const found = new Map();
    for (const row of rowsWith(cell, run, metric)) {
      const [value, limit] = figure(row, metric, part);
      const status = limit !== null ? "censored" : value === null ? "absent" : "measured";
      const one = {
        value,
        limit,
        status,
        outcome: m.outcome[row],
        validity: m.validity[row],
        of: counted.get(`${row}/${metric}/${part}`) ?? null,
      };
      const before = found.get(m.repetition[row]);
      if (!before || doubt(one) < doubt(before)) found.set(m.repetition[row], one);
    }
    return found;
  };

  // The counts themselves, and of what they speak.
  const wordsAboutCounts = ({ basis, n }) => {
    if (!basis?.pooled) return [];
    const [first, second] = basis.pooled.map(([bad, cuts]) => `${bad} of ${cuts}`);
    return [`${second} beside ${first}, ${words.aboutCounts(n, basis.within)}`];
  };

  const compared = (pair, { run, metric, part }) => {
    const { baseline, contender } = pair;
    const together = page.cells[baseline].study === page.cells[contender].study;
    const same = together && (identical.get(baseline) ?? []).includes(contender);
    const apart = incomparable(pair, run, metric);
    const sides = [baseline, contender].map((cell) => observations(cell, run, metric, part));
    const found = verdicts.compare(...sides, page.metrics[metric], { margin: margin(), sharesRepetitions: together });
    // Of a pair within a study the repetitions of both, whose ratio or difference is the estimate.
    const [first, second] = sides.map(verdicts.usableOf);
    const common = together && (found.basis?.pooled || found.differences[0]);
    const said = [
      ...new Set([baseline, contender].flatMap((cell) => notes.get(cell) ?? [])),
      ...wordsAboutCounts(found),
    ];
    const promises = words.promisesDiffer(page.cells[contender], page.cells[baseline]);
    if (promises) said.push(promises);
    return {
      ...pair,
      run,
      metric,
      part,
      identical: same,
      incomparable: apart,
      notes: said,
      figures: [baseline, contender].map((cell, side) => {
        const entry = bedplate.data.summary(cell, run, metric, part);
        const both = common ? [...first.keys()].filter((repetition) => second.has(repetition)) : [];
        const values = both.map((repetition) => sides[side].get(repetition).value);
        return bedplate.told(
          entry,
          values.length ? bedplate.heatScale.mean(values, page.metrics[metric].scale) : entry?.mean,
        );
      }),
      // Without a basis it is in no family; its estimate stays as a description.
      found:
        same || apart.length ? { ...found, verdict: verdicts.CANNOT_TELL, low: null, high: null, basis: null } : found,
    };
  };

  // All pairs of a choice in every run and metric that is asked for, as one question whose verdicts hold together. The heat maps and
  // the comparison ask the same one: the last answer is kept.
  let last = { question: null, answer: null };
  const judged = async (pairs, asked) => {
    if (asked.some(({ part }) => part)) await open();
    const places = pairs.map(({ baseline, contender }) => `${baseline}/${contender}`);
    const figures = asked.map(({ run, metric, part }) => `${run}/${metric}/${part}`);
    const question = [margin(), ...figures, ...places].join();
    if (question !== last.question) last = { question, answer: judgedAnew(pairs, asked) };
    return last.answer;
  };

  const judgedAnew = (pairs, asked) => {
    const all = asked.flatMap((one) =>
      pairs
        .filter((pair) => [pair.baseline, pair.contender].every((cell) => rowsWith(cell, one.run, one.metric).length))
        .map((pair) => compared(pair, one)),
    );
    const together = verdicts.judgedTogether(
      all.map(({ found }) => found),
      all.map(({ run, metric, part }) => `${ofVisit(metric) ? page.runs[run].dataset : run}/${metric}/${part}`),
    );
    return all.map((one, place) => ({ ...one, found: together[place] }));
  };

  const word = (one) => {
    if (one.identical) return "identical";
    if (one.incomparable.length) return "side by side";
    const { kind, margin: share, verdict } = one.found;
    if (verdict === "same" && share === null) return words.filled("same_counts");
    return verdict === "same" ? words.filled("same_within", { margin: words.margin(kind, share) }) : verdict;
  };

  const estimate = (found, value, decimals = 3) => {
    if (value === null) return "–";
    if (found.kind === "ratio")
      return `×${value >= 100 || value < 0.01 ? bedplate.number(value) : value.toFixed(decimals)}`;
    return `${value > 0 ? "+" : ""}${bedplate.number(value)}`;
  };

  const interval = (found) => {
    if (found.low === null && found.high === null) return "no interval";
    if (found.low === 0 && found.high === 0) return words.filled("in_every_repetition");
    if (found.high === null) return `at least ${estimate(found, found.low)}`;
    if (found.low === null) return `at most ${estimate(found, found.high)}`;
    return words.tellsNothing(found.kind, found.low, found.high)
      ? words.filled("not_known")
      : `${estimate(found, found.low)} to ${estimate(found, found.high)}`;
  };

  const sideName = (side) => {
    if (side === null) return "nothing";
    return isLevel(side)
      ? `${page.factors[placeOf.get(side.factor)].words} ${side.level}`
      : bedplate.data.cellName(side);
  };

  return { MARGINS, margin, pairsOf, namedBy, isNamed, judged, word, estimate, interval, sideName, isLevel };
})();
