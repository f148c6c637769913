// Loss, learning rate and gradient norm on the step axis of the page; clipping, interruptions, NaN.

/// A few round numbers from 0 to `top`.
function niceTicks(top) {
  if (!(top > 0)) return [0];
  const raw = top / 4, power = 10 ** Math.floor(Math.log10(raw));
  const unit = [1, 2, 2.5, 5, 10].map((m) => m * power).find((u) => u >= raw);
  const ticks = [];
  for (let t = 0; t <= top * 1.0001; t += unit) ticks.push(Number(t.toPrecision(6)));
  return ticks;
}

function linePath(steps, numbers, height, top) {
  let d = "", open = false;
  steps.forEach((step, i) => {
    if (!isNumber(numbers[i])) { open = false; return; }
    d += `${open ? "L" : "M"}${axisOf(step) + 0.5} ${height - Math.min(numbers[i] / top, 1.02) * height}`;
    open = true;
  });
  return d;
}

/// Lines of length 0: their round ends are dots, however the picture is stretched.
function dotPath(evaluations, top) {
  if (evaluations.length > 60) return "";
  return evaluations.filter(([, loss]) => isNumber(loss))
    .map(([step, loss]) => `M${axisOf(step) + 0.5} ${100 - Math.min(loss / top, 1.02) * 100}h0`).join("");
}

/// The validation loss before training, from the first sample, and at every evaluation.
function validationLosses(run) {
  const first = run.texts.find((text) => text.step === 0 && isNumber(text.val_loss));
  return first ? [[0, first.val_loss], ...run.metrics.validation] : run.metrics.validation;
}

const largest = (numbers) => numbers.reduce((most, value) => (isNumber(value) && value > most ? value : most), 0);

/// A dotted line where a run was interrupted, a solid one where its loss was not finite.
function incidents(run, height) {
  const lines = run.metrics.resumed.map((step) => [step, "dotted"]);
  if (run.metrics.non_finite !== null) lines.push([run.metrics.non_finite, "stroke"]);
  return lines.map(([step, name]) =>
    shape("line", {class: name, x1: axisOf(step) + 0.5, x2: axisOf(step) + 0.5, y1: 0, y2: height}));
}

function lossPanel(run) {
  const m = run.metrics, validation = validationLosses(run), width = state.steps.length;
  if (m.steps.length === 0 && validation.length === 0)
    return {root: element("p", {class: "note"}, "No step has been made yet."), step() {}};
  const top = Math.max(largest(m.loss), largest(validation.map(([, loss]) => loss))) || 1;
  const chart = picture(width, 100, {role: "img", "aria-label": "loss at every step; the numbers are beside it"});
  const cursors = [cursorLine(100), cursorLine(100), cursorLine(100)];
  const ticks = niceTicks(top);
  for (const tick of ticks)
    chart.append(shape("line", {class: "baseline", x1: 0, x2: width, y1: 100 - tick / top * 100, y2: 100 - tick / top * 100}));
  chart.append(shape("path", {class: "thin", d: linePath(m.steps, m.loss, 100, top)}),
               shape("path", {class: "stroke", d: linePath(validation.map((v) => v[0]), validation.map((v) => v[1]), 100, top)}),
               shape("path", {class: "dots", d: dotPath(validation, top)}), ...incidents(run, 100), cursors[0]);
  const tickTexts = ticks.map((tick) => element("span", {style: `top: ${100 - tick / top * 100}%`}, general(tick, 3)));
  const small = (numbers, cursor, limit) => {
    const most = Math.max(largest(numbers), limit ?? 0) || 1;
    const drawn = picture(width, 100, {"aria-hidden": "true"});
    if (limit) drawn.append(shape("line", {class: "dotted", x1: 0, x2: width, y1: 100 - limit / most * 100, y2: 100 - limit / most * 100}));
    drawn.append(shape("line", {class: "baseline", x1: 0, x2: width, y1: 100, y2: 100}),
                 shape("path", {class: "stroke", d: linePath(m.steps, numbers, 100, most)}), cursor);
    return drawn;
  };
  const said = [0, 1, 2].map(() => element("div", {class: "said"}));
  const root = element("div", {class: "curves"},
    element("div", {class: "axis tall"}, element("div", {class: "ticks"}, ...tickTexts), chart, said[0]),
    element("div", {class: "axis"}, element("div", {class: "label"}, "learning rate"), small(m.lr, cursors[1]), said[1]),
    element("div", {class: "axis"}, element("div", {class: "label"}, "gradient"),
            small(m.grad_norm, cursors[2], run.grad_clip > 0 && run.grad_clip < 3 * largest(m.grad_norm) ? run.grad_clip : null), said[2]),
    ...incidentNotes(run),
    terminal(`tail -n 5 ${shellWord(`${run.path}/metrics.jsonl`)}`));

  function step() {
    for (const cursor of cursors) cursor.toStep();
    const i = lastNotAfter(m.steps, currentStep()), v = lastNotAfter(validation.map((e) => e[0]), currentStep());
    const row = (name, text) => [element("dt", {}, name), element("dd", {}, text)];
    said[0].replaceChildren(element("dl", {},
      ...row("batch, thin", i < 0 ? "-" : fixed(m.loss[i])),
      ...(validation.length > 0 ? row("validation", v < 0 ? "-" : `${fixed(validation[v][1])} (step ${grouped(validation[v][0])})`) : [])));
    said[1].replaceChildren(element("b", {}, i < 0 ? "-" : general(m.lr[i], 4)));
    said[2].replaceChildren(element("b", {}, i < 0 ? "-" : general(m.grad_norm[i], 4)), clipping(run));
  }
  step();
  return {root, step};
}

function clipping(run) {
  if (!(run.grad_clip > 0)) return " before the update; no clipping";
  return ` before clipping to ${general(run.grad_clip)}; clipped in ${grouped(run.metrics.clipped)} of ` +
         `${plural(run.metrics.last, "step", "steps")}`;
}

function lastNotAfter(steps, step) {
  let found = -1;
  for (let i = 0; i < steps.length && steps[i] <= step; ++i) found = i;
  return found;
}

function incidentNotes(run) {
  const notes = [], m = run.metrics;
  if (m.non_finite !== null) notes.push(`In step ${grouped(m.non_finite)} the loss or the gradient was not finite (solid line).`);
  if (m.resumed.length > 0)
    notes.push(`Interrupted after ${m.resumed.length === 1 ? "step" : "steps"} ${m.resumed.map(grouped).join(", ")} and resumed ` +
               "(dotted); repeated steps are shown once.");
  if (m.thinned > 1) notes.push(`Every ${m.thinned}th step is drawn.`);
  return notes.length === 0 ? [] : [element("p", {class: "note"}, notes.join(" "))];
}
