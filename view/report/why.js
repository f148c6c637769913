// Why a feature moved: the gradient of every step, the applied update, and the sum of updates, on one step axis.

/// Bars above and below the middle line; returns the picture and the value of the highest bar.
function barPicture(trajectory, numbers) {
  const width = state.steps.length;
  let top = 0;
  for (const value of numbers) if (isNumber(value)) top = Math.max(top, Math.abs(value));
  const bars = picture(width, 2, {"aria-hidden": "true"});
  const paths = {above: "", below: ""};
  numbers.forEach((value, c) => {
    if (!isNumber(value) || value === 0 || top === 0) return;
    const x = axisOf(trajectory.columns[c]) + 0.1, height = value / top * 0.96;
    paths[value > 0 ? "above" : "below"] += `M${x} 1v${-height}h0.8v${height}z`;
  });
  const cursor = cursorLine(2);
  bars.append(shape("path", {class: "above", d: paths.above}), shape("path", {class: "below", d: paths.below}),
              shape("line", {class: "baseline", x1: 0, x2: width, y1: 1, y2: 1}), cursor);
  return {bars, top, cursor};
}

function valuePicture(trajectory, f) {
  const width = state.steps.length, {low, high} = trajectory.extent();
  const height = high - low || 1;
  const line = picture(width, height, {"aria-hidden": "true"});
  let d = "";
  trajectory.columns.forEach((step, c) => {
    const y = high - trajectory.distance(c, f);
    if (isFinite(y)) d += `${d === "" ? "M" : "L"}${axisOf(step) + 0.5} ${y}`;
  });
  const cursor = cursorLine(height);
  line.append(shape("line", {class: "baseline", x1: 0, x2: width, y1: high, y2: high}), shape("path", {class: "stroke", d}), cursor);
  return {line, cursor};
}

function whyPanel(run, trajectory) {
  const f = trajectory.features.indexOf(state.feature);
  if (f < 0)
    return {root: element("div", {class: "why"}, element("h3", {}, `Why [${state.feature}]?`),
                          element("p", {class: "note"}, "This feature has no row in this run.")), step() {}};
  const columns = trajectory.columns.map((_, c) => c);
  const gradient = barPicture(trajectory, columns.map((c) => trajectory.gradient(c, f)));
  const update = barPicture(trajectory, columns.map((c) => trajectory.update(c, f)));
  const value = valuePicture(trajectory, f);
  const said = [0, 1, 2].map(() => element("div", {class: "said"}));
  const name = run.optimizer || "the optimizer";
  const axis = (label, drawn, text) => element("div", {class: "axis"}, element("div", {class: "label"}, label), drawn, text);
  const root = element("div", {class: "why"},
    element("h3", {}, `Why [${state.feature}]?`),
    axis("gradient", gradient.bars, said[0]), axis("update", update.bars, said[1]), axis("value", value.line, said[2]),
    terminal(`${page.program} inspect ${shellWord(run.path)} ${trajectory.name} --all`,
             element("button", {type: "button", onclick: () => saveCsv(run, trajectory, f)}, "CSV of this feature")));

  function step() {
    const c = trajectory.column(currentStep());
    for (const part of [gradient, update, value]) part.cursor.toStep();
    const g = trajectory.gradient(c, f), u = trajectory.update(c, f);
    said[0].replaceChildren(
      element("b", {}, g === null ? "none at this step" : general(g)),
      element("br"), `Negative in ${Math.round(trajectory.below[f] * 100)}% of the steps: there the loss falls when the value rises. ` +
      `Agreement ${fixed(trajectory.agreement[f], 2)}.`);
    said[1].replaceChildren(element("b", {}, u === null ? "none at this step" : general(u)), element("br"),
      `The update that ${name} applied (largest ${general(update.top, 3)}).`);
    const sum = trajectory.distance(c, f);
    said[2].replaceChildren(element("b", {}, general(trajectory.value(c, f))), element("br"),
      `${general(trajectory.start(f))} ${sum < 0 ? "-" : "+"} ${general(Math.abs(sum), 4)}, the sum of its updates. ` +
      `Half of the distance by step ${grouped(trajectory.half[f])}.`);
  }
  step();
  return {root, step};
}

/// Saves every column of one feature as `inspect --format csv` prints it.
function saveCsv(run, trajectory, f) {
  const lines = ["step,name,index,value,gradient,update"];
  const text = (value) => (value === null ? "" : run.norms.bytes === 4 ? shortest(value) : String(value));
  for (let c = 0; c < trajectory.columns.length; ++c)
    lines.push([trajectory.columns[c], trajectory.name, trajectory.features[f], text(trajectory.value(c, f)), text(trajectory.gradient(c, f)),
                trajectory.update(c, f) ?? ""].join(","));
  const link = element("a", {href: URL.createObjectURL(new Blob([lines.join("\n") + "\n"], {type: "text/csv"})),
                             download: `${run.name}-${trajectory.name}-${trajectory.features[f]}.csv`});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/// The fewest digits that read back to the same float32.
function shortest(value) {
  for (let digits = 1; digits < 10; ++digits)
    if (Math.fround(Number(value.toPrecision(digits))) === value) return String(Number(value.toPrecision(digits)));
  return String(value);
}
