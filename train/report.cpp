#include "handgrad/train/report.h"

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/nn/config_error.h"
#include "handgrad/nn/durable_file.h"
#include "handgrad/train/checkpoint.h"
#include "handgrad/train/program_name.h"
#include "handgrad/train/report_parts.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/train/version.h"

namespace handgrad::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kMark = "<!-- handgrad report -->";

std::string escaped_html(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

/// JSON in which no character means anything to HTML: "</script>" within a text ends nothing.
std::string escaped_json(const Json& data) {
  std::string escaped;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    switch (c) {
      case '<':
        escaped += "\\u003c";
        break;
      case '>':
        escaped += "\\u003e";
        break;
      case '&':
        escaped += "\\u0026";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

/// `page` with each "{{name}}" replaced, in one pass: what is put in is not looked at again.
std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string text;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t open = page.find("{{", at), close = page.find("}}", open);
    if (open == std::string_view::npos || close == std::string_view::npos) return text += page.substr(at);
    text += page.substr(at, open - at);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    for (const auto& [part, content] : parts)
      if (part == name) text += content;
    at = close + 2;
  }
  return text;
}

void refuse_strange_file(const fs::path& out) {
  if (!fs::exists(out)) return;
  if (!fs::is_regular_file(out))
    throw Error("report", "--out '" + out.string() + "' is no file", {}, "the name of a file");
  std::ifstream file(out, std::ios::binary);
  std::string beginning(200, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  if (beginning.find(kMark) == std::string::npos)
    throw Error("report", "--out '" + out.string() + "' is there already and is no report", {},
                "another name");
}

/// The run with its last weights. Nullptr with the reason when its config, its data or its checkpoint no longer serve.
std::unique_ptr<Run> rebuild(const fs::path& folder, std::string& why) {
  try {
    const fs::path checkpoint = checkpoint_of(folder);
    const CheckpointState state = read_checkpoint_state(checkpoint);
    auto run = std::make_unique<Run>(ConfigDocument::load(folder / "config.json"),
                                     RunContext{.tokenizer = state.tokenizer, .weights_follow = true});
    load_weights(checkpoint, run->model());
    run->trainer().restore(state.step, state.best_loss);
    return run;
  } catch (const std::exception& error) {
    why = error.what();
    why = why.substr(0, why.find('\n'));
    return nullptr;
  }
}

}  // namespace

Json report_json(std::vector<Json> runs, bool live) {
  return {{"program", program_name()},
          {"version", std::string(kVersion)},
          {"live", live},
          {"runs", std::move(runs)}};
}

std::string report_page(const Json& data) {
  std::string title;
  for (const Json& run : data["runs"])
    title += (title.empty() ? "" : " and ") + run["name"].get<std::string>();
  return filled(report_parts::kPage, {{"title", escaped_html(title)},
                                      {"connect", data["live"].get<bool>() ? "'self'" : "'none'"},
                                      {"style", report_parts::kStyle},
                                      {"script", report_parts::kScript},
                                      {"data", escaped_json(data)}});
}

void write_report(const std::vector<fs::path>& runs, const fs::path& out) {
  refuse_strange_file(out);
  std::vector<Json> data;
  for (const fs::path& folder : runs) {
    RunFolder::open(folder, "report");
    ReportOptions options;
    const std::unique_ptr<Run> run = rebuild(folder, options.why_no_run);
    options.run = run.get();
    options.running = RunFolder::in_use(folder);
    options.budget /= runs.size();
    options.row_budget /= runs.size();
    data.push_back(report_data(folder, options));
  }
  nn::replace_file(out, report_page(report_json(std::move(data), false)));
}

void write_run_report(const Json& data, const fs::path& folder) {
  nn::replace_file(folder / kReportFile, report_page(report_json({data}, false)));
}

}  // namespace handgrad::train
