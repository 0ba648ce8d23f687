"use strict";
// Matched pairs pooled: analysis/pooled.py for any choice. Pairs of one line compare the same
// levels and are of one durability class.

bedplate.pooled = (() => {
  const { choice, pairs, pooledPairs, verdicts, words } = bedplate;
  const page = bedplate.document;
  const { REPETITIONS_MIN, RATE, CONFIDENCE } = page.rules.verdicts;
  const DISAGREEMENT = page.rules.pooled.DISAGREEMENT;
  const VALUES_MIN = page.rules.pooled.VALUES_MIN;
  // As Python has them: the study last, and no durability class.
  const placesOf = (wanted) => page.factors.flatMap(({ name }, place) => (wanted(name) ? [place] : []));
  const places = [...placesOf((name) => name !== "class" && name !== "study"), ...placesOf((name) => name === "study")];
  const level = (cell, place, together) =>
    together && page.cells[cell].foreign?.includes(place) ? -1 : page.cells[cell].levels[place];
  const text = (place, at) => page.factors[place].levels[at];
  const isUsual = (cell, place) => page.cells[cell].usual.includes(place);

  const levelWords = ([place, at]) =>
    page.factors[place].name === "filesystem.type"
      ? text(place, at)
      : `${page.factors[place].words} ${text(place, at)}`;
  const sidesWords = ({ contender, baseline, beside }) => {
    const alone =
      contender.length === 1 &&
      baseline.length === 1 &&
      contender[0][0] === baseline[0][0] &&
      page.factors[contender[0][0]].name !== "filesystem.type";
    const sides = alone
      ? `${page.factors[contender[0][0]].words} ${[contender, baseline].map(([[place, at]]) => text(place, at)).join(" / ")}`
      : [contender, baseline].map((levels) => levels.map(levelWords).join(" ") || "–").join(" / ");
    return beside.length ? `${sides} with ${beside.map(levelWords).join(", ")}` : sides;
  };

  const isCompared = (name, named) => name === "study" || pairs.isNamed(name, named);
  // What pairs of one line have in common; nothing for those that cross durability classes.
  const kindOf = (one, named) => {
    const sides = [one.baseline, one.contender];
    const [first, second] = sides.map((cell) => page.cells[cell]);
    if (first.promise_here !== second.promise_here) return null;
    const together = first.study === second.study;
    const at = (cell, place) => level(cell, place, together);
    const differing = places.filter((place) => at(one.baseline, place) !== at(one.contender, place));
    const compared = differing.filter((place) => isCompared(page.factors[place].name, named));
    const levels = (cell) => compared.map((place) => [place, at(cell, place)]).filter(([, own]) => own >= 0);
    return {
      asked: `${one.run}/${one.metric}/${one.part}`,
      baseline: levels(one.baseline),
      contender: levels(one.contender),
      beside: differing
        .filter((place) => !compared.includes(place))
        .flatMap((place) =>
          sides.filter((cell) => at(cell, place) >= 0 && !isUsual(cell, place)).map((cell) => [place, at(cell, place)]),
        ),
      promise: first.promise_here,
      together,
    };
  };

  const isUsable = (one) =>
    !one.identical &&
    !one.incomparable.length &&
    one.found.differences.length > 0 &&
    one.found.differences.every((own) => own.size >= VALUES_MIN);

  // The differences of some pairs: a row for each (two of a pair between studies), a column for each block.
  const valuesOf = (every) => {
    const rows = every.flatMap((one, owner) => {
      const studies = [...new Set([one.baseline, one.contender].map((cell) => page.cells[cell].study))];
      return one.found.differences.map((own, at) => ({ owner, study: studies[at], own }));
    });
    const blocks = [...new Set(rows.flatMap(({ study, own }) => [...own.keys()].map((one) => `${study}/${one}`)))];
    const studies = blocks.map((block) => Number(block.split("/")[0]));
    const table = rows.map(({ study, own }) =>
      blocks.map((block, at) => (studies[at] === study ? (own.get(Number(block.split("/")[1])) ?? null) : null)),
    );
    return (weights) =>
      pooledPairs.weightedMean(
        table,
        rows.map(({ owner }) => weights.get(owner) ?? 0),
        studies,
      );
  };
  const share = (owners) => new Map(owners.map((owner) => [owner, 1 / owners.length]));

  // The factors of several levels, those that divide the pairs alike once.
  const factorsOf = (common) => {
    const found = new Map();
    for (const place of places) {
      const own = common.map((levels) => levels.get(place) ?? -1);
      const several = [...new Set(own.filter((at) => at >= 0))].sort((one, other) => one - other);
      const division = own.map((at) => [...new Set(own)].indexOf(at)).join("/");
      if (several.length > 1 && !found.has(division)) found.set(division, [place, several]);
    }
    return new Map(found.values());
  };

  // Every two levels of a factor over the pairs that are alike in all others; a usual level is as none.
  const contrastsOf = (place, levels, every, common, factors, mean) => {
    const strata = new Map();
    common.forEach((own, owner) => {
      if (!own.has(place)) return;
      const rest = [...factors.keys()]
        .filter((other) => other !== place && own.has(other))
        .filter((other) => ![every[owner].baseline, every[owner].contender].every((cell) => isUsual(cell, other)))
        .map((other) => `${other}:${own.get(other)}`)
        .join(" ");
      const stratum = strata.get(rest) ?? new Map();
      strata.set(rest, stratum.set(own.get(place), [...(stratum.get(own.get(place)) ?? []), owner]));
    });
    return levels.flatMap((baseline, at) =>
      levels.slice(at + 1).flatMap((higher) => {
        const matched = [...strata.values()].filter((found) => found.has(baseline) && found.has(higher));
        if (!matched.length) return [];
        const weights = new Map();
        for (const [side, sign] of [
          [higher, 1],
          [baseline, -1],
        ])
          for (const found of matched)
            for (const owner of found.get(side)) weights.set(owner, sign / matched.length / found.get(side).length);
        return [{ level: higher, baseline, difference: mean(weights) }];
      }),
    );
  };

  const dependencesOf = (every, mean, disagree) => {
    const common = every.map(({ baseline, contender }) => {
      const together = page.cells[baseline].study === page.cells[contender].study;
      const own = new Map();
      for (const place of places) {
        const at = level(baseline, place, together);
        if (at >= 0 && at === level(contender, place, together)) own.set(place, at);
      }
      return own;
    });
    const factors = factorsOf(common);
    const found = [...factors].map(([place, levels]) => ({
      place,
      levels: levels.map((at) => ({
        at,
        mean: mean(share(common.flatMap((own, owner) => (own.get(place) === at ? [owner] : [])))).mean,
      })),
      contrasts: contrastsOf(place, levels, every, common, factors, mean).filter(
        ({ difference }) => difference.n >= REPETITIONS_MIN,
      ),
    }));
    const chances = found.flatMap(({ contrasts }) =>
      contrasts.map(({ difference }) => verdicts.pDifference(difference)),
    );
    // What they depend on is looked for, as any verdict is, once it is shown that they disagree at all.
    const alike = !disagree && !verdicts.discoveries(chances, DISAGREEMENT);
    const confidence = chances.length ? verdicts.jointConfidence(chances, alike ? DISAGREEMENT : RATE) : CONFIDENCE;
    return found
      .filter(({ contrasts }) => contrasts.length)
      .map((one) => {
        const [strongest] = [...one.contrasts].sort(
          (a, b) => verdicts.pDifference(a.difference) - verdicts.pDifference(b.difference),
        );
        const [low, high] = verdicts.students(strongest.difference, confidence);
        const p = verdicts.pDifference(strongest.difference);
        return { ...one, strongest: { ...strongest, low, high, p }, real: low > 0 || high < 0 };
      })
      .sort((one, other) => one.strongest.p - other.strongest.p);
  };

  const disagreement = (every) => {
    const studies = new Set(
      every.flatMap(({ baseline, contender }) => [baseline, contender].map((cell) => page.cells[cell].study)),
    );
    if (studies.size > 1) return null;
    const rows = pooledPairs.completePart(every.map(({ found }) => found.differences[0]));
    return rows.length < 2 || rows[0].length < REPETITIONS_MIN ? null : pooledPairs.pDisagreement(rows);
  };

  const lineOf = (kind, all) => {
    const every = all.filter(isUsable);
    if (every.length < 2) return null;
    const mean = valuesOf(every);
    const p = disagreement(every);
    const disagree = p !== null && p <= DISAGREEMENT;
    const dependences = dependencesOf(every, mean, disagree);
    return {
      ...kind,
      every,
      without: all.filter((one) => !isUsable(one)),
      metric: every[0].metric,
      found: verdicts.ofEstimate(page.metrics[every[0].metric], mean(share(every.map((_, owner) => owner))), {
        margin: pairs.margin(),
        paired: kind.together,
      }),
      dependences,
      disagree: disagree || dependences.some(({ real }) => real),
    };
  };

  // The confidences at which effects judge a line over the same pairs; null where they have none, as of a part of the cells.
  const familyOf = ({ every, baseline, contender, promise, found }) => {
    const [{ run, metric, part }] = every;
    const studies = new Set(
      every.flatMap((one) => [one.baseline, one.contender].map((cell) => page.cells[cell].study)),
    );
    if (studies.size > 1 || !found.basis || contender.length !== 1 || baseline.length !== 1) return null;
    const [[[place, level]], [[other, against]]] = [contender, baseline];
    const margin = pairs.MARGINS.indexOf(String(Math.round(100 * pairs.margin())));
    const entry = page.effects.find(
      (one) =>
        studies.has(one.study) && one.run === run && one.metric === page.metrics[metric].name && !part === !one.part,
    );
    if (!entry || part || place !== other || margin < 0) return null;
    for (const [durability, factor, ...own] of entry.families) {
      const [of, beside_, strata, ratio, difference, sameness] = own;
      if (durability !== promise || factor !== page.factors[place].name || strata !== every.length) continue;
      const [one, two] = [text(place, level), text(place, against)];
      const estimate = one === of && two === beside_ ? ratio : one === beside_ && two === of ? 1 / ratio : null;
      // Figures of the page have five digits.
      if (estimate !== null && Math.abs(found.estimate / estimate - 1) < 2e-4)
        return { difference, sameness: sameness[margin] };
    }
    return null;
  };

  // Of the pairs that `pairs.judged` gave, all lines of a question judged together.
  const linesOf = (all, state) => {
    const named = pairs.namedBy(state);
    const groups = new Map();
    for (const one of all) {
      const kind = one.found.basis?.pooled ? null : kindOf(one, named);
      const key = JSON.stringify(kind);
      if (kind) groups.set(key, { kind, own: [...(groups.get(key)?.own ?? []), one] });
    }
    const lines = [...groups.values()].map(({ kind, own }) => lineOf(kind, own)).filter(Boolean);
    // Two levels of one factor over all matched cells of a class are what effects are, and of their families.
    const families = lines.map(familyOf);
    const others = lines.filter((_, at) => families[at] === null);
    const together = verdicts.judgedTogether(
      others.map(({ found }) => found),
      others.map(({ asked }) => asked),
    );
    const judged = lines.map((line, at) =>
      families[at] === null
        ? together[others.indexOf(line)]
        : verdicts.judgedApart(line.found, families[at].difference, families[at].sameness),
    );
    const asked = [...new Set(lines.map((line) => line.asked))];
    const safety = ({ every: [one] }) => page.cells[one.baseline].safety;
    return lines
      .map((line, at) => ({ ...line, found: judged[at] }))
      .sort(
        (one, other) =>
          asked.indexOf(one.asked) - asked.indexOf(other.asked) ||
          safety(one)[0] - safety(other)[0] ||
          safety(one)[1] - safety(other)[1] ||
          Number(one.beside.length > 0) - Number(other.beside.length > 0) ||
          other.every.length - one.every.length,
      );
  };

  const shown = (kind, value, decimals) => {
    if (value === null) return "–";
    if (kind !== "ratio") return `${value >= 0 ? "+" : ""}${value.toFixed(decimals)}`;
    return `×${value >= 0.01 && value < 100 ? value.toFixed(decimals) : bedplate.number(value)}`;
  };
  // No more digits than the interval bears.
  const intervalWords = (kind, estimate, low, high) => {
    const half = (high - low) / 2;
    let decimals = half > 0 ? Math.min(4, Math.max(2, Math.ceil(-Math.log10(half)))) : 4;
    // A bound that leaves out equality is not written as equality, where a digit or two more tell the two apart.
    const equal = kind === "ratio" ? 1 : 0;
    const [bound, outside] = low > equal ? [low, true] : [high, high < equal];
    while (decimals < 4 && outside && Number(bound.toFixed(decimals)) === equal) decimals += 1;
    if (equal === 0 && low === 0 && high === 0) return { estimate: "0", bounds: words.filled("in_every_repetition") };
    const [one, least, most] = [estimate, low, high].map((value) => shown(kind, value, decimals));
    const bounds = words.tellsNothing(kind, low, high)
      ? words.filled("not_known")
      : `${least.replace("×", "")} to ${most.replace("×", "")}`;
    return { estimate: one, bounds };
  };

  const figureWords = (found) =>
    found.low === null || found.high === null
      ? words.filled("pooled_without_interval", {
          estimate: shown(found.kind, found.estimate, 2),
          reasons: found.reasons.join("; "),
        })
      : words.filled("pooled_with_interval", {
          ...intervalWords(found.kind, found.estimate, found.low, found.high),
          verdict: pairs.word({ found, identical: false, incomparable: [] }),
        });

  const dependsWords = (kind, { place, levels, strongest }) => {
    const back = (value) => verdicts.takenBack(kind, value);
    const ends = intervalWords(kind, back(strongest.difference.mean), back(strongest.low), back(strongest.high));
    return words.filled("pooled_depends", {
      factor: page.factors[place].words,
      levels: levels.map(({ at, mean }) => `${shown(kind, back(mean), 2)} at ${text(place, at)}`).join(", "),
      level: text(place, strongest.level),
      baseline: text(place, strongest.baseline),
      figure: `${ends.estimate} (${ends.bounds})`,
    });
  };

  const whyLeftOut = ({ identical, incomparable, found }) =>
    identical
      ? words.filled("pooled_same")
      : incomparable.length
        ? words.filled("pooled_incomparable")
        : found.reasons.join("; ") || words.filled("pooled_stopped");

  // The line, then what its pairs disagree in.
  const sentences = (line) => {
    const { kind } = line.found;
    const head = words.filled("pooled", {
      sides: sidesWords(line),
      n: line.every.length,
      classes: line.promise,
      figure: figureWords(line.found),
    });
    const told = line.dependences.filter(({ real }) => real).map((one) => dependsWords(kind, one));
    const estimates = line.every.map(({ found }) => found.estimate).filter((value) => value !== null);
    if (!told.length && line.found.basis && estimates.length)
      told.push(
        words.filled(line.disagree ? "pooled_no_factor" : "pooled_range", {
          least: shown(kind, Math.min(...estimates), 2),
          greatest: shown(kind, Math.max(...estimates), 2),
        }),
      );
    if (line.without.length) {
      const counts = new Map();
      for (const why of line.without.map(whyLeftOut)) counts.set(why, (counts.get(why) ?? 0) + 1);
      const reasons = [...counts]
        .sort(([, one], [, other]) => other - one)
        .map(([why, n]) => (counts.size > 1 ? `${n}: ${why}` : why));
      const n = line.without.length;
      told.push(words.filled("pooled_without", { n, verb: n === 1 ? "has" : "have", reasons: reasons.join("; ") }));
    }
    return [line.disagree ? `${head}; ${words.filled("pairs_disagree")}` : head, ...told];
  };

  return { linesOf, sentences, figureWords };
})();
