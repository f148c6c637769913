// What is closed until it is asked for: parameters, config, how to read the page. And what differs between two runs.

function table(heads, rows) {
  return element("div", {class: "scroll"}, element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {scope: "col"}, head)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) =>
      element("td", typeof cell === "number" ? {class: "number"} : {}, typeof cell === "number" ? grouped(cell) : element("code", {}, cell))))))));
}

function parametersPart(run) {
  const all = run.parameters;
  if (!all) return element("p", {class: "note"}, run.why_no_run ? `Not known: ${run.why_no_run}` : "They come when the training ends.");
  const rows = all.map(([name, size, count, decay, frozen]) => [name, size, count, decay ? "yes" : "no", frozen ? "frozen" : ""]);
  const frozen = all.some((p) => p[4]);
  return element("div", {}, table(["name", "shape", "count", "decay", frozen ? "" : ""].slice(0, frozen ? 5 : 4), rows.map((row) => row.slice(0, frozen ? 5 : 4))),
                 terminal(`${page.program} train ${shellWord(`${run.path}/config.json`)} --dry-run`));
}

function configPart(run) {
  return element("div", {}, table(["key", "value", "from"], run.config.map(([key, value, from]) => [key, value, from || "-"])),
                 terminal(`${page.program} config show ${shellWord(`${run.path}/config.json`)}`));
}

/// Keys whose values differ, and those that only one of the runs has.
function differingKeys(a, b) {
  const values = (run) => new Map(run.config.map(([key, value]) => [key, value]));
  const first = values(a), second = values(b);
  return [...new Set([...first.keys(), ...second.keys()])]
    .filter((key) => first.get(key) !== second.get(key))
    .map((key) => [key, first.get(key) ?? "-", second.get(key) ?? "-"]);
}

function differencePart(runs) {
  const keys = differingKeys(runs[0], runs[1]);
  if (keys.length === 0) return element("p", {class: "note"}, "No key of their configs differs.");
  return table(["key", runs[0].label, runs[1].label], keys);
}

function howToRead() {
  const key = (name) => element("kbd", {}, name);
  const list = (...pairs) => element("dl", {}, ...pairs.flatMap(([term, ...text]) => [element("dt", {}, term), element("dd", {}, ...text)]));
  return element("div", {class: "how"},
    element("p", {}, "A norm takes each row of features, subtracts its mean and divides by its deviation; then scale multiplies and " +
      "shift adds, one trainable number of each for every feature. All scales begin at 1 and all shifts at 0. Features count from 0 and are " +
      "written [16]; step 0 is the state before training, and what stands at step k is the value after the k-th update."),
    list(["The map", "Each line is a feature, each column a step. The page's own colour is where the feature began; orange is above, blue with a " +
           "line through it below; darker is farther. The darkest colour is the distance written beside it, the same on both sides."],
         ["Order", "moved: those that are farthest from their start at the end come first. number: as they are counted."],
         ["Gradient", "How fast the loss would grow if the number grew, at each step, before clipping. Below 0 means: raise it."],
         ["Update", "What the optimizer really added. Start + sum of updates = value, exactly, for every optimizer."],
         ["Agreement", "|sum of gradients| / sum of |gradients|: 1 when every step pushed the same way, 0 when the pushes cancel. AdamW makes a " +
           "steady small gradient go farther than a large one that changes its sign."],
         ["Keys", key("space"), " play, ", key("left"), " ", key("right"), " one step, ", key("home"), " ", key("end"), " first and last step, ",
           key("up"), " ", key("down"), " feature, ", key("s"), " scale or shift, ", key("n"), " next norm, ", key("tab"), " everything else."]),
    element("p", {class: "small muted"}, `handgrad ${page.version}. The page holds all it shows and asks nobody for more.`));
}

function closedPanel(runs) {
  const both = (part) => element("div", {class: "runs"}, ...runs.map((run) => element("div", {class: "run"},
    runs.length > 1 ? element("p", {class: "runname"}, run.label) : null, part(run))));
  const closed = (title, content) => element("details", {}, element("summary", {}, title), content);
  const total = (run) => run.parameters ? run.parameters.reduce((sum, p) => sum + p[2], 0) : null;
  const count = total(runs[0]);
  return element("section", {"aria-label": "more"},
    closed(count === null ? "Parameters" : `Parameters: ${grouped(count)}; shape, count, decay`, both(parametersPart)),
    closed("Config: every key, its value and where it came from", both(configPart)),
    closed("How to read this page", howToRead()));
}
