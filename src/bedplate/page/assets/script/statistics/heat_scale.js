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

  return { common, average };
})();
