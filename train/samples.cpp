#include "handgrad/train/samples.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/models/generate.h"
#include "handgrad/train/step_lines.h"

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSampleTemperature = 0.7;

}  // namespace

std::string sample_text(const Run& run, std::int64_t tokens) {
  const data::Tokenizer* tokenizer = run.source().tokenizer();
  if (tokenizer == nullptr) return "";
  const std::vector<std::int32_t> prompt{0};
  std::string text;
  try {
    text = tokenizer->decode(
        models::generate(run.model(), prompt,
                         {.max_new_tokens = tokens, .temperature = kSampleTemperature, .seed = run.seed()}));
  } catch (const ValueError&) {  // of weights that are not finite; the first step says what is wrong
    return "";
  } catch (const Error&) {  // of a token that the tokenizer does not have
    return "";
  }
  for (char& c : text)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return text;
}

bool is_sample_step(std::int64_t step) {
  if (step == 0 || step == 1 || step == 10 || step == 50) return true;
  while (step >= 1000 && step % 10 == 0) step /= 10;
  return step == 100 || step == 200 || step == 500;
}

SamplesWriter::SamplesWriter(const Run& run, const std::filesystem::path& folder)
    : run_(run), path_(folder / kSamplesFile), file_(continue_lines(path_, run.trainer().step_count())) {}

void SamplesWriter::begin(const Trainer& trainer, std::optional<double> validation_loss) {
  if (trainer.step_count() == 0) write(0, validation_loss);
}

void SamplesWriter::after_step(const Trainer& /*trainer*/, const StepReport& report) {
  if (is_sample_step(report.step) || report.step == run_.steps()) write(report.step, std::nullopt);
}

void SamplesWriter::write(std::int64_t step, std::optional<double> validation_loss) {
  const std::string text = sample_text(run_);
  Json line{{"step", step}};
  if (validation_loss) line["val_loss"] = std::isfinite(*validation_loss) ? Json(*validation_loss) : Json();
  if (!text.empty()) line["text"] = text;
  // A token may be a part of a character, and the last one may end within it.
  if (line.size() > 1)
    file_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
  if (!file_) throw_cannot_write(path_, std::strerror(errno));
}

Json read_samples(const std::filesystem::path& folder) {
  Json samples = Json::array();
  for_each_line(folder / kSamplesFile, "",
                [&](std::int64_t /*step*/, const Json& line) { samples.push_back(line); });
  return samples;
}

}  // namespace handgrad::train
