// Why a feature went its way: the gradient of every step, the update that came of it, and their sum, on one step axis.

const kOptimizers = {sgd: "SGD", adam: "Adam", adamw: "AdamW"};

/// Bars from the middle line, above and below; gives the picture and the height it is drawn to.
function barPicture(way, numbers) {
  const width = state.steps.length;
  let top = 0;
  for (const value of numbers) if (isNumber(value)) top = Math.max(top, Math.abs(value));
  const bars = picture(width, 2, {"aria-hidden": "true"});
  const paths = {above: "", below: ""};
  numbers.forEach((value, c) => {
    if (!isNumber(value) || value === 0 || top === 0) return;
    const x = axisOf(way.columns[c]) + 0.1, height = value / top * 0.96;
    paths[value > 0 ? "above" : "below"] += `M${x} 1v${-height}h0.8v${height}z`;
  });
  const cursor = cursorLine(2);
  bars.append(shape("path", {class: "above", d: paths.above}), shape("path", {class: "below", d: paths.below}),
              shape("line", {class: "baseline", x1: 0, x2: width, y1: 1, y2: 1}), cursor);
  return {bars, top, cursor};
}

function valuePicture(way, f) {
  const width = state.steps.length, {low, high} = way.extent();
  const height = high - low || 1;
  const line = picture(width, height, {"aria-hidden": "true"});
  let d = "";
  way.columns.forEach((step, c) => {
    const y = high - way.distance(c, f);
    if (isFinite(y)) d += `${d === "" ? "M" : "L"}${axisOf(step) + 0.5} ${y}`;
  });
  const cursor = cursorLine(height);
  line.append(shape("line", {class: "baseline", x1: 0, x2: width, y1: high, y2: high}), shape("path", {class: "stroke", d}), cursor);
  return {line, cursor};
}

function whyPanel(run, way) {
  const f = way.features.indexOf(state.feature);
  if (f < 0)
    return {root: element("div", {class: "why"}, element("h3", {}, `Why [${state.feature}]?`),
                          element("p", {class: "note"}, "This feature has no row in this run.")), step() {}};
  const columns = way.columns.map((_, c) => c);
  const gradient = barPicture(way, columns.map((c) => way.gradient(c, f)));
  const update = barPicture(way, columns.map((c) => way.update(c, f)));
  const value = valuePicture(way, f);
  const said = [0, 1, 2].map(() => element("div", {class: "said"}));
  const name = kOptimizers[run.optimizer] ?? (run.optimizer || "the optimizer");
  const axis = (label, drawn, text) => element("div", {class: "axis"}, element("div", {class: "label"}, label), drawn, text);
  const root = element("div", {class: "why"},
    element("h3", {}, `Why [${state.feature}]?`),
    axis("gradient", gradient.bars, said[0]), axis("update", update.bars, said[1]), axis("value", value.line, said[2]),
    terminal(`${page.program} inspect ${shellWord(run.path)} ${way.name} --all`,
             element("button", {type: "button", onclick: () => saveCsv(run, way, f)}, "CSV of this feature")));

  function step() {
    const c = way.column(currentStep());
    for (const part of [gradient, update, value]) part.cursor.toStep();
    const g = way.gradient(c, f), u = way.update(c, f);
    said[0].replaceChildren(
      element("b", {}, g === null ? "none at this step" : general(g)),
      element("br"), `Below 0 in ${Math.round(way.below[f] * 100)}% of the steps; below 0 means: raise it. ` +
      `Agreement ${fixed(way.agreement[f], 2)}.`);
    said[1].replaceChildren(element("b", {}, u === null ? "none at this step" : general(u)), element("br"),
      `What ${name} made of it, ${general(update.top, 3)} at most.`);
    const sum = way.distance(c, f);
    said[2].replaceChildren(element("b", {}, general(way.value(c, f))), element("br"),
      `${general(way.start(f))} ${sum < 0 ? "-" : "+"} ${general(Math.abs(sum), 4)}, the sum of its updates. ` +
      `Half way by step ${grouped(way.half[f])}.`);
  }
  step();
  return {root, step};
}

/// Every column of one feature, in the form of inspect --format csv.
function saveCsv(run, way, f) {
  const lines = ["step,name,index,value,gradient,update"];
  const text = (value) => (value === null ? "" : run.norms.bytes === 4 ? shortest(value) : String(value));
  for (let c = 0; c < way.columns.length; ++c)
    lines.push([way.columns[c], way.name, way.features[f], text(way.value(c, f)), text(way.gradient(c, f)),
                way.update(c, f) ?? ""].join(","));
  const link = element("a", {href: URL.createObjectURL(new Blob([lines.join("\n") + "\n"], {type: "text/csv"})),
                             download: `${run.name}-${way.name}-${way.features[f]}.csv`});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/// The fewest digits that read back to the same float32.
function shortest(value) {
  for (let digits = 1; digits < 10; ++digits)
    if (Math.fround(Number(value.toPrecision(digits))) === value) return String(Number(value.toPrecision(digits)));
  return String(value);
}
