// The page: its head, its panels in order, the keyboard, and the updates of a training that serves it.

let page = JSON.parse(document.getElementById("data").textContent);
let runs = [];
let panels = [];  // what changes with the step
let mapPanels = [];

const top_ = document.getElementById("top"), main = document.getElementById("panels");
const control = stepControl(document.getElementById("steps"), stepChanged);

function stepChanged() {
  control.update();
  for (const panel of panels) panel.step();
}

// ---- Head

function stateText(run) {
  const of = run.steps > 0 ? ` of ${grouped(run.steps)}` : "";
  const at = `${grouped(run.step)}${of} steps`;
  switch (run.state) {
    case "finished": return `finished, ${at}`;
    case "running": return `running, ${at}`;
    case "empty": return `no step yet${run.steps > 0 ? `, ${grouped(run.steps)} planned` : ""}`;
    case "non_finite": return `stopped: not finite in step ${grouped(run.metrics.non_finite)}${of}`;
    default: return `interrupted after step ${grouped(run.step)}${of}`;
  }
}

/// The result in two sentences: the change of the loss, and that of scale and shift.
function resultSentences(run) {
  const lines = [];
  const validation = validationLosses(run).filter(([, loss]) => isNumber(loss)), batch = run.metrics.loss.filter(isNumber);
  const went = (from, to) => (to < from ? "fell" : to > from ? "rose" : "stayed");
  if (validation.length > 1) {
    const from = validation[0][1], to = validation[validation.length - 1][1];
    lines.push(`Validation loss ${went(from, to)} from ${fixed(from)} to ${fixed(to)}.`);
  } else if (batch.length > 1) {
    lines.push(`Batch loss ${went(batch[0], batch[batch.length - 1])} from ${fixed(batch[0])} to ${fixed(batch[batch.length - 1])}.`);
  }
  if (run.step === 0) return ["No step has been made yet.", ...lines];
  lines.push(run.kinds.map((kind) => movedSentence(run, kind)).join(" "));
  return lines.filter((line) => line !== "");
}

function headline() {
  const root = document.documentElement;
  const resize = (by) => {
    const size = Math.max(70, Math.min(200, (parseFloat(root.style.fontSize) || 100) + by));
    root.style.fontSize = `${size}%`;
    remember("size", `${size}`);
  };
  const themes = ["auto", "light", "dark"];
  const theme = element("button", {type: "button", onclick: () => {
    root.dataset.theme = themes[(themes.indexOf(root.dataset.theme) + 1) % 3];
    theme.textContent = `theme: ${root.dataset.theme}`;
    remember("theme", root.dataset.theme);
  }}, `theme: ${root.dataset.theme}`);
  const tools = element("div", {class: "tools"},
    element("button", {type: "button", "aria-label": "smaller text", onclick: () => resize(-10)}, "A-"),
    element("button", {type: "button", "aria-label": "larger text", onclick: () => resize(10)}, "A+"), theme,
    element("button", {type: "button", onclick: () => window.print()}, "print"));
  const title = runs.map((run) => run.name).join(" and ");
  const line = element("div", {class: "headline"}, element("h1", {}, title),
                       element("p", {class: "muted", id: "state"}, runs.length === 1 ? stateText(runs[0]) : ""), tools);
  const results = runs.map((run) => element("div", {class: "run"},
    runs.length > 1 ? element("p", {class: "runname"}, `${run.label}  `, element("span", {class: "muted"}, stateText(run))) : null,
    element("div", {class: "result"}, ...resultSentences(run).map((text) => element("p", {}, text))),
    run.metrics.non_finite !== null
      ? element("p", {class: "warning"}, `In step ${grouped(run.metrics.non_finite)} the loss or the gradient was not finite; the weights ` +
          "before that step are saved.") : null));
  top_.replaceChildren(line, element("div", {class: "runs"}, ...results));
  if (runs.length > 1) top_.append(element("h2", {}, "What differs"), differencePart(runs));
}

function remember(key, value) {
  try { localStorage.setItem(`handgrad-${key}`, value); } catch { /* a page from disk may have no storage */ }
}
function recall() {
  try {
    const theme = localStorage.getItem("handgrad-theme"), size = localStorage.getItem("handgrad-size");
    if (theme) document.documentElement.dataset.theme = theme;
    if (size) document.documentElement.style.fontSize = `${parseFloat(size)}%`;
  } catch { /* as above */ }
}

// ---- Panels

