// The report: what a run learned, as one HTML page that holds everything it shows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "handgrad/train/report_data.h"

namespace handgrad::train {

/// The file in a run folder.
inline constexpr const char* kReportFile = "report.html";

/// What a page is given of one run or of two, whose numbers stand side by side: {"program", "version", "live", "runs"}.
nlohmann::ordered_json report_json(std::vector<nlohmann::ordered_json> runs, bool live);

/// The page around `data`. It works from disk, asks for nothing from elsewhere, and no text in `data` can leave its place.
std::string report_page(const nlohmann::ordered_json& data);

/// Writes a page of one run, finished or not, or of two: gathers each run's data, with the model of its last checkpoint
/// where its config still builds one. Error when a folder holds no run, or when `out` is somebody else's file.
void write_report(const std::vector<std::filesystem::path>& runs, const std::filesystem::path& out);

/// Writes a page of `data`, the report_data of a run that was just trained, into the run's folder.
void write_run_report(const nlohmann::ordered_json& data, const std::filesystem::path& folder);

}  // namespace handgrad::train
