// The map of one parameter: features down, steps across, color the distance from the start. Beside it the values at the
// current step, their bars, and the final values.

const kLevels = 32;  // on each side

/// Half of the levels lead from the page to the color, the other half from the color to its far end.
function levelFill(side, level) {
  const name = side === "a" ? "above" : "below", part = level / kLevels;
  return part <= 0.6 ? `color-mix(in oklab, var(--${name}) ${(part / 0.6 * 100).toFixed(1)}%, var(--page))`
                     : `color-mix(in oklab, var(--${name}-far) ${((part - 0.6) / 0.4 * 100).toFixed(1)}%, var(--${name}))`;
}

/// The features in the chosen order, as positions in `trajectory.features`.
function orderedRows(trajectory) {
  const rows = trajectory.features.map((_, f) => f);
  if (state.order === "number") rows.sort((a, b) => trajectory.features[a] - trajectory.features[b]);
  return rows;
}

/// Paths of the map: one for each level of color, one line through everything below the start, one for what is not finite.
function mapPaths(trajectory, rows, range) {
  const paths = new Map();
  const edges = [...trajectory.columns.map(axisOf), 0];
  edges[trajectory.columns.length] = edges[trajectory.columns.length - 1] + 1;
  const add = (name, text) => paths.set(name, (paths.get(name) ?? "") + text);
  const levelOf = (d) => {
    if (!Number.isFinite(d)) return "bad";
    if (d === 0 || range === 0) return "";
    return (d > 0 ? "a" : "b") + Math.min(kLevels, Math.ceil(Math.abs(d) / range * kLevels));
  };
  rows.forEach((f, row) => {
    for (let c = 0; c < trajectory.columns.length;) {
      const level = levelOf(trajectory.distance(c, f));
      let end = c + 1;
      while (end < trajectory.columns.length && levelOf(trajectory.distance(end, f)) === level) ++end;
      const x = edges[c], width = edges[end] - x;
      if (level !== "") add(level, `M${x} ${row + 0.05}h${width}v0.9h${-width}z`);
      if (level[0] === "b" && level !== "bad") add("through", `M${x} ${row + 0.5}h${width}`);
      c = end;
    }
  });
  const kept = (name) => name === "through" || name === "bad";
  const drawn = [...paths].sort(([a], [b]) => kept(a) - kept(b));  // lines last, over the cells
  return drawn.map(([name, d]) => shape("path", kept(name)
    ? {class: name, d} : {style: `fill: ${levelFill(name[0], Number(name.slice(1)))}`, d}));
}

/// `range`: the distance that has the darkest color; the same for both runs of a page.
function mapPanel(run, trajectory, range, choose, jump) {
  const rows = orderedRows(trajectory), width = state.steps.length, height = rows.length;
  const map = picture(width, height, {
    class: "map", role: "img",
    "aria-label": `${trajectory.name}: the distance of each feature from ${trajectory.startText()} at every step; the numbers are below`});
  const outline = shape("rect", {class: "outline", x: 0, width, height: 1});
  const cursor = cursorLine(height);
  map.append(shape("rect", {class: "frame", width, height}), ...mapPaths(trajectory, rows, range), outline, cursor);

  const buttons = rows.map((f) => element("button", {type: "button", onclick: () => choose(trajectory.features[f])},
                                          `[${trajectory.features[f]}]`));
  const values = rows.map(() => element("div"));
  const {low, high} = trajectory.extent();
  const bars = picture(1000, height, {"aria-hidden": "true"});
  const zero = high - low > 0 ? -low / (high - low) * 1000 : 0;
  const barRects = rows.map((_, row) => shape("rect", {y: row + 0.15, height: 0.7}));
  const barLines = shape("path", {class: "through", stroke: "var(--page)", "stroke-width": 1.5});
  bars.append(...barRects, barLines, shape("line", {class: "mark", x1: zero, x2: zero, y1: 0, y2: height}));
  const flag = element("span");
  const sentence = element("p"), readout = element("p", {class: "readout mono"});
  readout.setAttribute("aria-live", "polite");

  const ranked = new Map(trajectory.features.map((feature, place) => [feature, placeOf(trajectory, place)]));
  const ends = rows.map((f) => element("div", {class: "end"},
    element("span", {class: "muted"}, String(ranked.get(trajectory.features[f]))), fixed(trajectory.value(trajectory.last(), f))));
  const root = element("div", {},
    sentence,
    element("div", {class: "axis head"}, element("div"), element("div", {class: "flag"}, flag),
      element("div", {class: "beside"}, element("div", {class: "numbers"}, "value"),
        element("div", {class: "small", style: `padding-left: calc(${zero / 10}% - 0.5ch)`}, trajectory.startText()),
        element("div", {class: "end"}, "", "at the end"))),
    element("div", {class: "axis"},
      element("div", {class: "rows features", role: "group", "aria-label": "feature"}, ...buttons), map,
      element("div", {class: "beside"}, element("div", {class: "rows numbers"}, ...values), bars,
        element("div", {class: "rows"}, ...ends))),
    element("div", {class: "axis"}, element("div"), element("div", {class: "ends"},
      element("span", {}, "step 0"), element("span", {}, grouped(state.steps[width - 1])))),
    legend(trajectory, range), readout,
    terminal(`${page.program} inspect ${shellWord(run.path)} ${trajectory.name}`), leftOut(run, trajectory));
  map.style.height = bars.style.height = `calc(var(--row) * ${height})`;

  const describe = (f, c) => {
    const parts = [`${trajectory.name}[${trajectory.features[f]}], step ${trajectory.columns[c]}: ${general(trajectory.value(c, f))}`];
    if (trajectory.gradient(c, f) !== null) parts.push(`gradient ${general(trajectory.gradient(c, f))}`);
    if (trajectory.update(c, f) !== null) parts.push(`update ${general(trajectory.update(c, f))}`);
    readout.textContent = parts.join(", ");
  };
  const cellAt = (event) => {
    const box = map.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top) / box.height * height);
    const at = Math.floor((event.clientX - box.left) / box.width * width);
    return {row: Math.max(0, Math.min(height - 1, row)), at: Math.max(0, Math.min(width - 1, at))};
  };
  map.addEventListener("pointermove", (event) => {
    const {row, at} = cellAt(event);
    describe(rows[row], trajectory.column(state.steps[at]));
  });
  map.addEventListener("pointerleave", () => step());
  map.addEventListener("click", (event) => {
    const {row, at} = cellAt(event);
    jump(at);
    choose(trajectory.features[rows[row]]);
  });

  function step() {
    const c = trajectory.column(currentStep());
    cursor.toStep();
    const place = (state.at + 0.5) / width * 100;
    const end = trajectory.columns[trajectory.last()];  // of two runs one may be shorter
    flag.textContent = currentStep() > end ? `its last step, ${grouped(end)}` : `step ${grouped(currentStep())}`;
    flag.style.left = `clamp(2.2rem, ${place}%, calc(100% - 2.2rem))`;
    sentence.textContent = spread(trajectory, c);
    let through = "";
    rows.forEach((f, row) => {
      values[row].textContent = fixed(trajectory.value(c, f));
      const d = trajectory.distance(c, f), length = high - low > 0 && isFinite(d) ? Math.abs(d) / (high - low) * 1000 : 0;
      const x = d < 0 ? zero - length : zero;
      barRects[row].setAttribute("x", x);
      barRects[row].setAttribute("width", length);
      barRects[row].setAttribute("class", d < 0 ? "below" : "above");
      if (d < 0) through += `M${x} ${row + 0.5}h${length}`;
    });
    barLines.setAttribute("d", through);
    const f = trajectory.features.indexOf(state.feature);
    describe(f < 0 ? rows[0] : f, c);
  }
  function mark() {
    rows.forEach((f, row) => {
      const chosen = trajectory.features[f] === state.feature;
      buttons[row].setAttribute("aria-pressed", String(chosen));
      buttons[row].tabIndex = chosen ? 0 : -1;
      values[row].className = chosen ? "chosen" : "";
      if (chosen) outline.setAttribute("y", row);
    });
    outline.style.display = rows.some((f) => trajectory.features[f] === state.feature) ? "" : "none";
  }
  mark();
  step();
  return {root, step, mark, rows: rows.map((f) => trajectory.features[f]), buttons};
}