function choose(changes) {
  Object.assign(state, changes);
  const trajectory = runs.map((run) => run.find(state.owner, state.kind)).find((found) => found !== null);
  if (trajectory === undefined) {
    const first = runs.flatMap((run) => run.trajectories).find((w) => w.owner === state.owner);
    if (first) state.kind = first.kind;
  }
  if (("owner" in changes || "kind" in changes) && !("feature" in changes)) {
    const chosen = runs.map((run) => run.find(state.owner, state.kind)).find((found) => found !== null);
    if (chosen) state.feature = chosen.features[0];
  }
  drawNorms();
}

const section = (title, name) => {
  const body = element("div");
  const root = element("section", {id: name, "aria-label": title}, element("h2", {}, title), body);
  return {root, body};
};

let normsSection, rowSection, fixedPanels = [];

/// The parts of two runs side by side.
function beside(body, parts) {
  body.replaceChildren(...parts.map((part, i) => element("div", {class: "run"},
    runs.length > 1 ? element("p", {class: "runname"}, runs[i].label) : null, part)));
  body.className = "runs";
}

function drawNorms() {
  if (normsSection === undefined) return;
  const focused = focusKey();
  const owners = [...new Set(runs.flatMap((run) => run.owners))], kinds = [...new Set(runs.flatMap((run) => run.kinds))];
  const trajectories = runs.map((run) => run.find(state.owner, state.kind));
  const range = Math.max(0, ...trajectories.filter((trajectory) => trajectory !== null).map((trajectory) => trajectory.extent().largest));
  const choices = element("div", {class: "choices"}, chooseFrom("norm", shortNames(owners), state.owner, (owner) => choose({owner})));
  if (kinds.length > 0) choices.append(
    choice("shows", kinds.map((kind) => [kind, kind]), state.kind, (kind) => choose({kind})),
    choice("order", [["moved", "moved"], ["number", "number"]], state.order, (order) => choose({order})));
  const body = element("div"), rowBody = element("div");
  mapPanels = [];
  const dynamic = [];
  beside(body, runs.map((run, i) => {
    const trajectory = trajectories[i];
    if (trajectory === null) return element("p", {class: "note"}, noTrajectory(run));
    const map = mapPanel(run, trajectory, range, (feature) => choose({feature}), control.jump);
    const why = whyPanel(run, trajectory);
    mapPanels.push(map);
    dynamic.push(map, why);
    return element("div", {}, map.root, why.root);
  }));
  beside(rowBody, runs.map((run) => rowPanel(run, (letter) => choose({letter})).root));
  normsSection.body.replaceChildren(...(owners.length > 0 ? [choices, body] : [body]));
  rowSection.body.replaceChildren(rowBody);
  panels = [...dynamic, ...fixedPanels];
  focusAgain(focused);
}

function noTrajectory(run) {
  if (run.trajectories.length > 0) return `This run has no ${state.kind} of ${state.owner}.`;
  return "Nothing was recorded: inspect.parameters of the config matches no parameter.";
}

/// Redrawing replaces the focused element; its successor at the same place gets the focus.
const focusable = () => [...document.querySelectorAll("#norms button, #norms select, #row button")];
function focusKey() {
  const node = document.activeElement;
  if (!node?.closest("#norms, #row")) return null;
  return {feature: node.closest(".features") !== null, at: focusable().indexOf(node)};
}
function focusAgain(focused) {
  if (focused === null) return;
  const node = focused.feature ? document.querySelector('.features button[aria-pressed="true"]') : focusable()[focused.at];
  node?.focus({preventScroll: true});
}

/// The heading of the norms, from the type in the config.
function normTitle() {
  const entry = runs[0].config.find(([key]) => key === "model.norm.type");
  const type = entry ? JSON.parse(entry[1]) : "layer_norm";
  return type === "layer_norm" ? "LayerNorm" : `Norm: ${type}`;
}

