// inspect: which parameters and steps are meant, and what is wrong when there are none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "handgrad/core/error.h"
#include "handgrad/io/pattern.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/view/inspect.h"
#include "handgrad/view/text.h"

namespace handgrad::view {
namespace {

using Json = nlohmann::ordered_json;
using Patterns = std::vector<std::string>;

/// The key and value, quoted for a shell, that add `names` to what the run recorded.
std::string to_record(const Json& config, const Patterns& names) {
  const Json::json_pointer place("/inspect/parameters");
  Json all = config.contains(place) && config[place].is_array() ? config[place] : Json::array();
  for (const std::string& name : names) all.push_back(name);
  return io::shell_word("inspect.parameters=" + all.dump());
}

/// The first names, which tell enough, and how many there are beyond.
std::string names_text(const Patterns& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text.empty() ? "nothing" : text;
}

Operand recorded_names(const train::History& history) {
  Patterns names;
  for (const train::History::Item& entry : history.entries())
    if (entry.recorded) names.push_back(entry.name);
  const std::size_t saved = history.entries().size() - names.size();
  return {"recorded ",
          names_text(names) + (saved > 0 ? fmt::format("; {} others are in the checkpoints", saved) : "")};
}

[[noreturn]] void throw_name(const std::string& title, const std::string& pattern,
                             const train::History& history) {
  throw Error("inspect " + title, fmt::format("nothing recorded is named '{}'", pattern),
              {recorded_names(history)},
              "a name, a part of one (scale, norm1) or a pattern ('*.scale'); inspect.parameters of the "
              "config chooses");
}

/// A gradient or an update that was not recorded, a moment that the optimizer does not keep.
[[noreturn]] void throw_quantity(const std::string& title, const std::string& name,
                                 const train::History& history, const std::string& set) {
  const std::string& of = train::name_of(history.of());
  const std::string where = "inspect " + title;
  if (history.of() < train::Quantity::first_moment)
    throw Error(
        where,
        fmt::format("there is no {} of {}: it was not recorded, and checkpoints hold values and moments", of,
                    name),
        {recorded_names(history)}, fmt::format("`of` value, or train with `set` {}", set));
  if (history.checkpoint_steps().empty())
    throw Error(where, fmt::format("there is no {} yet: checkpoints hold it, and this run has none", of), {},
                "`of` value, gradient or update; train with `set` train.checkpoint_every=100");
  const Patterns kept = history.moments();
  const Patterns names = train::state_names(history.of());
  const bool keeps = std::find_first_of(kept.begin(), kept.end(), names.begin(), names.end()) != kept.end();
  if (keeps) throw Error(where, fmt::format("there is no {} of {}: it was never updated", of, name));
  throw Error(
      where, fmt::format("there is no {}: its optimizer, {}, does not keep it", of, history.optimizer_type()),
      {{"kept ", kept.empty() ? "nothing" : fmt::format("{}", fmt::join(kept, ", "))}},
      kept.empty() ? "`of` value, gradient or update" : "`of` first_moment");
}

/// Positions of what the patterns mean; each must mean something of which the quantity is known. Without patterns all
/// that was recorded, or saved when nothing was.
std::vector<std::size_t> find(const Patterns& patterns, const std::string& title,
                              const train::History& history, const Json& config) {
  const auto& entries = history.entries();
  std::vector<bool> chosen(entries.size());
  const auto choose = [&](const std::string& pattern, const auto& means) {
    std::string first;
    bool found = false;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!means(entries[i])) continue;
      if (first.empty()) first = entries[i].name;
      if (!history.steps(i).empty()) chosen[i] = found = true;
    }
    if (first.empty()) throw_name(title, pattern, history);
    if (!found) throw_quantity(title, first, history, to_record(config, {pattern}));
  };
  for (const std::string& pattern : patterns)
    choose(pattern, [&](const train::History::Item& entry) { return io::matches(pattern, entry.name); });
  if (patterns.empty())
    choose("*", [&](const train::History::Item& entry) {
      return history.recording() == nullptr || entry.recorded.has_value();
    });
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (chosen[i]) positions.push_back(i);
  return positions;
}

std::int64_t parse_step(const std::string& title, std::string_view text, std::string_view whole) {
  const auto step = whole_number(text);
  if (!step)
    throw ValueError("inspect " + title,
                     fmt::format("`step` must be a step, a range or 'last', got '{}'", whole), {},
                     "`step` 250, `step` 1:5, `step` last");
  return *step;
}

std::string how_far(const Selection& s, std::int64_t last) {
  return s.planned_steps > last ? fmt::format("step {} of {} is the last one recorded", last, s.planned_steps)
                                : fmt::format("this run has {} steps", last);
}

bool only_checkpoints(const Selection& s) {
  return std::all_of(s.parameters.begin(), s.parameters.end(),
                     [&](std::size_t i) { return s.history.from_checkpoints(i); });
}

/// None of the chosen parameters has numbers at the checkpoints that were asked for.
[[noreturn]] void throw_checkpoint(const Selection& s) {
  const std::vector<std::int64_t>& steps = s.history.steps(s.parameters.front());
  const auto after = std::upper_bound(steps.begin(), steps.end(), s.first);
  throw Error(
      "inspect " + s.title,
      fmt::format("no step {}; {} is known at the checkpoints only",
                  s.first == s.last ? fmt::format("{}", s.first) : fmt::format("{} to {}", s.first, s.last),
                  s.history.entries()[s.parameters.front()].name),
      {{"checkpoints ", "steps " + steps_text(steps)}},
      fmt::format("`step` {}", after == steps.begin() ? *after : *(after - 1)));
}

