// Runs parts of the page's script without a browser: what they draw is nobody's, what they judge is looked at.
// Standard input: { document, parts: [source, …], ask: a function's source, given: its argument }. Output: its value.
"use strict";
const { readFileSync } = require("node:fs");
const vm = require("node:vm");

const { document: page, parts, ask, given } = JSON.parse(readFileSync(0, "utf8"));
const nothing = () => undefined;
const element = { textContent: JSON.stringify(page), replaceChildren: nothing, append: nothing };
const context = vm.createContext({
  ...{ atob, TextDecoder, URL, URLSearchParams },
  document: { readyState: "complete", getElementById: () => ({ ...element }), addEventListener: nothing },
  location: { hash: "" },
  history: { replaceState: nothing },
  addEventListener: nothing,
  setTimeout: nothing,
  clearTimeout: nothing,
  requestAnimationFrame: nothing,
});
context.window = context;
vm.runInContext([...parts, `globalThis.answer = (${ask});`].join("\n"), context);
Promise.resolve(context.answer(given)).then((found) => process.stdout.write(JSON.stringify(found)));
