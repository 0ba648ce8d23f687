"use strict";
// Every picture can be taken along: as SVG and PNG, and the table behind it as CSV. Nothing leaves the page by itself.
//
// `bedplate.save.attach(figure, {name, svg, rows, legend})` puts the buttons behind a figure. `svg` makes the text of
// the drawing and `rows` the rows of the table, both only when they are asked for; both may be asynchronous. Without
// `svg` the figure is drawn as it stands, under its title and the element `legend`, above the notes of its section, which
// say what it is and how many values stand behind it. Without `rows` the tables within the figure are read.

bedplate.save = (() => {
  const { element: h } = bedplate;
  const SVG = "http://www.w3.org/2000/svg";
  const MOST_OF_A_NAME = 80;

  const slug = (text) =>
    text
      .normalize("NFKD")
      .replace(/[^A-Za-z0-9.]+/g, "-")
      .replace(/^[-.]+|-+$/g, "")
      .slice(0, MOST_OF_A_NAME)
      .toLowerCase() || "picture";

  const download = (name, type, text) => {
    const address = URL.createObjectURL(new Blob([text], { type }));
    const link = h("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    // The browser has taken hold of it by the next turn of its loop; a minute is for slow disks.
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  };

  // What a spreadsheet might take for a formula stands behind an apostrophe; plain numbers stay numbers, and lose the
  // commas between thousands.
  const field = (value) => {
    const said = String(value ?? "").trim();
    const text = /^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(said) ? said.replace(/,/g, "") : said;
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
      else if (node.nodeType === Node.ELEMENT_NODE && !node.matches(".save, .alike")) {
        node.childNodes.forEach(walk);
        if (!["B", "CODE", "EM", "STRONG"].includes(node.nodeName)) found.push(" ");
      }
    };
    cell.childNodes.forEach(walk);
    return found.join("").replace(/\s+/g, " ").trim();
  };

  // A figure as the page writes it, and what may stand between the figures of one cell: a range, an interval, `3 of 12`.
  const FIGURE = "[+−-]?(?:\\d{1,3}(?:,\\d{3})+|\\d+)(?:\\.\\d+)?(?:e[+-]?\\d+)?";
  const BETWEEN_FIGURES = "\\s*[–(]\\s*|\\s+to\\s+|\\s+of\\s+|,\\s*<\\s*|\\s+";
  const WHOLE = new RegExp(`^(?:n = )?×?${FIGURE}(?:\\s?%)?(?:(?:${BETWEEN_FIGURES})×?${FIGURE}(?:\\s?%)?\\)?)*$`);
  const PIECES = new RegExp(`(${BETWEEN_FIGURES}|^(?:n = )?)×?(${FIGURE})(\\s?%)?`, "g");
  const NOTHING = /^[–—-]?$/;

  // The figures of a cell of a table, each with what stands before it; null where the cell is not figures alone.
  const figuresOf = (text) =>
    WHOLE.test(text)
      ? [...text.matchAll(PIECES)].map(([, before, figure, percent]) => ({
          before: before.trim(),
          figure: figure.replace(/[,+]/g, "").replace("−", "-"),
          percent: Boolean(percent),
        }))
      : null;

  const isRange = (before) => ["–", "to"].includes(before);
  const nameOf = (found, place) => {
    const { before } = found[place];
    if (isRange(before)) return ", to";
    if (isRange(found[place + 1]?.before)) return ", from";
    if (before === "of") return ", of";
    if (before.includes("<")) return ", below";
    return place ? `, ${place + 1}` : "";
  };

  // A table whose fields hold one figure each: a column of figures with their ranges is several, and what is no figure in
  // it stands in one of its own. The first column has names.
  const oneByField = (rows) => {
    const [head, ...body] = rows;
    const columns = head.map((title, at) => {
      const texts = body.map((row) => row[at] ?? "");
      const parsed = texts.map((text) => (NOTHING.test(text) ? [] : figuresOf(text)));
      const figures = parsed.filter((one) => one?.length);
      const words = parsed.filter((one) => one === null);
      if (!at || !figures.length || words.length > figures.length) return [[title, ...texts]];
      const fullest = figures.reduce((one, other) => (other.length > one.length ? other : one));
      const made = fullest.map(({ percent }, place) => [
        `${title}${nameOf(fullest, place)}${percent ? ", %" : ""}`,
        ...parsed.map((one) => one?.[place]?.figure ?? ""),
      ]);
      if (words.length) made.push([`${title}, note`, ...parsed.map((one, row) => (one === null ? texts[row] : ""))]);
      return made;
    });
    return rows.map((_, row) => columns.flat().map((column) => column[row]));
  };

  // The fields of rows: what stands in a cell that spans several rows stands in each of them.
  const filledRows = (rows) => {
    const spans = new Map();
    return rows.map((row) => {
      const fields = [];
      const carry = () => {
        for (let span = spans.get(fields.length); span?.left; span = spans.get(fields.length)) {
          span.left -= 1;
          fields.push(span.text);
        }
      };
      for (const cell of row.cells) {
        carry();
        const text = words(cell);
        if (cell.rowSpan > 1) spans.set(fields.length, { text, left: cell.rowSpan - 1 });
        fields.push(text, ...Array(cell.colSpan - 1).fill(""));
      }
      carry();
      return fields;
    });
  };

  // The tables within an element, one below the other; a heading over one becomes a row.
  const rowsOf = (root) => {
    const tables = root.matches("table") ? [root] : [...root.querySelectorAll("table")];
    return tables.flatMap((table, place) => {
      bedplate.longTables.complete(table);
      const caption = table.closest("figure")?.querySelector("figcaption");
      const rows = filledRows([...table.rows].filter((row) => !row.hidden));
      return [...(place ? [[]] : []), ...(caption ? [[words(caption)]] : []), ...(rows.length ? oneByField(rows) : [])];
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

  let ramps = 0;

  // What stands on the page as an SVG of rectangles and texts: for pictures that are tables.
  const drawn = (root) => {
    const frame = root.getBoundingClientRect();
    const width = Math.max(1, Math.ceil(Math.max(frame.width, root.scrollWidth)));
    const height = Math.max(1, Math.ceil(Math.max(frame.height, root.scrollHeight)));
    const svg = node("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    const hatch = node("pattern", {
      id: "hatch",
      width: 7,
      height: 7,
      patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)",
    });
    hatch.append(
      node("line", {
        x1: 0,
        y1: 0,
        x2: 0,
        y2: 7,
        stroke: rgb(getComputedStyle(root).color)?.fill ?? "#888",
        "stroke-opacity": 0.35,
        "stroke-width": 3,
      }),
    );
    svg.append(node("defs", {}));
    svg.firstChild.append(hatch);
    // A ramp of colours from left to right; every other gradient of the page is a hatch.
    const ramp = (image) => {
      if (!image.startsWith("linear-gradient")) return "url(#hatch)";
      const stops = [...image.matchAll(/(?:rgba?|oklab|oklch|color)\([^()]*\)/g)].map(([colour], place, all) => ({
        offset: place / Math.max(1, all.length - 1),
        colour,
      }));
      ramps += 1;
      const made = node("linearGradient", { id: `ramp-${ramps}` });
      made.append(
        ...stops.map(({ offset, colour }) => node("stop", { offset, "stop-color": rgb(colour)?.fill ?? "none" })),
      );
      svg.firstChild.append(made);
      return `url(#ramp-${ramps})`;
    };
    const put = (box, paint) =>
      svg.append(
        node("rect", {
          x: box.left - frame.left,
          y: box.top - frame.top,
          width: box.width,
          height: box.height,
          ...paint,
        }),
      );
    const write = (box, style, text) =>
      svg.append(
        node(
          "text",
          {
            x: box.left - frame.left,
            y: box.top - frame.top + box.height * 0.78,
            "font-size": style.fontSize,
            "font-family": style.fontFamily,
            "font-weight": style.fontWeight,
            ...rgb(style.color),
          },
          text,
        ),
      );
    const walk = (element) => {
      const style = getComputedStyle(element);
      if (style.display === "none" || style.visibility === "hidden" || element.matches(".save, .alike, caption"))
        return;
      const box = element.getBoundingClientRect();
      const ground = rgb(style.backgroundColor);
      const rounded = { rx: Math.min(6, parseFloat(style.borderTopLeftRadius) || 0) };
      if (ground && element !== root) put(box, { ...ground, ...rounded });
      if (style.backgroundImage.includes("gradient")) put(box, { fill: ramp(style.backgroundImage), ...rounded });
      if (parseFloat(style.outlineWidth) && style.outlineStyle !== "none" && style.outlineStyle !== "auto")
        put(box, {
          fill: "none",
          stroke: rgb(style.outlineColor)?.fill ?? "none",
          "stroke-width": style.outlineWidth,
          ...rounded,
        });
      for (const child of element.childNodes) {
        if (child.nodeType === Node.TEXT_NODE)
          lines(child).forEach((line) => write(line.box, style, line.words.join(" ")));
        else if (child.nodeType === Node.ELEMENT_NODE) walk(child);
      }
      const mark = getComputedStyle(element, "::after").content;
      if (/^".+"$/.test(mark)) write({ left: box.right - 10, top: box.top, height: 14 }, style, mark.slice(1, -1));
    };
    walk(root);
    return svg;
  };

  const AROUND = 16;
  const BETWEEN = 12;

  // Drawings one below the other, on a ground of the page's own colour: on another one, texts might not be read.
  const stacked = (parts, { title, description }) => {
    const own = getComputedStyle(document.body);
    const sizes = parts.map((part) => ["width", "height"].map((side) => parseFloat(part.getAttribute(side))));
    const head = node(
      "text",
      {
        x: AROUND,
        y: AROUND + 14,
        "font-size": 15,
        "font-weight": 600,
        "font-family": own.fontFamily,
        ...rgb(own.color),
      },
      title,
    );
    const width = Math.max(...sizes.map(([wide]) => wide), 320) + 2 * AROUND;
    let top = AROUND + 22 + BETWEEN;
    parts.forEach((part, place) => {
      part.setAttribute("x", AROUND);
      part.setAttribute("y", top);
      top += sizes[place][1] + BETWEEN;
    });
    const height = top - BETWEEN + AROUND;
    const svg = node("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    svg.append(
      node("title", {}, title),
      node("desc", {}, description),
      node("rect", { width, height, ...rgb(own.backgroundColor) }),
      head,
      ...parts,
    );
    return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
  };

  // As sharp as a screen with two dots for each, and no larger than browsers draw.
  const DOTS = 2;
  const MOST_DOTS = 16_000;
  const asPng = async (text) => {
    const picture = new Image();
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await picture.decode();
    const { naturalWidth: width, naturalHeight: height } = picture;
    const scale = Math.min(DOTS, MOST_DOTS / width, MOST_DOTS / height);
    const canvas = h("canvas", {});
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    const made = await new Promise((done) => {
      canvas.toBlob(done, "image/png");
    });
    if (!made) throw new Error("the browser has no room for the picture");
    return made;
  };

  const isPlot = (figure) => figure.classList.contains("js-plotly-plot");

  const plotted = async (figure) => {
    const address = await Plotly.toImage(figure, {
      format: "svg",
      width: figure.clientWidth,
      height: figure.clientHeight,
    });
    return new DOMParser().parseFromString(decodeURIComponent(address.slice(address.indexOf(",") + 1)), "image/svg+xml")
      .documentElement;
  };

  const described = (figure) => {
    const section = figure.closest("section");
    const caption = figure.closest("figure")?.querySelector("figcaption")?.textContent;
    return {
      title: [
        document.querySelector("h1").textContent.slice(0, MOST_OF_A_NAME),
        document.getElementById(`${section?.id}-head`)?.textContent,
        caption,
      ]
        .filter(Boolean)
        .join(" · "),
      description: [...(section?.querySelectorAll(":scope > .muted, :scope > .note") ?? [])]
        .map((one) => one.textContent.trim())
        .filter(Boolean)
        .join(" "),
    };
  };

  // The picture with what it cannot be read without.
  const whole = async (figure, legend) => {
    const seen = (one) => one && one.getBoundingClientRect().height > 0 && one.textContent.trim() !== "";
    const notes = [...figure.closest("section").querySelectorAll(":scope > .note")].filter(seen);
    return stacked(
      [
        ...[legend && document.getElementById(legend)].filter(seen).map(drawn),
        isPlot(figure) ? await plotted(figure) : drawn(figure),
        ...notes.map(drawn),
      ],
      described(figure),
    );
  };

  const named = (name) => {
    const { state } = bedplate.choice ?? {};
    const page = bedplate.document;
    const chosen =
      state && state.run !== undefined ? [page.runs[state.run]?.run, page.metrics[state.metric]?.name] : [];
    return slug([name, ...chosen].filter(Boolean).join("-"));
  };

  const attach = (figure, { name, svg = null, rows = null, legend = null }) => {
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
    const drawing = async () => (svg ? svg() : whole(figure, legend));
    const heading = described(figure).title.split(" · ").slice(1).join(", ");
    figure.after(
      h(
        "p",
        { class: "save", role: "group", "aria-label": `Save ${heading}` },
        h(
          "button",
          {
            type: "button",
            onclick: saving(async () => download(`${named(name)}.svg`, "image/svg+xml", await drawing())),
          },
          "Save SVG",
        ),
        h(
          "button",
          {
            type: "button",
            onclick: saving(async () =>
              download(`${named(name)}.csv`, "text/csv;charset=utf-8", csv(await (rows ?? (() => rowsOf(figure)))())),
            ),
          },
          "Save CSV",
        ),
        h(
          "button",
          {
            type: "button",
            onclick: saving(async () => download(`${named(name)}.png`, "image/png", await asPng(await drawing()))),
          },
          "Save PNG",
        ),
        said,
      ),
    );
  };

  // Where a page may not write to the clipboard, a text that is chosen is copied.
  const copy = async (text) => {
    if (navigator.clipboard && window.isSecureContext) {
      await navigator.clipboard.writeText(text);
      return;
    }
    const chosen = h("textarea", { "aria-hidden": "true" });
    chosen.value = text;
    document.body.append(chosen);
    chosen.select();
    const done = document.execCommand("copy");
    chosen.remove();
    if (!done) throw new Error("the browser does not allow it");
  };

  // A button behind an element that copies a text, such as a study in twelve lines and a table.
  const attachCopy = (place, text) => {
    const said = h("span", { class: "note", role: "status" });
    const act = async () => {
      try {
        await copy(text);
        said.textContent = "Copied.";
      } catch (error) {
        said.textContent = `This could not be copied: ${error.message}.`;
      }
    };
    place.after(
      h(
        "p",
        { class: "save copy", role: "group", "aria-label": "Copy the summary" },
        h("button", { type: "button", onclick: act }, "Copy summary"),
        said,
      ),
    );
  };

  // What is not there cannot be saved: the buttons of a figure that stands empty are not shown.
  const offer = (id, is) => {
    const buttons = document.querySelector(`#${id} + .save`);
    if (buttons) buttons.hidden = !is;
  };

  // The rows of a table that is filled when it is opened: made anew, whether it is open or not.
  const rowsBehind = (id) => async () => {
    const found = await bedplate.lazyTable.made(id);
    if (!found) throw new Error("nothing is drawn here");
    return rowsOf(h("div", {}, found));
  };

  return { attach, attachCopy, csv, download, offer, oneByField, rowsBehind, rowsOf, slug };
})();