/// What may be asked instead of a step that is not recorded yet: to finish the run, where that can be done.
std::string advice_beyond(const Selection& s, std::int64_t last) {
  const std::filesystem::path run = s.title;
  if (train::RunFolder::in_use(run)) return "`step` last; it is still training";
  const std::vector<std::int64_t> saved = train::steps_of_checkpoints(run);
  if (s.planned_steps <= last || saved.empty() || saved.back() >= s.planned_steps) return "`step` last";
  return fmt::format("`step` last, or finish it first: `handgrad` train `resume` {}",
                     io::shell_word(s.title));
}

/// `last`: the last step of which anything was recorded.
[[noreturn]] void throw_step(const Selection& s, std::int64_t step, std::int64_t last) {
  const std::int64_t every = s.history.recording()->every();
  const std::string recorded = fmt::format("steps 0 to {}, every step{}", last,
                                           every == 1 ? "" : fmt::format("; values every {} steps", every));
  if (step == 0)
    throw Error("inspect " + s.title,
                fmt::format("no step 0; it is the state before training, which has no {}",
                            train::name_of(s.history.of())),
                {{"recorded ", recorded}}, "`step` 1");
  throw Error("inspect " + s.title,
              step <= last && every != 1 ? fmt::format("step {} has statistics, no values", step)
                                         : fmt::format("no step {}; {}", step, how_far(s, last)),
              {{"recorded ", recorded}},
              step > last ? advice_beyond(s, last) : fmt::format("`step` {}", step / every * every));
}

void parse_steps(Selection& s, const std::string& text) {
  const std::size_t colon = text.find(':');
  s.only_last = text == "last";
  if (s.whole_run || s.only_last) {
    s.first = s.whole_run ? 0 : s.last;
  } else if (colon == std::string::npos) {
    s.first = s.last = parse_step(s.title, text, text);
  } else {
    const std::string_view whole = text;
    s.first = parse_step(s.title, whole.substr(0, colon), whole);
    const std::string_view end = whole.substr(colon + 1);
    if (end != "last") s.last = parse_step(s.title, end, whole);
    if (s.last < s.first)
      throw ValueError("inspect " + s.title,
                       fmt::format("`step` must name the smaller step first, got '{}'", text));
  }
}

/// `numbers`: whether statistics are not enough.
void choose_steps(Selection& s, const std::string& text, bool numbers) {
  std::int64_t end = 0;
  for (const std::size_t i : s.parameters) end = std::max(end, s.history.steps(i).back());
  s.last = end;
  parse_steps(s, text);
  const bool saved = only_checkpoints(s);
  for (const std::int64_t step : {s.first, s.last})
    if (!saved && step > end) throw_step(s, step, end);
  for (const std::size_t i : s.parameters)
    for (const std::int64_t step : s.steps(i))
      if (!numbers || s.history.has_numbers(i, step)) return;
  if (saved) throw_checkpoint(s);
  throw_step(s, s.first, end);
}

}  // namespace

Json read_json(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  return json.is_object() ? json : Json::object();
}

std::int64_t planned_steps(const Json& config) {
  const Json::json_pointer steps("/train/steps");
  return config.contains(steps) && config[steps].is_number_integer() ? config[steps].get<std::int64_t>() : 0;
}

std::string steps_text(const std::vector<std::int64_t>& steps) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool left_out = steps.size() > kShown && i + 1 < steps.size() && i + 2 > kShown;
    if (left_out) continue;
    if (i > 0) text += steps.size() > kShown && i + 1 == steps.size() ? " ... " : ", ";
    text += fmt::format("{}", steps[i]);
  }
  return text;
}

std::vector<std::int64_t> Selection::steps(std::size_t parameter) const {
  const std::vector<std::int64_t>& all = history.steps(parameter);
  if (only_last) return {all.back()};
  return {std::lower_bound(all.begin(), all.end(), first), std::upper_bound(all.begin(), all.end(), last)};
}

std::vector<std::int64_t> Selection::all_steps() const {
  std::set<std::int64_t> all;
  const std::vector<std::int64_t>* before = nullptr;  // what was recorded was recorded together
  for (const std::size_t i : parameters) {
    if (&history.steps(i) == before) continue;
    before = &history.steps(i);
    for (const std::int64_t step : steps(i)) all.insert(step);
  }
  return {all.begin(), all.end()};
}

bool Selection::has(std::size_t parameter, std::int64_t step) const {
  const std::vector<std::int64_t>& all = history.steps(parameter);
  if (only_last) return step == all.back();
  return step >= first && step <= last && std::binary_search(all.begin(), all.end(), step);
}

Selection select(const std::filesystem::path& run, const train::History& history,
                 const InspectOptions& options) {
  const Json config = read_json(run / "config.json");
  const std::string title = run.string();
  Selection s{history,
              title,
              "",
              find(options.names, title, history, config),
              0,
              0,
              false,
              options.steps.empty(),
              planned_steps(config),
              ""};
  for (const std::string& name : options.names) s.asked += (s.asked.empty() ? "" : " ") + name;
  std::vector<std::string> unrecorded;  // those of the patterns that mean some
  for (const std::string& name : options.names)
    if (std::any_of(s.parameters.begin(), s.parameters.end(), [&](std::size_t i) {
          return !history.entries()[i].recorded && io::matches(name, history.entries()[i].name);
        }))
      unrecorded.push_back(name);
  if (history.recording() == nullptr && options.names.empty()) unrecorded = {"*"};
  if (!unrecorded.empty()) s.to_record = to_record(config, unrecorded);
  choose_steps(s, options.steps, options.values || options.format == InspectOptions::Format::csv);
  return s;
}

}  // namespace handgrad::view
