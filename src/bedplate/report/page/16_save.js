"use strict";
// Every picture can be taken along: as SVG, and the table behind it as CSV. Nothing leaves the page by itself.
//
// `bedplate.save.attach(figure, {name, svg, rows})` puts the two buttons behind a figure. `svg` makes the text of the
// drawing and `rows` the rows of the table, both only when they are asked for; both may be asynchronous. Without
// `svg` the figure is drawn as it stands, without `rows` the tables within it are read.

bedplate.save = (() => {
  const { element: h } = bedplate;
  const SVG = "http://www.w3.org/2000/svg";
  const MOST_OF_A_NAME = 80;

  const slug = (text) => text.normalize("NFKD").replace(/[^A-Za-z0-9.]+/g, "-").replace(/^[-.]+|-+$/g, "").slice(0, MOST_OF_A_NAME).toLowerCase() || "picture";

  const download = (name, type, text) => {
    const address = URL.createObjectURL(new Blob([text], { type }));
    const link = h("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    // The browser has taken hold of it by the next turn of its loop; a minute is for slow disks.
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  };

  // What a spreadsheet might take for a formula stands behind an apostrophe; plain numbers stay numbers.
  const field = (value) => {
    const text = String(value ?? "").trim();
    const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.,]+( %)?$/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const csv = (rows) => `\uFEFF${rows.map((row) => row.map(field).join(",")).join("\r\n")}\r\n`;

  // Blocks within a cell of a table are words of their own.
  const words = (cell) => {
    const found = [];
    const walk = (node) => {
      if (node.nodeType === Node.TEXT_NODE) found.push(node.data);
      else if (node.nodeName === "BR") found.push(" ");
      else if (node.nodeType === Node.ELEMENT_NODE && !node.classList.contains("save")) {
        node.childNodes.forEach(walk);
        if (!["B", "CODE", "EM", "STRONG"].includes(node.nodeName)) found.push(" ");
      }
    };
    cell.childNodes.forEach(walk);
    return found.join("").replace(/\s+/g, " ").trim();
  };

  // The tables within an element, one below the other; a heading over one becomes a row.
  const rowsOf = (root) => {
    const tables = root.matches("table") ? [root] : [...root.querySelectorAll("table")];
    return tables.flatMap((table, place) => {
      const caption = table.closest("figure")?.querySelector("figcaption");
      return [
        ...(place ? [[]] : []),
        ...(caption ? [[words(caption)]] : []),
        ...[...table.rows].map((row) => [...row.cells].flatMap((cell) => [words(cell), ...Array(cell.colSpan - 1).fill("")])),
      ];
    });
  };

  // Colours as every program reads them: what a style mixes is drawn once, and looked at.
  const rgb = (() => {
    const known = new Map();
    const brush = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    return (colour) => {
      if (!known.has(colour)) {
        brush.clearRect(0, 0, 1, 1);
        brush.fillStyle = colour;
        brush.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
        known.set(colour, a ? { fill: `rgb(${r},${g},${b})`, "fill-opacity": a / 255 } : null);
      }
      return known.get(colour);
    };
  })();

  const node = (name, attributes, text = "") => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  };

  // Text by lines, as the browser broke it: words whose tops agree stand on one line.
  const lines = (text) => {
    const range = document.createRange();
    const found = [];
    for (const match of text.data.matchAll(/\S+/g)) {
      range.setStart(text, match.index);
      range.setEnd(text, match.index + match[0].length);
      const box = range.getBoundingClientRect();
      const last = found.at(-1);
      if (!box.width) continue;
      if (last && Math.abs(last.box.top - box.top) < 2) last.words.push(match[0]);
      else found.push({ box, words: [match[0]] });
    }
    return found;
  };

  // What stands on the page as an SVG of rectangles and texts: for pictures that are tables.
  const drawn = (root) => {
    const frame = root.getBoundingClientRect();
    const width = Math.max(1, Math.ceil(Math.max(frame.width, root.scrollWidth)));
    const height = Math.max(1, Math.ceil(Math.max(frame.height, root.scrollHeight)));
    const svg = node("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}` });
    const hatch = node("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    hatch.append(node("line", { x1: 0, y1: 0, x2: 0, y2: 7, stroke: rgb(getComputedStyle(root).color)?.fill ?? "#888", "stroke-opacity": 0.35, "stroke-width": 3 }));
    svg.append(node("defs", {}));
    svg.firstChild.append(hatch);
    const put = (box, paint) => svg.append(node("rect", { x: box.left - frame.left, y: box.top - frame.top, width: box.width, height: box.height, ...paint }));
    const write = (box, style, text) => svg.append(node("text", {
      x: box.left - frame.left, y: box.top - frame.top + box.height * 0.78, "font-size": style.fontSize, "font-family": style.fontFamily, "font-weight": style.fontWeight, ...rgb(style.color),
    }, text));
    const walk = (element) => {
      const style = getComputedStyle(element);
      if (style.display === "none" || style.visibility === "hidden" || element.classList.contains("save")) return;
      const box = element.getBoundingClientRect();
      const ground = rgb(style.backgroundColor);
      const rounded = { rx: Math.min(6, parseFloat(style.borderTopLeftRadius) || 0) };
      if (ground && element !== root) put(box, { ...ground, ...rounded });
      if (style.backgroundImage.includes("gradient")) put(box, { fill: "url(#hatch)", ...rounded });
      if (parseFloat(style.outlineWidth) && style.outlineStyle !== "none" && style.outlineStyle !== "auto") put(box, { fill: "none", stroke: rgb(style.outlineColor)?.fill ?? "none", "stroke-width": style.outlineWidth, ...rounded });
      for (const child of element.childNodes) {
        if (child.nodeType === Node.TEXT_NODE) lines(child).forEach((line) => write(line.box, style, line.words.join(" ")));
        else if (child.nodeType === Node.ELEMENT_NODE) walk(child);
      }
      const mark = getComputedStyle(element, "::after").content;
      if (/^".+"$/.test(mark)) write({ left: box.right - 10, top: box.top, height: 14 }, style, mark.slice(1, -1));
    };
    walk(root);
    return svg;
  };

  // A ground of the page's own colour: on another one, its texts might not be read.
  const finished = (svg, { title, description }) => {
    const [, , width, height] = (svg.getAttribute("viewBox") ?? `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`).split(" ");
    svg.prepend(node("title", {}, title), node("desc", {}, description), node("rect", { width, height, ...rgb(getComputedStyle(document.body).backgroundColor) }));
    return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
  };

  const isPlot = (figure) => figure.classList.contains("js-plotly-plot");

  const plotted = async (figure) => {
    const address = await Plotly.toImage(figure, { format: "svg", width: figure.clientWidth, height: figure.clientHeight });
    return new DOMParser().parseFromString(decodeURIComponent(address.slice(address.indexOf(",") + 1)), "image/svg+xml").documentElement;
  };

  const described = (figure) => {
    const section = figure.closest("section");
    const heading = section?.querySelector("h2")?.textContent ?? "";
    const caption = figure.closest("figure")?.querySelector("figcaption")?.textContent;
    return {
      title: [document.querySelector("h1").textContent, heading, caption].filter(Boolean).join(" · "),
      description: [...(section?.querySelectorAll(":scope > .muted, :scope > .note") ?? [])].map((one) => one.textContent.trim()).filter(Boolean).join(" "),
    };
  };

  const named = (name) => {
    const { state } = bedplate.choice ?? {};
    const page = bedplate.document;
    const chosen = state && state.run !== undefined ? [page.runs[state.run]?.run, page.metrics[state.metric]?.name] : [];
    return slug([name, ...chosen].filter(Boolean).join("-"));
  };

  const attach = (figure, { name, svg = null, rows = null }) => {
    if (!figure || figure.dataset.saved) return;
    figure.dataset.saved = "yes";
    const said = h("span", { class: "note", role: "status" });
    const saving = (act) => async () => {
      said.textContent = "";
      try {
        await act();
      } catch (error) {
        said.textContent = `This could not be saved: ${error.message}.`;
      }
    };
    const drawing = async () => {
      if (svg) return svg();
      if (isPlot(figure)) return finished(await plotted(figure), described(figure));
      return finished(drawn(figure), described(figure));
    };
    const heading = described(figure).title.split(" · ").slice(1).join(", ");
    figure.after(h("p", { class: "save", role: "group", "aria-label": `Save ${heading}` },
      h("button", { type: "button", onclick: saving(async () => download(`${named(name)}.svg`, "image/svg+xml", await drawing())) }, "Save SVG"),
      h("button", { type: "button", onclick: saving(async () => download(`${named(name)}.csv`, "text/csv;charset=utf-8", csv(await (rows ?? (() => rowsOf(figure)))()))) }, "Save CSV"),
      said));
  };

  // The rows of a table that is filled when it is opened: made anew, whether it is open or not.
  const rowsBehind = (id) => async () => {
    const found = await bedplate.lazyTable.made(id);
    if (!found) throw new Error("nothing is drawn here");
    return rowsOf(h("div", {}, found));
  };

  return { attach, csv, download, rowsBehind, rowsOf, slug };
})();
