// handgrad report RUN [RUN_B]
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "handgrad/cli/verb.h"
#include "handgrad/train/run_folder.h"
#include "handgrad/view/report.h"

namespace handgrad::cli {
namespace {

namespace fs = std::filesystem;

struct ReportRequest {
  std::string run, other, out;
};

/// In the run's own folder; that of two runs, which belongs to neither, where the program was called.
fs::path out_of(const ReportRequest& request) {
  if (!request.out.empty()) return request.out;
  if (request.other.empty()) return fs::path(request.run) / view::kReportFile;
  return train::run_name(request.run) + "-and-" + train::run_name(request.other) + ".html";
}

int report(const ReportRequest& request) {
  std::vector<fs::path> runs{request.run};
  if (!request.other.empty()) runs.push_back(request.other);
  const fs::path out = out_of(request);
  view::write_report(runs, out);
  fmt::print("{}\n", out.generic_string());
  return 0;
}

}  // namespace

Verb report_verb() {
  auto request = std::make_shared<ReportRequest>();
  return {.name = "report",
          .purpose = "one page with all of a run, or two runs side by side",
          .group = Group::look,
          .options = {{"run",
                       "RUN",
                       "a run's folder; the run may be finished, stopped or running",
                       &request->run,
                       {.required = true}},
                      {"other", "RUN_B", "another run to compare it with", &request->other},
                      {"--out", "FILE", "the HTML file (default: report.html in the run's folder)",
                       &request->out}},
          .run = [request] { return report(*request); }};
}

}  // namespace handgrad::cli
