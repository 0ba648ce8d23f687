"use strict";
// "Zlib" (RFC 1950 and 1951), as page/document.py packs it. The browser has its own, but answers some time later, when a page that is
// printed as soon as it is there has been printed without its pictures. Pure.

/** @type {(bytes: Uint8Array) => Uint8Array} */
bedplate.inflated = (() => {
  const HEADER_BYTES = 2;
  const LONGEST = 15;
  // Codes of up to so many bits are looked up, longer ones are read bit by bit.
  const QUICK = 9;
  const LENGTH_BASE = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
  ];
  const LENGTH_MORE = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
  const BACK_MORE = Array.from({ length: 30 }, (_, i) => Math.max(0, (i >> 1) - 1));
  const BACK_BASE = BACK_MORE.map((more, i) => (i < 2 ? i + 1 : ((2 + (i & 1)) << more) + 1));
  const LENGTHS_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

  // Huffman's canonical code of these lengths.
  const codeOf = (lengths) => {
    const counts = new Uint16Array(LONGEST + 1);
    for (const length of lengths) counts[length] += 1;
    counts[0] = 0;
    const places = new Uint16Array(LONGEST + 2);
    const next = new Uint16Array(LONGEST + 2);
    for (let bits = 1; bits <= LONGEST; bits += 1) {
      places[bits + 1] = places[bits] + counts[bits];
      next[bits + 1] = (next[bits] + counts[bits]) << 1;
    }
    const symbols = new Uint16Array(lengths.length);
    const quick = new Uint16Array(1 << QUICK);
    lengths.forEach((length, symbol) => {
      if (!length) return;
      symbols[places[length]] = symbol;
      places[length] += 1;
      const code = next[length];
      next[length] += 1;
      if (length > QUICK) return;
      let turned = 0;
      for (let bit = 0; bit < length; bit += 1) turned |= ((code >> bit) & 1) << (length - 1 - bit);
      for (let at = turned; at < quick.length; at += 1 << length) quick[at] = (symbol << 4) | length;
    });
    return { counts, symbols, quick };
  };

  const fixed = () => [
    codeOf(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))),
    codeOf(Array(30).fill(5)),
  ];

  return (bytes) => {
    let at = HEADER_BYTES;
    let held = 0;
    let count = 0;
    let made = new Uint8Array(bytes.length * 4);
    let end = 0;

    const fill = (bits) => {
      while (count < bits) {
        held |= (bytes[at] ?? 0) << count;
        at += 1;
        count += 8;
      }
    };
    const take = (bits) => {
      fill(bits);
      const value = held & ((1 << bits) - 1);
      held >>>= bits;
      count -= bits;
      return value;
    };
    const symbol = ({ counts, symbols, quick }) => {
      fill(LONGEST);
      const found = quick[held & ((1 << QUICK) - 1)];
      if (found) {
        held >>>= found & 15;
        count -= found & 15;
        return found >> 4;
      }
      let code = 0;
      let first = 0;
      let place = 0;
      for (let bits = 1; bits <= LONGEST; bits += 1) {
        code |= take(1);
        if (code - first < counts[bits]) return symbols[place + code - first];
        place += counts[bits];
        first = (first + counts[bits]) << 1;
        code <<= 1;
      }
      throw new Error("the page's data are damaged");
    };
    const room = (more) => {
      if (end + more <= made.length) return;
      const larger = new Uint8Array(Math.max(made.length * 2, end + more));
      larger.set(made);
      made = larger;
    };

    const stored = () => {
      // What was taken ahead begins anew at the next byte.
      at -= count >> 3;
      held = 0;
      count = 0;
      const length = bytes[at] | (bytes[at + 1] << 8);
      at += 4;
      room(length);
      made.set(bytes.subarray(at, at + length), end);
      end += length;
      at += length;
    };

    const dynamic = () => {
      const [literals, backs, own] = [take(5) + 257, take(5) + 1, take(4) + 4];
      const lengths = Array(19).fill(0);
      for (let i = 0; i < own; i += 1) lengths[LENGTHS_ORDER[i]] = take(3);
      const code = codeOf(lengths);
      const all = [];
      while (all.length < literals + backs) {
        const found = symbol(code);
        if (found < 16) all.push(found);
        else {
          const last = found === 16 ? all.at(-1) : 0;
          const times = found === 16 ? take(2) + 3 : found === 17 ? take(3) + 3 : take(7) + 11;
          for (let i = 0; i < times; i += 1) all.push(last);
        }
      }
      return [codeOf(all.slice(0, literals)), codeOf(all.slice(literals))];
    };

    /** @param {any[]} codes */
    const packed = ([literals, backs]) => {
      for (;;) {
        const found = symbol(literals);
        if (found === 256) return;
        room(258);
        if (found < 256) {
          made[end] = found;
          end += 1;
        } else {
          const length = LENGTH_BASE[found - 257] + take(LENGTH_MORE[found - 257]);
          const far = symbol(backs);
          const back = BACK_BASE[far] + take(BACK_MORE[far]);
          for (let i = 0; i < length; i += 1) made[end + i] = made[end + i - back];
          end += length;
        }
        if (at > bytes.length + 4) throw new Error("the page's data are damaged");
      }
    };

    let isLast = 0;
    while (!isLast) {
      isLast = take(1);
      const kind = take(2);
      if (kind === 0) stored();
      else packed(kind === 1 ? fixed() : dynamic());
    }
    return made.subarray(0, end);
  };
})();
