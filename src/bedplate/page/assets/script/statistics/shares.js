"use strict";
// Two k of n: how they differ, as statistics/comparison.py says it. Exact, from one recording on;
// from three repetitions on the wider evidence counts, the exact one or Student's of the repetitions.
// Pure; the vectors of tests/golden/statistics hold the two together. A count is [k, n].

bedplate.shares = (() => {
  const { student } = bedplate;

  const of = ([k, n]) => k / n;
  // The chance of k or more of n, k being 1 at least, and of k or fewer, k being below n; `rest` is 1 - share.
  const atLeast = ([k, n], share, rest = 1 - share) => student.beta(k, n - k + 1, share, rest);
  const atMost = ([k, n], share, rest = 1 - share) => student.beta(n - k, k + 1, rest, share);

  // Where a function that grows from below 0 to 0 or above is 0.
  const root = (grows, low, high) => {
    for (let step = 0; step < 2000; step += 1) {
      const middle = (low + high) / 2;
      if (middle === low || middle === high) break;
      if (grows(middle) < 0) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  };

  // The bounds of a share that leave `tail` outside on either side (Clopper & Pearson 1934); each of them once.
  const known = new Map();
  const bounds = (count, tail) => {
    const key = `${count}/${tail}`;
    if (!known.has(key)) {
      known.set(key, [
        count[0] === 0 ? 0 : root((x) => atLeast(count, x) - tail, 0, 1),
        count[0] === count[1] ? 1 : root((x) => tail - atMost(count, x), 0, 1),
      ]);
    }
    return known.get(key);
  };

  // Both intervals hold at once with this confidence, each with its square root.
  const exact = (first, second, confidence) => {
    const tail = (1 - Math.sqrt(confidence)) / 2;
    const [one, other] = [bounds(first, tail), bounds(second, tail)];
    return [other[0] - one[1], other[1] - one[0]];
  };

  // 1 - the confidence up to which the upper bound of one share lies at most `shift` above the lower one of the other.
  const below = (upper, lower, shift) => {
    if (shift >= 1) return 0;
    let tail;
    if (lower[0] === 0) tail = upper[0] === upper[1] ? 1 : atMost(upper, shift);
    else if (upper[0] === upper[1]) tail = atLeast(lower, 1 - shift, shift);
    else
      tail = atLeast(
        lower,
        root((x) => atLeast(lower, x) - atMost(upper, x + shift), 0, 1 - shift),
      );
    return tail < 0.5 ? 4 * tail * (1 - tail) : 1;
  };

  const pDifference = (first, second) => {
    if (of(first) === of(second)) return 1;
    return of(second) > of(first) ? below(first, second, 0) : below(second, first, 0);
  };
  const pSame = (first, second, margin) => Math.max(below(first, second, margin), below(second, first, margin));

  return { exact, of, pDifference, pSame };
})();
