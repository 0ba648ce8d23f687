"use strict";
// One ratio over many matched pairs, and whether they disagree: as statistics/comparison.py has it, with the same steps. Pure.
//
// A row is one pair's differences by block, null where it lacks one; blocks are the repetitions of the studies.

bedplate.pooledPairs = (() => {
  const { student } = bedplate;
  const { NO_SCATTER } = bedplate.document.rules.verdicts;
  const sum = (values) => values.reduce((one, other) => one + other, 0);
  const mean = (values) => sum(values) / values.length;
  const squares = (values) => sum(values.map((value) => value * value));

  // Satterthwaite's: of a sum of squares with this covariance.
  const degrees = (covariance, blocks) => {
    const trace = sum(covariance.map((row, at) => row[at]));
    if (!(trace > NO_SCATTER ** 2)) return Math.max(blocks - 1, 1);
    return trace ** 2 / sum(covariance.map(squares));
  };

  // The weighted sum of the means of rows; `studies` has the study of each block.
  const weightedMean = (rows, weights, studies) => {
    const used = rows
      .map((row, at) => ({ row, weight: weights[at] }))
      .filter(({ weight }) => weight)
      .map(({ row, weight }) => {
        const known = row.filter((value) => value !== null);
        const middle = mean(known);
        const residuals = row.map((value) => (value === null ? null : value - middle));
        const n = known.length;
        const scatter = squares(known.map((value) => value - middle)) / (n - 1);
        return { weight, middle, residuals, n, scatter, share: weight / Math.sqrt(n * (n - 1)) };
      });
    const blocks = studies.map((_, block) => used.filter(({ residuals }) => residuals[block] !== null));
    const byBlock = blocks.map((own, block) => sum(own.map(({ share, residuals }) => share * residuals[block])));
    const together = (one, other) =>
      sum(
        blocks[one]
          .filter(({ residuals }) => residuals[other] !== null)
          .map(({ share, scatter, n }) => share ** 2 * scatter * (Number(one === other) - 1 / n)),
      );
    const own = [...new Set(studies)]
      .map((study) => studies.flatMap((one, block) => (one === study && blocks[block].length ? [block] : [])))
      .filter((places) => places.length);
    return {
      mean: sum(used.map(({ weight, middle }) => weight * middle)),
      error: Math.sqrt(squares(byBlock)),
      degrees: Math.min(
        ...own.map((places) =>
          degrees(
            places.map((one) => places.map((other) => together(one, other))),
            places.length,
          ),
        ),
      ),
      n: Math.min(...own.map((places) => places.length)),
    };
  };

  const residuals = (rows) => {
    const ofBlocks = rows[0].map((_, block) => mean(rows.map((row) => row[block])));
    const all = mean(ofBlocks);
    return rows.map((row) => row.map((value, block) => value - mean(row) - ofBlocks[block] + all));
  };

  // Analysis of variance, with Box's degrees of freedom for pairs of unequal scatter.
  const pOfVariance = (rows) => {
    const [pairs, blocks] = [rows.length, rows[0].length];
    const means = rows.map(mean);
    const between = (blocks * squares(means.map((one) => one - mean(means)))) / (pairs - 1);
    const variances = residuals(rows).map((row) => squares(row) / (blocks - 1));
    const total = sum(variances);
    const within = total / (pairs - 1);
    if (!(within > NO_SCATTER ** 2)) return between > NO_SCATTER ** 2 ? 0 : 1;
    const own = (total * (1 - 1 / pairs)) ** 2 / (squares(variances) * (1 - 2 / pairs) + (total / pairs) ** 2);
    const over = Math.min(Math.max(own, 1), pairs - 1);
    return student.ratioBeyond(over, over * (blocks - 1), between / within);
  };

  // The chance of pairs as far apart, were their differences one and the same; no gap, two pairs and two blocks at least.
  const pDisagreement = (rows) => {
    const all = pOfVariance(rows);
    if (rows.length === 2) return all;
    const scatter = residuals(rows).map(squares);
    const most = scatter.lastIndexOf(Math.max(...scatter));
    return Math.max(all, pOfVariance(rows.filter((_, at) => at !== most)));
  };

  // The repetitions to keep of rows by repetition, and which rows have all of them (statistics/design.py).
  const completePart = (rows) => {
    const counts = new Map();
    for (const row of rows) for (const one of row.keys()) counts.set(one, (counts.get(one) ?? 0) + 1);
    const often = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one) || one - other);
    let best = { size: 0, repetitions: [], kept: [] };
    for (let k = 1; k <= often.length; k += 1) {
      const repetitions = often.slice(0, k).sort((one, other) => one - other);
      const kept = rows.filter((row) => repetitions.every((one) => row.has(one)));
      if (kept.length * k >= best.size) best = { size: kept.length * k, repetitions, kept };
    }
    return best.kept.map((row) => best.repetitions.map((one) => row.get(one)));
  };

  return { weightedMean, pDisagreement, completePart };
})();
