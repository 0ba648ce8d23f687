"use strict";
// The stretch of time that is looked at: zooming into one picture of seconds zooms all of them, and the address has it.

bedplate.span = (() => {
  const { choice } = bedplate;
  const KEY = "courses.span";
  const pictures = new Set();
  choice.own(KEY);

  // Text in the address: "12..240", in seconds.
  const read = (text) => {
    const found = /^(-?[\d.]+)\.\.(-?[\d.]+)$/.exec(text ?? "");
    const [from, to] = found ? [Number(found[1]), Number(found[2])] : [NaN, NaN];
    return from < to ? [from, to] : null;
  };
  const written = (from, to) => `${Number(from).toFixed(1)}..${Number(to).toFixed(1)}`;
  const chosen = () => read(choice.state[KEY]);

  // For the layout of a time axis.
  const range = () => {
    const found = chosen();
    return found ? { range: found, autorange: false } : { autorange: true };
  };

  const follow = (node) => {
    const found = chosen();
    const now = node.layout?.xaxis;
    if (!now || !node.data?.length) return;
    if (found && (now.autorange || written(...now.range) !== written(...found)))
      Plotly.relayout(node, { "xaxis.range": found });
    if (!found && !now.autorange) Plotly.relayout(node, { "xaxis.autorange": true });
  };

  // A picture that was drawn: it follows the others from now on, and they follow it.
  const link = (id) => {
    const node = document.getElementById(id);
    if (!node?.on || pictures.has(node)) return;
    pictures.add(node);
    node.on("plotly_relayout", (moved) => {
      const [from, to] = [moved["xaxis.range[0]"], moved["xaxis.range[1]"]];
      if (from !== undefined && to !== undefined) choice.change({ [KEY]: written(from, to) });
      else if (moved["xaxis.autorange"]) choice.change({ [KEY]: null });
    });
    node.on("plotly_doubleclick", () => choice.change({ [KEY]: null }));
  };

  // Plotly forgets its listeners with the picture.
  const unlink = (id) => pictures.delete(document.getElementById(id));

  bedplate.view({
    name: "span",
    keys: [KEY],
    place: "courses-plot",
    draw: () => {
      for (const node of pictures) follow(node);
    },
  });
  return { link, range, unlink };
})();
