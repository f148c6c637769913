#include "handgrad/data/data_source.h"

#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "handgrad/data/dataset.h"
#include "handgrad/data/fixed_batch.h"
#include "handgrad/data/text.h"
#include "handgrad/data/windows.h"
#include "handgrad/io/files.h"

namespace handgrad::data {
namespace {

/// A path in a config is relative to the config file; one given by --set comes absolute.
std::filesystem::path resolved(const std::string& path, const DataContext& context) {
  return (context.folder / path).lexically_normal();
}

/// "6033 tokens, 1c9d0f2be4a03b57": how many, and their FNV-1a hash, http://www.isthe.com/chongo/tech/comp/fnv/.
std::string fingerprint_of(std::initializer_list<std::span<const std::int32_t>> parts) {
  std::uint64_t hash = 0xcbf29ce484222325;
  std::size_t count = 0;
  for (const auto& ids : parts) {
    count += ids.size();
    for (const std::int32_t id : ids)
      for (int shift = 0; shift < 32; shift += 8)
        hash = (hash ^ (static_cast<std::uint32_t>(id) >> shift & 0xff)) * 0x100000001b3;
  }
  return fmt::format("{} tokens, {:016x}", count, hash);
}

class TextSource final : public DataSource {
 public:
  TextSource(io::Fields& fields, const DataContext& context) {
    const std::string path = fields.string("path", {.doc = "the text file to learn from"});
    if (path.empty() && !fields.describing_only()) fields.throw_error("path", "must name a text file");
    options_.path = resolved(path, context);
    io::Fields tokenizer = fields.object("tokenizer", "how text becomes tokens");
    tokenizer.string("type", {.doc = "which kind it is",
                              .fallback = "char",
                              .choices = {"char"},
                              .what = "tokenizer",
                              .choice_docs = {"one token for each different Unicode character of the text"}});
    options_.val_fraction = fields.number(
        "val_fraction", {.doc = "part of the text, its end, held back from training for validation",
                         .fallback = 0.1,
                         .at_least = 0,
                         .less_than = 1});
    const std::string sampling =
        fields.string("sampling", {.doc = "random: windows start anywhere; sequential: one after another",
                                   .fallback = "random",
                                   .choices = {"random", "sequential"},
                                   .what = "sampling"});
    windows_.sampling = sampling == "random" ? Sampling::random : Sampling::sequential;
    windows_.stride = fields.integer(
        "stride", {.doc = "tokens from one sequential window to the next; 0: the context length",
                   .fallback = 0,
                   .at_least = 0});
    windows_.shuffle = fields.boolean(
        "shuffle",
        {.doc = "whether each pass takes the sequential windows in an order of its own", .fallback = false});
    options_.tokenizer = context.tokenizer;
    if (!fields.describing_only() && context.read_files) text_ = load_text(options_);
  }

  std::int64_t vocab_size() const override { return text_.tokenizer ? text_.tokenizer->vocab_size() : 0; }
  const Tokenizer* tokenizer() const override { return text_.tokenizer.get(); }
  std::vector<std::string> notes() const override {
    if (!text_.had_byte_order_mark) return {};
    return {io::quoted(options_.path) + " begins with a byte-order mark; it is left out"};
  }

  std::string fingerprint() const override {
    return fingerprint_of({text_.training.ids(), text_.validation.ids()});
  }

  OpenedData open(const BatchPlan& plan, std::uint64_t seed, std::int64_t /*vocab_size*/) const override {
    require_one_row(text_.training, plan.cols);
    OpenedData opened;
    WindowOptions windows = windows_;
    windows.plan = plan;
    windows.random = AddressedRandom{seed};
    opened.training = make_windows(text_.training, windows);
    opened.training_tokens = text_.training.size();
    opened.validation_tokens = text_.validation.size();
    if (options_.val_fraction > 0) {
      require_one_row(text_.validation, plan.cols);
      opened.validation = std::make_unique<EvaluationWindows>(text_.validation, plan.rows, plan.cols);
    }
    return opened;
  }

 private:
  TextOptions options_;
  WindowOptions windows_;
  Text text_;
};

class BatchSource final : public DataSource {
 public:
  BatchSource(io::Fields& fields, const DataContext& context) {
    const auto path = fields.optional_string(
        "path", {.doc = "a file {\"inputs\": [[...]], \"targets\": [[...]]}: rows of token ids"});
    if (fields.describing_only() || !context.read_files) return;
    if (!path || path->empty()) fields.throw_error("path", "must name a batch file");
    batch_ = read_batch(resolved(*path, context), 0);
    for (const auto* ids : {&batch_.inputs, &batch_.targets})
      for (const std::int32_t id : *ids) largest_ = std::max<std::int64_t>(largest_, id);
    path_ = resolved(*path, context);
  }

  std::int64_t vocab_size() const override { return largest_ + 1; }
  std::int64_t row_length() const override { return batch_.cols; }
  std::string fingerprint() const override { return fingerprint_of({batch_.inputs, batch_.targets}); }
  OpenedData open(const BatchPlan& /*plan*/, std::uint64_t /*seed*/, std::int64_t vocab_size) const override {
    OpenedData opened;
    opened.training = std::make_unique<FixedBatch>(read_batch(path_, vocab_size));
    opened.training_tokens = batch_.tokens();
    return opened;
  }

 private:
  std::filesystem::path path_;
  Batch batch_;
  std::int64_t largest_ = -1;
};

class RandomIds final : public DataSource {
 public:
  explicit RandomIds(io::Fields& fields)
      : vocab_size_(
            fields.integer("vocab_size", {.doc = "how many different ids there are", .at_least = 1})) {}

  std::int64_t vocab_size() const override { return vocab_size_; }
  OpenedData open(const BatchPlan& plan, std::uint64_t seed, std::int64_t /*vocab_size*/) const override {
    OpenedData opened;
    opened.training = std::make_unique<RandomTokens>(vocab_size_, plan, AddressedRandom{seed});
    return opened;
  }

 private:
  std::int64_t vocab_size_;
};

template <class Source>
std::unique_ptr<DataSource> make(io::Fields& fields, const DataContext& context) {
  if constexpr (std::is_constructible_v<Source, io::Fields&, const DataContext&>) {
    return std::make_unique<Source>(fields, context);
  } else {
    return std::make_unique<Source>(fields);
  }
}

}  // namespace

io::Registry<DataSource, const DataContext&>& data_sources() {
  static io::Registry<DataSource, const DataContext&> registry(
      "data source", "text",
      {{"text", make<TextSource>, "windows over a text file"},
       {"batch", make<BatchSource>, "one written batch, again and again: can the model learn it by heart?"},
       {"random", make<RandomIds>, "ids without meaning, for measuring speed"}});
  return registry;
}

}  // namespace handgrad::data
