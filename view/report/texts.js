// Samples that the model generated at some steps, with the same seed each time, so that only the weights differ.

function textsPanel(run, jumpToStep) {
  const texts = run.texts.filter((text) => typeof text.text === "string");
  if (texts.length === 0)
    return {root: element("p", {class: "note"}, "No samples: the tokens of this run have no text, or the run recorded none."),
            step() {}};
  const lines = texts.map((text) => element("li", {},
    element("button", {type: "button", title: `go to step ${text.step}`, onclick: () => jumpToStep(text.step)}, grouped(text.step)),
    element("code", {}, text.text)));
  const root = element("div", {}, element("ol", {class: "texts"}, ...lines),
    terminal(`${page.program} generate ${shellWord(run.path)} --prompt "The "`));
  const step = () => {
    const now = lastNotAfter(texts.map((text) => text.step), currentStep());
    lines.forEach((line, i) => {
      line.className = i === now ? "now" : "";
      if (i === now) line.setAttribute("aria-current", "step"); else line.removeAttribute("aria-current");
    });
  };
  step();
  return {root, step};
}
