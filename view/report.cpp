#include "handgrad/view/report.h"

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/io/files.h"
#include "handgrad/io/json_text.h"
#include "handgrad/io/program_name.h"
#include "handgrad/train/open_run.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/train/version.h"

namespace handgrad::view {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kMark = "<!-- handgrad report -->";

/// `text` with some characters replaced.
std::string escaped(const std::string& text, const std::map<char, const char*>& replacements) {
  std::string escaped;
  for (const char c : text) {
    const auto found = replacements.find(c);
    if (found == replacements.end())
      escaped += c;
    else
      escaped += found->second;
  }
  return escaped;
}

std::string escaped_html(const std::string& text) {
  return escaped(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}});
}

/// JSON without characters that have a meaning in HTML: "</script>" within a text ends nothing.
std::string escaped_json(const Json& data) {
  return escaped(data.dump(-1, ' ', false, Json::error_handler_t::replace),
                 {{'<', "\\u003c"}, {'>', "\\u003e"}, {'&', "\\u0026"}});
}

/// `page` with each "{{name}}" replaced, in one pass: inserted text is not searched again.
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

void throw_strange_file(const fs::path& out) {
  if (!fs::exists(out)) return;
  if (!fs::is_regular_file(out))
    throw Error("report", "`out` '" + out.string() + "' is not a file", {}, "the name of a file");
  std::ifstream file(out, std::ios::binary);
  std::string beginning(200, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  if (beginning.find(kMark) == std::string::npos)
    throw Error("report", "`out` '" + out.string() + "' exists and is not a report", {}, "another name");
}

/// The run with its last weights. Nullptr with the reason when its config, its data or its checkpoint no longer serve.
std::unique_ptr<train::Run> rebuild(const fs::path& folder, std::string& why) {
  try {
    return train::open_run(folder).run;
  } catch (const std::exception& error) {
    why = error.what();
    why = why.substr(0, why.find('\n'));
    return nullptr;
  }
}

}  // namespace

Json report_json(std::vector<Json> runs, bool live) {
  return {{"program", io::program_name()},
          {"version", std::string(train::kVersion)},
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
  throw_strange_file(out);
  std::vector<Json> data;
  for (const fs::path& folder : runs) {
    train::RunFolder::open(folder, "report");
    ReportOptions options;
    const std::unique_ptr<train::Run> run = rebuild(folder, options.why_no_run);
    options.run = run.get();
    options.running = train::RunFolder::in_use(folder);
    options.budget /= runs.size();
    options.row_budget /= runs.size();
    data.push_back(report_data(folder, options));
  }
  io::replace_file(out, report_page(report_json(std::move(data), false)));
}

void write_run_report(const Json& data, const fs::path& folder) {
  io::replace_file(folder / kReportFile, report_page(report_json({data}, false)));
}

}  // namespace handgrad::view
