// DataSource: what a run learns from, as its config names it: {"type": "text", ...}, "batch", "random", and what a
// program adds to the registry.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "handgrad/data/dataset.h"
#include "handgrad/data/tokenizer.h"
#include "handgrad/data/windows.h"
#include "handgrad/io/registry.h"

namespace handgrad::data {

/// The batches of a run, once the model's context length is known.
struct OpenedData {
  std::unique_ptr<Dataset> training;              ///< what it learns from
  std::unique_ptr<EvaluationWindows> validation;  ///< none when nothing is held back
  /// @{ 0 for random ids, which have no end, and where nothing is held back.
  std::int64_t training_tokens = 0, validation_tokens = 0;
  /// @}
};

/// Read from the config before the model, since the model's vocabulary comes from here; opened after it, since the
/// rows are as long as its context.
class DataSource {
 public:
  virtual ~DataSource() = default;

  /// How many different tokens there are; 0: not known, the model's config must say.
  virtual std::int64_t vocab_size() const = 0;
  /// Turns the model's tokens into text; nullptr when they mean nothing.
  virtual const Tokenizer* tokenizer() const { return nullptr; }
  /// Things to tell the user once, such as a byte-order mark that was dropped.
  virtual std::vector<std::string> notes() const { return {}; }
  /// Names the tokens: the same for the same tokens, another for others; empty when a config says it all.
  virtual std::string fingerprint() const { return ""; }
  /// The length of rows that the source insists on, such as a written batch; 0: as long as the context.
  virtual std::int64_t row_length() const { return 0; }

  /// `plan`: rows and tokens of a batch; `seed`: of the order; `vocab_size`: the model's. Error when the data do not
  /// fill a batch or hold an id beyond the vocabulary.
  virtual OpenedData open(const BatchPlan& plan, std::uint64_t seed, std::int64_t vocab_size) const = 0;
};

/// What a source is told by the config around it.
struct DataContext {
  std::filesystem::path folder;  ///< that relative paths start from
  bool read_files = true;        ///< false: only the keys are checked
  /// Of a run that goes on, whose ids must mean what they meant; nullptr: the source makes its own.
  std::shared_ptr<const Tokenizer> tokenizer = {};
};

/// text (windows over a text file), batch (one batch again and again), random (ids without meaning). Factories return
/// nullptr when `fields` only describes.
io::Registry<DataSource, const DataContext&>& data_sources();

}  // namespace handgrad::data
