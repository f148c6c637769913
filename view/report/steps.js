// The current step of the whole page, and the choices that its panels share.

const state = {
  steps: [0],    // every step that the slider can show, ascending
  at: 0,         // position in it
  owner: "", kind: "", feature: 0, order: "moved", letter: null,
  playing: null, // a timer
  perSecond: 20,
};

const currentStep = () => state.steps[state.at];

/// The position of `step` on a step axis of width `state.steps.length`: every step of the slider has a column of width 1.
function axisOf(step) {
  const steps = state.steps;
  let low = 0, high = steps.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (steps[middle] <= step) low = middle; else high = middle - 1;
  }
  if (low + 1 >= steps.length || step <= steps[low]) return low;
  return low + (step - steps[low]) / (steps[low + 1] - steps[low]);
}

/// Steps that any run has a column for; the steps of its metrics for a run without a recording.
function sliderSteps(runs) {
  const all = new Set([0]);
  for (const run of runs) {
    const steps = run.norms ? run.norms.columns : thinned(run.metrics.steps, 300);
    for (const step of steps) all.add(step);
  }
  return [...all].sort((a, b) => a - b);
}

function thinned(list, most) {
  const stride = Math.ceil(list.length / most);
  return list.filter((_, i) => i % stride === 0 || i === list.length - 1);
}

const kIcons = {
  first: "M2 2h2v12H2zM14 2v12L5 8z", back: "M12 2v12L3 8z", play: "M3 2l11 6-11 6z",
  pause: "M3 2h3.5v12H3zM9.5 2H13v12H9.5z", forward: "M4 2v12l9-6z", last: "M12 2h2v12h-2zM2 2v12l9-6z",
};

function iconButton(icon, label, press) {
  const button = element("button", {type: "button", "aria-label": label, title: label, onclick: press});
  button.append(shape("svg", {viewBox: "0 0 16 16", "aria-hidden": "true"}, shape("path", {d: kIcons[icon]})));
  return button;
}

/// Fills the bar with the slider and returns its controls. `moved`: called after the step has changed.
function stepControl(bar, moved) {
  const go = (at) => {
    const next = Math.max(0, Math.min(state.steps.length - 1, at));
    if (next === state.at) return;
    state.at = next;
    moved();
  };
  const stop = () => {
    clearInterval(state.playing);
    state.playing = null;
    update();
  };
  const play = () => {
    if (state.playing !== null) return stop();
    if (state.at === state.steps.length - 1) go(0);
    state.playing = setInterval(() => {
      if (state.at === state.steps.length - 1) stop(); else go(state.at + 1);
    }, 1000 / state.perSecond);
    update();
  };
  const jump = (at) => { if (state.playing !== null) stop(); go(at); };

  const playButton = iconButton("play", "play", play);
  const slider = element("input", {type: "range", min: 0, "aria-label": "step", oninput: () => jump(Number(slider.value))});
  const output = element("output", {}, "step ", element("b"), " ", element("span", {class: "muted"}));
  const speed = element("select", {"aria-label": "speed of play", onchange: () => {
    state.perSecond = Number(speed.value);
    if (state.playing !== null) { stop(); play(); }
  }}, ...[5, 20, 60].map((n) => element("option", {value: n}, `${n} a second`)));
  speed.value = String(state.perSecond);
  bar.replaceChildren(
    iconButton("first", "first step", () => jump(0)), iconButton("back", "one step back", () => jump(state.at - 1)),
    playButton, iconButton("forward", "one step on", () => jump(state.at + 1)),
    iconButton("last", "last step", () => jump(state.steps.length - 1)), slider, output, speed);

  function update() {
    slider.max = state.steps.length - 1;
    slider.value = state.at;
    slider.setAttribute("aria-valuetext", `step ${currentStep()}`);
    output.children[0].textContent = grouped(currentStep());
    output.children[1].textContent = `of ${grouped(state.steps[state.steps.length - 1])}`;
    const playing = state.playing !== null;
    const label = playing ? "pause" : "play";
    if (playButton.title !== label) {
      playButton.title = label;
      playButton.setAttribute("aria-label", label);
      playButton.querySelector("path").setAttribute("d", kIcons[label]);
    }
  }
  return {update, jump, play, stop};
}

/// The line that marks the current step on a step axis.
function cursorLine(height) {
  const line = shape("line", {class: "mark", y1: 0, y2: height});
  line.toStep = () => {
    line.setAttribute("x1", state.at + 0.5);
    line.setAttribute("x2", state.at + 0.5);
  };
  line.toStep();
  return line;
}
