"use strict";
// The middle of some values, and where many courses lie second by second. Pure.

bedplate.spread = (() => {
  const median = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  };

  // Second by second, over the runs that have a value then: the least, the median, the greatest, and of how many.
  const bySecond = (courses, column) => {
    const at = new Map();
    for (const course of courses) {
      const values = course[column] ?? [];
      for (let i = 0; i < values.length; i += 1) {
        if (values[i] === null) continue;
        const known = at.get(course.second[i]);
        if (known) known.push(values[i]);
        else at.set(course.second[i], [values[i]]);
      }
    }
    const second = [...at.keys()].sort((a, b) => a - b);
    const found = second.map((one) => at.get(one));
    return {
      second,
      low: found.map((values) => Math.min(...values)),
      high: found.map((values) => Math.max(...values)),
      n: found.map((values) => values.length),
      median: found.map(median),
    };
  };

  return { median, bySecond };
})();
