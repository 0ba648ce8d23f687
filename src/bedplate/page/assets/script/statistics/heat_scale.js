"use strict";
// Heat maps as numbers, as statistics/heat_map.py makes them: one scale for all, the average of the complete ones.
// Pure; the vectors of tests/golden/statistics hold the two together.

bedplate.heatScale = (() => {
  const { LOGARITHMIC_ABOVE } = bedplate.document.rules.heat_map;

  const common = (values, scale) => {
    if (!values.length) return null;
    const low = values.reduce((one, other) => Math.min(one, other));
    const high = values.reduce((one, other) => Math.max(one, other));
    return { low, high, logarithmic: scale === "ratio" && low > 0 && high / low > LOGARITHMIC_ABOVE };
  };

  const mean = (values, scale) => {
    const plain = (all) => all.reduce((one, other) => one + other, 0) / all.length;
    return scale === "ratio" && values.every((value) => value > 0)
      ? Math.exp(plain(values.map(Math.log)))
      : plain(values);
  };

  // `maps` has a map from square to value for each variant. A variant that lacks a square counts not at all.
  const average = (maps, scale) => {
    const shown = [...new Set([...maps.values()].flatMap((squares) => [...squares.keys()]))];
    const used = [...maps].filter(([, squares]) => shown.every((square) => squares.has(square))).map(([name]) => name);
    if (!used.length || !shown.length) return { values: new Map(), used: [], left_out: [...maps.keys()] };
    return {
      values: new Map(
        shown.map((square) => [
          square,
          mean(
            used.map((name) => maps.get(name).get(square)),
            scale,
          ),
        ]),
      ),
      used,
      left_out: [...maps.keys()].filter((name) => !used.includes(name)),
    };
  };

  const inOrderOfSafety = (cells) =>
    [...cells].sort((one, other) => one.safety[0] - other.safety[0] || one.safety[1] - other.safety[1]);
  // What a power cut leaves of some cells, the safest first.
  const promises = (cells) => [...new Set(inOrderOfSafety(cells).map((cell) => cell.promise_here))].join(", ");

  // The maps of one durability class, the safest that there is: classes are in no average together.
  const ofSafestClass = (maps, cells) => {
    const promise = inOrderOfSafety(cells)[0]?.promise_here;
    const kept = [...maps].filter(([name]) => promises(cells.filter(({ panel }) => panel === name)) === promise);
    return { promise, maps: new Map(kept), others: maps.size - kept.length };
  };

  // The best of the cells that keep every commit on their device, by a value that each has; null without two of them, and
  // where nothing is better.
  const bestDurable = (cells, valueOf, better) => {
    const known = cells.filter(({ safety }) => safety[0] === 0);
    if (better === "neither" || known.length < 2) return null;
    const sign = better === "lower" ? 1 : -1;
    const ahead = (one, other) => sign * valueOf(other.index) < sign * valueOf(one.index);
    return known.reduce((one, other) => (ahead(one, other) ? other : one)).index;
  };

  // Where a value lies between the ends of a scale, from 0 to 1.
  const share = (value, ends) => {
    if (ends.high === ends.low) return 0.5;
    if (ends.logarithmic) return Math.log(value / ends.low) / Math.log(ends.high / ends.low);
    return (value - ends.low) / (ends.high - ends.low);
  };

  // The labels of one side of the maps, by their sizes.
  const axis = (cells, name) => {
    const sizes = new Map();
    for (const cell of cells) sizes.set(cell[name], cell[`${name}_bytes`] ?? 0);
    return [...sizes].sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1)).map(([label]) => label);
  };

  return { axis, share, common, mean, average, promises, ofSafestClass, bestDurable };
})();
