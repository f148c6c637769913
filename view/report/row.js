// One row of the model through the chosen norm: each feature is a mark, before the norm, normalized, and in the output.

function readRow(run) {
  const data = run.row;
  if (!data) return null;
  const norms = new Map(data.norms.map((norm) => {
    const numbers = {};
    for (const name of ["before", "normalized", "output"]) {
      let decoded = null;
      numbers[name] = (token) => {
        decoded ??= decode(norm[name], data.bytes);
        const at = (token - norm.first) * norm.size;
        return decoded.subarray(at, at + norm.size);
      };
    }
    return [norm.owner, {...norm, statistics: decode(norm.statistics, 8), ...numbers}];
  }));
  return {...data, norms};
}

/// A token with visible line ends and tabs.
const visible = (token) => token.replaceAll("\n", "\u23ce").replaceAll("\t", "\u21e5");

function rowPanel(run, choose) {
  const row = (run.rowRead ??= readRow(run));
  const norm = row?.norms.get(state.owner);
  if (!norm) return {root: element("p", {class: "note"}, whyNoRow(run, row)), step() {}};
  const last = row.tokens.length - 1;
  const letter = Math.max(norm.first, Math.min(last, state.letter ?? last));
  const letters = row.tokens.map((token, i) => element("button", {
    type: "button", disabled: i < norm.first, "aria-pressed": String(i === letter), "aria-label": `token ${visible(token)}`,
    onclick: () => choose(i)}, row.text ? visible(token) : `${token} `));
  const prefix = row.tokens.slice(0, letter + 1).join("");
  const at = row.text ? ` --at ${shellWord(prefix)}` : "";
  const root = element("div", {},
    element("p", {class: "small muted"}, `${row.held_back ? "A line of the validation text" : "A line of the training data"}, at step ${grouped(row.step)}: ` +
      `${row.text ? "click a letter" : "click a token"} to see the row of its features.`),
    element("p", {class: "letters", role: "group", "aria-label": "token"}, ...letters),
    strips(norm, letter), epsSentence(norm), chosenFeature(run, norm, letter),
    terminal(`${page.program} explain ${shellWord(run.path)} --layer ${shellWord(norm.owner)}${at}`));
  return {root, step() {}};
}

function whyNoRow(run, row) {
  if (row) return `${state.owner || "This module"} is not a LayerNorm; only the parts of a LayerNorm are shown here.`;
  if (run.why_no_run) return `No row: ${run.why_no_run}`;
  return run.state === "running" ? "The row is added when the training ends." : "This model has no LayerNorm.";
}

function strips(norm, letter) {
  const parts = ["before", "normalized", "output"].map((name) => norm[name](letter));
  let low = 0, high = 0;
  for (const part of parts)
    for (const x of part) if (isFinite(x)) [low, high] = [Math.min(low, x), Math.max(high, x)];
  const margin = (high - low) * 0.02 || 1;
  const x = (value) => isFinite(value) ? (value - low + margin) / (high - low + 2 * margin) * 1000 : 0;
  const drawn = picture(1000, 3, {"aria-hidden": "true"});
  drawn.append(shape("line", {class: "baseline", x1: x(0), x2: x(0), y1: 0, y2: 3}));
  const one = (name, from, to, top, bottom) => shape("line", {class: name, x1: x(from), x2: x(to), y1: top, y2: bottom});
  const chosen = [], wide = norm.size > 64;
  if (wide) drawn.append(...manyMarks(parts, x));
  for (let i = 0; i < norm.size; ++i) {
    const isChosen = i === state.feature, to = isChosen ? chosen : [];
    if (wide && !isChosen) continue;
    for (let p = 0; p < 3; ++p) {
      if (p > 0) to.push(one(`link${isChosen ? " chosen" : ""}`, parts[p - 1][i], parts[p][i], p - 0.22, p + 0.22));
      to.push(one(`mark${isChosen ? " chosen" : ""}`, parts[p][i], parts[p][i], p + 0.22, p + 0.78));
    }
    if (!isChosen) drawn.append(...to);
  }
  drawn.append(...chosen);
  const cells = ["before", "normalized", "output"].flatMap((name, p) => {
    const at = letter * 6 + 2 * p;
    const note = ["", "", "after scale and shift"][p];
    return [element("div", {style: `grid-row: ${p + 2}; line-height: 1.2`}, name, note === "" ? null : element("div", {class: "small muted"}, note)),
            element("div", {class: "right", style: `grid-column: 3; grid-row: ${p + 2}`}, moment(norm.statistics[at])),
            element("div", {class: "right", style: `grid-column: 4; grid-row: ${p + 2}`}, moment(norm.statistics[at + 1]))];
  });
  const root = element("div", {class: "strips"},
    element("div", {class: "small muted", style: "grid-row: 1"}, plural(norm.size, "feature", "features")),
    element("div", {class: "right small muted", style: "grid-column: 3; grid-row: 1"}, "mean"),
    element("div", {class: "right small muted", style: "grid-column: 4; grid-row: 1"}, "variance"),
    ...cells, drawn,
    element("div", {class: "ends"}, element("span", {}, fixed(low)), element("span", {}, fixed(high))));
  return root;
}

/// Marks of a wide row without an element for each: the marks alternate between a few half-transparent paths, so dense
/// regions are darker.
function manyMarks(parts, x) {
  const turns = 8, paths = [];
  parts.forEach((part, p) => {
    for (let turn = 0; turn < turns; ++turn) {
      let d = "";
      for (let i = turn; i < part.length; i += turns) d += `M${x(part[i]).toFixed(1)} ${p + 0.22}v0.56`;
      paths.push(shape("path", {class: "mark", d, opacity: 0.5}));
    }
  });
  return paths;
}

/// The mean of a normalized row is a rounding error, its variance slightly below 1: more digits where they matter.
function moment(value) {
  if (!isNumber(value)) return notFinite(value);
  if (Math.abs(value) < 5e-7) return "0";
  return Math.abs(value - 1) < 0.0005 ? value.toFixed(6) : value.toFixed(3);
}

function epsSentence(norm) {
  const share = `${Math.round(norm.below_eps / norm.rows * 1000) / 10}%`;
  return element("p", {class: "note"},
    `eps, added to the variance under the root, is ${general(norm.eps)}. Of ${grouped(norm.rows)} rows of a batch ` +
    `${norm.below_eps === 0 ? "none has" : `${grouped(norm.below_eps)} have`} a variance below it (${share}).`);
}

function chosenFeature(run, norm, letter) {
  if (state.feature >= norm.size) return null;
  const number = (name) => fixed(norm[name](letter)[state.feature]);
  return element("p", {class: "small"}, element("b", {}, `[${state.feature}]`),
    ` before ${number("before")}, normalized ${number("normalized")}, output ${number("output")}.`);
}
