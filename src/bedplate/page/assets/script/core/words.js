"use strict";
// Sentences that Python says too: it gives them with the document (page/document.py), and values are filled in here. Pure.

bedplate.words = (() => {
  const { templates, words, verdicts } = bedplate.document.rules;

  // As model/course.py fills them.
  const filled = (name, values = {}) => {
    const known = { s: values.n === 1 ? "" : "s", ...values };
    const written = (value) => (Number.isInteger(value) ? bedplate.count(value) : value);
    return templates[name].replace(/{(\w+)}/g, (_, key) => written(known[key]));
  };
  const capital = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

  // Runs that take no part; nothing without any.
  const leftOut = (suspect, unknown) =>
    [
      ["suspect_runs", suspect],
      ["unknown_runs", unknown],
    ]
      .filter(([, n]) => n)
      .map(([name, n]) => filled(name, { n }))
      .join(", ");

  // A share may be zero and has no ratio: its margin is in points of a hundred.
  const margin = (kind, share) =>
    filled(kind === "ratio" ? "of_ratios" : "of_differences", { margin: Number((share * 100).toPrecision(6)) });

  // Whether an interval leaves open what is asked, so that its ends are not worth reading.
  const tellsNothing = (kind, low, high) => kind === "ratio" && high >= verdicts.NOTHING_TOLD * low;

  // From the least to the greatest of some confidences.
  const confidences = (own) => {
    const ends = [Math.min(...own), Math.max(...own)].map((one) => String(Number((one * 100).toPrecision(4))));
    return `${[...new Set(ends)].join(" to ")} %`;
  };

  // What holds of all comparisons with an interval; `counts` are of the verdicts that can tell.
  const canTell = (n, counts, own) => {
    const said = [...counts].map(([word, count]) => `${bedplate.count(count)} ${word}`).join(", ");
    const told = [...counts.values()].reduce((one, other) => one + other, 0);
    return (
      `${filled("can_tell", { told, n, counts: said ? `: ${said}` : "" })} ` +
      filled("wrong_on_average", { confidence: confidences(own) })
    );
  };

  // Where two cells are not alike in what survives a power cut, on their own device or on another one; else nothing.
  const promisesDiffer = (one, other) => {
    const values = { first: one.promise, second: other.promise };
    if (one.promise_here !== other.promise_here) return filled("promises_differ", values);
    if (one.promise === other.promise) return "";
    const sectors = one.cache !== other.cache ? "other" : one.cache === "volatile-4k" ? "512" : "4k";
    return filled("promises_differ_elsewhere", { ...values, sectors: filled(`sectors_${sectors}`) });
  };

  // Of what k of n speaks: cuts of one recording share what happened in it.
  const aboutCounts = (n, within) =>
    filled(within ? "within_recordings" : n === 1 ? "one_recording" : "several_recordings", { n });

  return {
    ...words,
    filled,
    capital,
    leftOut,
    margin,
    tellsNothing,
    confidences,
    canTell,
    promisesDiffer,
    aboutCounts,
  };
})();
