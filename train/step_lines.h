// Files with one JSON object per line, each with its "step": metrics, times and samples of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace handgrad::train {

/// The file in a run folder: `{"step": 0, "val_loss": 3.63, "text": "adTgrh"}`, a line for each sample. The
/// validation loss is in the line of step 0, which metrics.jsonl does not have; without a tokenizer there is no text.
inline constexpr const char* kSamplesFile = "samples.jsonl";

/// Opens a file of lines to add to it, cut before its first line that is of a step after `last`, or not complete; step 0:
/// emptied. What is kept is not written again, so no interruption can lose it. Error when it cannot be written.
std::ofstream continue_lines(const std::filesystem::path& path, std::int64_t last);

/// Calls `visit` for every complete line that contains `with`, ignoring a last line that was cut off. Without the file
/// there are none.
void for_each_line(const std::filesystem::path& path, std::string_view with,
                   const std::function<void(std::int64_t step, const nlohmann::ordered_json& line)>& visit);

/// Error of this file or folder.
[[noreturn]] void throw_cannot_write(const std::filesystem::path& path, const std::string& why);

}  // namespace handgrad::train