function draw() {
  const focused = focusKey();
  runs = page.runs.map(readRun);
  runs.forEach((run, i) => (run.label = runs.length > 1 ? `${"AB"[i]}  ${run.name}` : run.name));
  document.body.classList.toggle("two", runs.length > 1);
  const wasLast = state.at === state.steps.length - 1, step = currentStep();
  state.steps = sliderSteps(runs);
  const found = state.steps.findIndex((s) => s >= step);
  state.at = wasLast || found < 0 ? state.steps.length - 1 : found;
  headline();
  normsSection = section(normTitle(), "norms");
  rowSection = section("One row through this norm", "row");
  const losses = section("Loss", "loss"), texts = section("Text", "text");
  const lossPanels = runs.map(lossPanel);
  const textPanels = runs.map((run) => textsPanel(run, (s) => control.jump(state.steps.findIndex((t) => t >= s))));
  beside(losses.body, lossPanels.map((panel) => panel.root));
  beside(texts.body, textPanels.map((panel) => panel.root));
  fixedPanels = [...lossPanels, ...textPanels];
  const any = runs.some((run) => run.trajectories.length > 0);
  const open = [...main.querySelectorAll("details")].map((details) => details.open);
  main.replaceChildren(...(any ? [normsSection.root, rowSection.root, losses.root] : [losses.root, normsSection.root, ...(runs.some((run) => run.row) ? [rowSection.root] : [])]),
                       texts.root, closedPanel(runs));
  [...main.querySelectorAll("details")].forEach((details, i) => (details.open = open[i] ?? false));
  const trajectories = runs.flatMap((run) => run.trajectories);
  const kept = trajectories.find((trajectory) => trajectory.owner === state.owner && trajectory.kind === state.kind);
  const best = kept ?? farthestTrajectory(trajectories);
  if (best) choose({owner: best.owner, kind: best.kind, feature: kept ? state.feature : best.features[0]});
  else choose({owner: runs[0].row ? runs[0].row.norms[runs[0].row.norms.length - 1].owner : ""});
  focusAgain(focused);
  stepChanged();
}

/// The parameter that moved farthest, shown first.
function farthestTrajectory(trajectories) {
  const distance = (trajectory) => Math.abs(trajectory.distance(trajectory.last(), 0)) || 0;
  return trajectories.reduce((best, trajectory) => (best === null || distance(trajectory) > distance(best) ? trajectory : best), null);
}

// ---- Keyboard

function moveFeature(by) {
  const rows = mapPanels[0]?.rows ?? [];
  const at = rows.indexOf(state.feature) + by;
  if (at < 0 || at >= rows.length) return;
  choose({feature: rows[at]});
}

function next(list, value, by = 1) {
  return list[(list.indexOf(value) + by + list.length) % list.length];
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target;
  const inList = target.matches("select, textarea"), inSlider = target.matches("input");
  const onButton = target.matches("button, summary, a");
  const owners = [...new Set(runs.flatMap((run) => run.owners))], kinds = [...new Set(runs.flatMap((run) => run.kinds))];
  const actions = {
    " ": () => !onButton && control.play(),
    ArrowLeft: () => !inSlider && control.jump(state.at - 1),
    ArrowRight: () => !inSlider && control.jump(state.at + 1),
    Home: () => !inSlider && control.jump(0),
    End: () => !inSlider && control.jump(state.steps.length - 1),
    ArrowUp: () => !inSlider && moveFeature(-1),
    ArrowDown: () => !inSlider && moveFeature(1),
    s: () => kinds.length > 0 && choose({kind: next(kinds, state.kind)}),
    n: () => owners.length > 0 && choose({owner: next(owners, state.owner)}),
  };
  if (inList || !Object.hasOwn(actions, event.key)) return;
  if (actions[event.key]() !== false) event.preventDefault();
});

// ---- Updates from a training that serves this page

/// Draws the newest data, then pauses four times as long as drawing took, which spares a slow machine. A hidden page waits
/// until it is visible.
function listen() {
  const source = new EventSource("events");
  let newest = null, timer = null, rest = 0;
  const show = () => {
    timer = null;
    if (newest === null || document.hidden) return;
    const start = performance.now();
    page = JSON.parse(newest);
    newest = null;
    draw();
    rest = 4 * (performance.now() - start);
    timer = setTimeout(show, rest);
  };
  document.addEventListener("visibilitychange", () => timer ?? show());
  source.addEventListener("data", (event) => {
    newest = event.data;
    timer ??= setTimeout(show, 0);
  });
  source.addEventListener("step", (event) => {
    const {step, loss} = JSON.parse(event.data);
    const line = document.getElementById("state");
    if (line && runs.length === 1 && step >= runs[0].step)
      line.textContent = `running, ${grouped(step)}${runs[0].steps > 0 ? ` of ${grouped(runs[0].steps)}` : ""} steps, loss ${fixed(loss)}`;
  });
  source.addEventListener("end", () => source.close());
}

recall();
draw();
if (page.live) listen();
