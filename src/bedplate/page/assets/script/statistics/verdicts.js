"use strict";
// Two cells and one metric, and many such at once: as statistics/comparison.py and false_discovery.py judge them.
// Pure; the vectors of tests/golden/statistics hold the two together.
//
// A side is a map from repetition to {value, limit, status, outcome, validity}. The verdict is read from the interval
// and from nothing else; runs that are suspect or of unknown validity are left out, fewer than three repetitions are
// described and not judged, except of what is k of n (`of`), which is pooled over the repetitions.

bedplate.verdicts = (() => {
  const { shares, student, words } = bedplate;
  const { MARGIN, CONFIDENCE, RATE, REPETITIONS_MIN, REPETITIONS_MAX, CHANCE, CLASSES, NO_SCATTER, CANNOT_TELL } =
    bedplate.document.rules.verdicts;

  const sum = (values) => values.reduce((one, other) => one + other, 0);
  const mean = (values) => sum(values) / values.length;
  const variance = (values) => {
    const middle = mean(values);
    return sum(values.map((value) => (value - middle) ** 2)) / (values.length - 1);
  };
  const isRatio = (found) => found.kind === "ratio";
  const marginOnScale = (kind, margin) => (kind === "ratio" ? Math.log1p(margin) : margin);
  // A logarithm as a ratio; null where that is larger than a number can be, as nothing is known then.
  const takenBack = (kind, value) => {
    if (kind !== "ratio") return value;
    const ratio = Math.exp(value);
    return Number.isFinite(ratio) ? ratio : null;
  };

  const hasValue = (one) => {
    const known = one.status === "censored" ? one.limit : one.value;
    return one.outcome === "completed" && one.status !== "absent" && Number.isFinite(known);
  };

  const equality = (found) => (isRatio(found) ? 1 : 0);
  const differs = (found) =>
    (found.low !== null && found.low > equality(found)) || (found.high !== null && found.high < equality(found));

  const verdict = (found) => {
    const { low, high, margin, metric } = found;
    if (metric.scale === "count" && low === 0 && high === 0) return "same";
    if (margin !== null && low !== null && high !== null) {
      const within = isRatio(found) ? low >= 1 / (1 + margin) && high <= 1 + margin : low >= -margin && high <= margin;
      if (within) return "same";
    }
    if (!differs(found)) return CANNOT_TELL;
    const larger = low !== null && low > equality(found);
    if (!metric.is_speed) return larger ? "higher" : "lower";
    return larger === (metric.better === "higher") ? "faster" : "slower";
  };

  const students = ({ mean: middle, error, degrees }, confidence) => {
    const half = student.quantile(degrees, 1 - confidence) * error;
    return [middle - half, middle + half];
  };
  // Of pooled counts from the lower one of both lower ends to the upper one of both upper ends.
  const intervalOf = (basis, confidence) => {
    if (!basis.pooled) return students(basis, confidence);
    const exact = shares.exact(...basis.pooled, confidence);
    const within = basis.within ? students(basis.within, confidence) : exact;
    return [Math.min(exact[0], within[0]), Math.max(exact[1], within[1])];
  };

  const atConfidence = (found, confidence) => {
    if (!found.basis) return { ...found, confidence };
    const ends = intervalOf(found.basis, confidence).map((end) => takenBack(found.kind, end));
    const judged = {
      ...found,
      confidence,
      low: found.open_side < 0 ? null : ends[0],
      high: found.open_side > 0 ? null : ends[1],
    };
    return { ...judged, verdict: verdict(judged) };
  };

  // Values up to the smallest limit; why they cannot be compared; which side is left open.
  const capped = (sides) => {
    const limits = sides
      .flat()
      .filter((one) => one.status === "censored" && one.limit !== null)
      .map((one) => one.limit);
    const limit = Math.min(Infinity, ...limits);
    const values = sides.map((side) =>
      side.map((one) => Math.min(one.status === "censored" ? one.limit : one.value, limit)),
    );
    const cut = sides.map((side) => side.some((one) => one.status === "censored" || (one.value ?? 0) > limit));
    if (cut[0] && cut[1]) return { values, reasons: [words.filled("both_stopped")], open: 0 };
    return { values, reasons: [], open: cut[1] ? 1 : cut[0] ? -1 : 0 };
  };

  const estimated = (first, second, paired) => {
    if (paired) {
      const each = second.map((value, i) => value - first[i]);
      return {
        mean: mean(each),
        error: Math.sqrt(variance(each)) / Math.sqrt(each.length),
        degrees: each.length - 1,
        n: each.length,
      };
    }
    const n = Math.min(first.length, second.length);
    const error = Math.sqrt(variance(first) / first.length + variance(second) / second.length);
    return { mean: mean(second) - mean(first), error, degrees: n - 1, n };
  };

  // Two k of n, each by repetition.
  const pooled = (found, sides) => {
    const totals = sides.map((side) => [0, 1].map((place) => sum(side.map(({ of }) => of[place]))));
    const [first, second] = sides.map((side) => side.map(({ of }) => shares.of(of)));
    const each = found.paired ? second.map((value, i) => value - first[i]) : null;
    const within = found.n >= REPETITIONS_MIN ? estimated(first, second, found.paired) : null;
    const difference = shares.of(totals[1]) - shares.of(totals[0]);
    return atConfidence(
      {
        ...found,
        estimate: difference,
        smallest: each ? Math.min(...each) : null,
        largest: each ? Math.max(...each) : null,
        basis: { pooled: totals, within, mean: difference },
      },
      found.confidence,
    );
  };

  // What an estimate is made of, by repetition: of two studies the baseline's, with its sign turned, and the contender's.
  const differences = (own, first, second, paired) => {
    const by = (side, values) => new Map([...side.keys()].map((repetition, i) => [repetition, values[i]]));
    if (paired)
      return [
        by(
          own[0],
          second.map((value, i) => value - first[i]),
        ),
      ];
    return [
      by(
        own[0],
        first.map((value) => -value),
      ),
      by(own[1], second),
    ];
  };

  // A comparison whose estimate was made over several pairs.
  const ofEstimate = (metric, estimate, { margin = MARGIN, paired = true } = {}) => {
    const kind = metric.scale === "ratio" ? "ratio" : "difference";
    const described = {
      ...nothing(metric, { margin, paired }),
      estimate: takenBack(kind, estimate.mean),
      n: estimate.n,
    };
    if (estimate.n < REPETITIONS_MIN) {
      const reason = words.filled(paired ? "too_few_in_common" : "too_few_on_one_side", { n: estimate.n });
      return { ...described, reasons: [reason] };
    }
    return atConfidence({ ...described, basis: estimate }, CONFIDENCE);
  };

  const nothing = (metric, { margin, paired }) => ({
    metric,
    kind: metric.scale === "ratio" ? "ratio" : "difference",
    verdict: CANNOT_TELL,
    estimate: null,
    low: null,
    high: null,
    confidence: CONFIDENCE,
    margin: metric.scale === "count" ? null : margin,
    n: 0,
    paired,
    smallest: null,
    largest: null,
    suspect: 0,
    unknown: 0,
    censored: 0,
    reasons: [],
    basis: null,
    open_side: 0,
    difference_confidence: null,
    differences: [],
  });

  const compared = (found, own) => {
    const sides = own.map((side) => [...side.values()]);
    if (sides.flat().every((one) => one.of)) return pooled(found, sides);
    const { values, reasons, open } = capped(sides);
    if (isRatio(found) && Math.min(...values.flat()) <= 0) {
      const zero = values.flat().every((value) => value === 0);
      return { ...found, reasons: [words.filled(zero ? "both_zero" : "not_positive")] };
    }
    const [first, second] = isRatio(found) ? values.map((side) => side.map(Math.log)) : values;
    const each = found.paired ? second.map((value, i) => value - first[i]) : null;
    const described = {
      ...found,
      reasons,
      open_side: open,
      differences: reasons.length || open ? [] : differences(own, first, second, found.paired),
      estimate: takenBack(found.kind, mean(second) - mean(first)),
      censored: sides.flat().filter((one) => one.status === "censored").length,
      smallest: each ? takenBack(found.kind, Math.min(...each)) : null,
      largest: each ? takenBack(found.kind, Math.max(...each)) : null,
    };
    if (found.n < REPETITIONS_MIN) {
      return {
        ...described,
        reasons: [...reasons, words.filled(found.paired ? "too_few_in_common" : "too_few_on_one_side", { n: found.n })],
      };
    }
    return reasons.length
      ? described
      : atConfidence({ ...described, basis: estimated(first, second, found.paired) }, found.confidence);
  };

  // The repetitions of a side that a comparison is made of.
  const usableOf = (side) => new Map([...side].filter(([, one]) => hasValue(one) && one.validity === "valid"));

  const compare = (
    baseline,
    contender,
    metric,
    { margin = MARGIN, confidence = CONFIDENCE, sharesRepetitions = true } = {},
  ) => {
    const all = [baseline, contender];
    const usable = all.map(usableOf);
    const count = (validity) =>
      sum(all.map((side) => [...side.values()].filter((one) => hasValue(one) && one.validity === validity).length));
    const [suspect, unknown] = ["suspect", "unknown"].map(count);
    const runs = words.leftOut(suspect, unknown);
    const empty = { ...nothing(metric, { margin, paired: sharesRepetitions }), confidence, suspect, unknown };
    if (usable.some((side) => !side.size))
      return {
        ...empty,
        reasons: [words.filled("no_value", { left_out: runs ? words.filled("no_value_left_out", { runs }) : "" })],
      };
    let sides = usable;
    if (sharesRepetitions) {
      const common = [...usable[0].keys()]
        .filter((repetition) => usable[1].has(repetition))
        .sort((one, other) => one - other);
      if (!common.length) return { ...empty, reasons: [words.filled("no_common_repetition")] };
      sides = usable.map((side) => new Map(common.map((repetition) => [repetition, side.get(repetition)])));
    }
    return compared({ ...empty, n: Math.min(sides[0].size, sides[1].size) }, sides);
  };

  // Distance / error, infinite where there is no error, 0 where there is neither.
  const standardised = (distance, error) => (distance === 0 ? 0 : distance / error);

  const pDifference = (basis) => {
    if (!basis.pooled) return student.beyond(basis.degrees, Math.abs(standardised(basis.mean, basis.error)));
    const exact = shares.pDifference(...basis.pooled);
    if (!basis.within) return exact;
    return basis.mean * basis.within.mean <= 0 ? 1 : Math.max(exact, pDifference(basis.within));
  };
  const pSame = (basis, margin) => {
    if (basis.pooled)
      return Math.max(shares.pSame(...basis.pooled, margin), basis.within ? pSame(basis.within, margin) : 0);
    const room = standardised(margin - Math.abs(basis.mean), basis.error);
    return room > 0 ? student.beyond(basis.degrees, room) : 1;
  };

  // 1 - the confidence from which on the interval leaves out equality; null without an interval.
  const pDifferent = (found) => {
    if (!found.basis) return null;
    return found.open_side && found.basis.mean * found.open_side <= 0 ? 1 : pDifference(found.basis);
  };
  // 1 - the confidence from which on it lies within the margin; null where no sameness is judged.
  const pAlike = (found) =>
    !found.basis || found.margin === null || found.open_side
      ? null
      : pSame(found.basis, marginOnScale(found.kind, found.margin));

  // What does not scatter is told by arithmetic, and is in no family.
  const scatters = ({ basis }) =>
    Boolean(basis && (basis.pooled || basis.error > NO_SCATTER * Math.max(1, Math.abs(basis.mean))));

  const ascending = (values) => [...values].sort((one, other) => one - other);
  const discoveries = (pValues, rate) =>
    ascending(pValues).reduce((most, p, place) => (p <= ((place + 1) * rate) / pValues.length ? place + 1 : most), 0);
  const jointConfidence = (pValues, rate) => 1 - (Math.max(discoveries(pValues, rate), 1) * rate) / pValues.length;
  const simes = (pValues) => Math.min(1, ...ascending(pValues).map((p, place) => (p * pValues.length) / (place + 1)));

  // The confidence of each family, of those that show something; that of one comparison where a family is empty.
  const ofFamilies = (families, rate) => {
    const asked = families.filter((family) => family.length);
    const selected = discoveries(asked.map(simes), rate);
    const own = (rate * Math.max(selected, 1)) / asked.length;
    return families.map((family) => (family.length ? jointConfidence(family, own) : CONFIDENCE));
  };

  // An interval of one confidence for sameness, and where it is not the same of another.
  const judgedApart = (comparison, difference, sameness) => {
    const found = { ...comparison, difference_confidence: difference };
    const same = atConfidence(found, sameness);
    if (same.verdict === "same") return same;
    const told = atConfidence(found, difference);
    return told.verdict !== "same" || differs(told) ? told : { ...told, verdict: CANNOT_TELL };
  };

  // The comparisons of one question, with intervals and verdicts that hold together; `figures` says of each what it compares.
  const judgedTogether = (comparisons, figures, rate = RATE) => {
    const names = [...new Set(figures)];
    const members = names.map((name) => comparisons.filter((one, place) => figures[place] === name && scatters(one)));
    const known = (pValue) => members.map((family) => family.map(pValue).filter((p) => p !== null));
    const [differences, sames] = [pDifferent, pAlike].map((pValue) => ofFamilies(known(pValue), rate));
    return comparisons.map((one, place) => {
      const own = names.indexOf(figures[place]);
      return one.basis ? judgedApart(one, differences[own], sames[own]) : one;
    });
  };

  // Deviations as samples find them, as shares of the true one: the middles of equally likely classes.
  const kept = new Map();
  const deviations = (degrees) => {
    if (!kept.has(degrees)) {
      kept.set(
        degrees,
        Array.from({ length: CLASSES }, (_, i) =>
          Math.sqrt(student.gammaQuantile(degrees / 2, (i + 0.5) / CLASSES) / (degrees / 2)),
        ),
      );
    }
    return kept.get(degrees);
  };

  const chance = (middle, deviation, n, confidence, margin) => {
    if (deviation <= 0) return 1;
    const error = deviation / Math.sqrt(n);
    const width = student.quantile(n - 1, 1 - confidence) * error;
    const within = (bound) => student.normal((bound - middle) / error) - student.normal((-bound - middle) / error);
    return mean(
      deviations(n - 1).map((share) =>
        Math.min(1, 1 - within(width * share) + within(Math.max(margin - width * share, 0))),
      ),
    );
  };

  // How many more repetitions would tell, if what was found is what is; null where none up to a hundred would.
  // It takes a while: ask for it where it is read.
  const moreRepetitions = (found) => {
    // Repetitions that all agree, and tell nothing: more of the same tell nothing either.
    if (
      !found.basis ||
      found.basis.pooled ||
      found.basis.error <= 0 ||
      found.open_side ||
      found.verdict !== CANNOT_TELL
    )
      return null;
    const margin = found.margin === null ? 0 : marginOnScale(found.kind, found.margin);
    for (let n = found.basis.n + 1; n <= REPETITIONS_MAX; n += 1) {
      if (chance(found.basis.mean, found.basis.error * Math.sqrt(found.basis.n), n, found.confidence, margin) >= CHANCE)
        return n - found.basis.n;
    }
    return null;
  };

  return {
    compare,
    ofEstimate,
    judgedApart,
    judgedTogether,
    discoveries,
    jointConfidence,
    moreRepetitions,
    pDifferent,
    pDifference,
    pAlike,
    students,
    takenBack,
    usableOf,
    MARGIN,
    CANNOT_TELL,
  };
})();