/// The rank of a feature among all; those without a row are between the first and the last ones.
function placeOf(trajectory, position) {
  const hidden = trajectory.size - trajectory.features.length;
  const first = trajectory.features.length - Math.floor(trajectory.features.length / 3);
  return position < first || hidden === 0 ? position + 1 : position + 1 + hidden;
}

/// "All 32 started at 1. At step 150 they are between 1.230 and 1.604."
function spread(trajectory, c) {
  const began = `All ${grouped(trajectory.size)} ` +
                (trajectory.common === null ? "have different starts." : `started at ${trajectory.startText()}.`);
  if (c === 0) return `${began} This is step 0, before training.`;
  return `${began} At step ${grouped(trajectory.columns[c])} they are between ${fixed(trajectory.least(c))} and ${fixed(trajectory.most(c))}.`;
}

function legend(trajectory, range) {
  const scale = picture(2 * kLevels + 1, 1, {"aria-hidden": "true"});
  for (let level = 1; level <= kLevels; ++level) {
    scale.append(shape("rect", {style: `fill: ${levelFill("a", level)}`, x: kLevels + level, width: 1.02, height: 1}),
                 shape("rect", {style: `fill: ${levelFill("b", level)}`, x: kLevels - level, width: 1.02, height: 1}));
  }
  scale.append(shape("path", {d: `M0 0.5h${kLevels}`, stroke: "var(--page)", "stroke-width": 1.5}),
               shape("rect", {class: "frame", width: 2 * kLevels + 1, height: 1}));
  return element("div", {class: "legend"},
    element("span", {}, `${fixed(range)} below ${trajectory.startText()}`), scale, element("span", {}, `${fixed(range)} above`),
    element("span", {}, "blank: at the start; with a line through it: below"));
}

function leftOut(run, trajectory) {
  const notes = [];
  const hidden = trajectory.size - trajectory.features.length, last = Math.floor(trajectory.features.length / 3);
  if (hidden > 0)
    notes.push(`Of ${grouped(trajectory.size)} features the ${trajectory.features.length - last} that moved farthest and the ${last} ` +
               "that moved least have a row here; inspect --all shows every one.");
  if (run.norms.records > trajectory.columns.length)
    notes.push(`Of ${grouped(run.norms.records)} recorded steps ${trajectory.columns.length} have a column here.`);
  if (run.norms.every > 1) notes.push(`Every ${run.norms.every}th step was recorded.`);
  if (run.norms.matrices > 0)
    notes.push(`${plural(run.norms.matrices, "matrix was", "matrices were")} recorded too; inspect shows them.`);
  return notes.length === 0 ? null : element("p", {class: "note"}, notes.join(" "));
}
