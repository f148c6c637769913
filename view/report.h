// The report: what a run learned, as one self-contained HTML page.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/view/report_data.h"

namespace handgrad::view {

/// The file in a run folder.
inline constexpr const char* kReportFile = "report.html";

/// The data of a page of one run, or of two side by side: {"program", "version", "live", "runs"}.
nlohmann::ordered_json report_json(std::vector<nlohmann::ordered_json> runs, bool live);

/// The page around `data`. It works from disk, loads nothing else, and no text in `data` can become markup.
std::string report_page(const nlohmann::ordered_json& data);

/// Writes a page of one run, finished or not, or of two: gathers each run's data, with the model of its last checkpoint
/// where its config still builds one. Error when a folder holds no run, or when `out` is a file but not a report.
void write_report(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out);

/// Writes a page of `data`, the report_data of a run that was just trained, into the run's folder.
void write_run_report(const nlohmann::ordered_json& data, const std::filesystem::path& folder);

/// The parts of the page, from view/report; made at build time by cmake/report.cmake.
namespace report_parts {
extern const char* const kPage;    ///< page.html, with places for the others
extern const char* const kStyle;   ///< page.css
extern const char* const kScript;  ///< the scripts, one after another
}  // namespace report_parts

}  // namespace handgrad::view
