// Closed by default: parameters, config, how to read the page. Also what differs between two runs.

function table(heads, rows) {
  return element("div", {class: "scroll"}, element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {scope: "col"}, head)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) =>
      element("td", typeof cell === "number" ? {class: "number"} : {}, typeof cell === "number" ? grouped(cell) : element("code", {}, cell))))))));
}

function parametersPart(run) {
  const all = run.parameters;
  if (!all) return element("p", {class: "note"}, run.why_no_run ? `Unknown: ${run.why_no_run}` : "Added when the training ends.");
  const heads = ["name", "shape", "count", "decay"];
  if (all.some(([, , , , frozen]) => frozen)) heads.push("");
  const rows = all.map(([name, size, count, decay, frozen]) =>
    [name, size, count, decay ? "yes" : "no", frozen ? "frozen" : ""].slice(0, heads.length));
  return element("div", {}, table(heads, rows),
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
  if (keys.length === 0) return element("p", {class: "note"}, "Their configs are equal.");
  return table(["key", runs[0].label, runs[1].label], keys);
}

function howToRead() {
  const key = (name) => element("kbd", {}, name);
  const list = (...pairs) => element("dl", {}, ...pairs.flatMap(([term, ...text]) => [element("dt", {}, term), element("dd", {}, ...text)]));
  return element("div", {class: "how"},
    element("p", {}, "A norm subtracts from each row of features its mean and divides by its deviation; then scale multiplies and " +
      "shift adds, one trainable number of each for every feature. All scales start at 1 and all shifts at 0. Features count from 0 and are " +
      "written [16]; step 0 is the state before training, and the value at step k is the value after the k-th update. Validation: text held " +
      "back from training."),
    list(["The map", "Each row is a feature, each column a step. The background color means no distance from the start; orange is above, blue with a " +
           "line through it below; darker is farther. The legend gives the distance of the darkest color, the same on both sides."],
         ["Order", "moved: the features that end farthest from their start come first. number: by index."],
         ["Gradient", "How fast the loss grows when the value grows, at each step, before clipping. A negative gradient means the loss falls when the value rises."],
         ["Update", "What the optimizer added to the value. Start + sum of updates = value, exactly, for every optimizer."],
         ["Agreement", "|sum of gradients| / sum of |gradients|: 1 when every step pushed in the same direction, 0 when the pushes cancel. AdamW makes a " +
           "steady small gradient go farther than a large one that changes its sign."],
         ["Keys", key("space"), " play, ", key("left"), " ", key("right"), " one step, ", key("home"), " ", key("end"), " first and last step, ",
           key("up"), " ", key("down"), " feature, ", key("s"), " scale or shift, ", key("n"), " next norm, ", key("tab"), " everything else."]),
    element("p", {class: "small muted"}, `handgrad ${page.version}. The page contains everything that it shows and loads nothing else.`));
}

function closedPanel(runs) {
  const both = (part) => element("div", {class: "runs"}, ...runs.map((run) => element("div", {class: "run"},
    runs.length > 1 ? element("p", {class: "runname"}, run.label) : null, part(run))));
  const closed = (title, content) => element("details", {}, element("summary", {}, title), content);
  const total = (run) => run.parameters ? run.parameters.reduce((sum, p) => sum + p[2], 0) : null;
  const count = total(runs[0]);
  return element("section", {"aria-label": "more"},
    closed(count === null ? "Parameters" : `Parameters: ${grouped(count)}; shape, count, decay`, both(parametersPart)),
    closed("Config: every key, its value and its origin", both(configPart)),
    closed("How to read this page", howToRead()));
}
