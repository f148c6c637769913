#include "handgrad/train/config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "handgrad/io/files.h"
#include "handgrad/io/json_text.h"

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;

/// Only one of each pair can be given: the one on the command line, else the one in the file.
constexpr std::pair<const char*, const char*> kInPlaceOf[] = {{"/train/epochs", "/train/steps"},
                                                              {"/train/steps", "/train/epochs"}};

constexpr std::int64_t kMostRows = std::int64_t{1} << 20;  // of a batch, and batches of a step

/// A value on the command line: JSON where it is JSON, else a text, so that paths and names need no quotes.
Json parse_value(const std::string& text) {
  const Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(text) : value;
}

void erase(Json& root, const char* pointer) {
  const Json::json_pointer place(pointer);
  if (root.contains(place)) root[place.parent_pointer()].erase(place.back());
}

void apply(Json& root, const std::string& set, io::Source& source) {
  const std::string origin = "--set " + set;
  const std::size_t equals = set.find('=');
  if (equals == std::string::npos || equals == 0)
    throw io::ConfigError(origin, "", "must be KEY=VALUE, such as train.steps=500");
  std::string pointer = "/" + set.substr(0, equals);
  for (char& c : pointer)
    if (c == '.') c = '/';
  Json value = parse_value(set.substr(equals + 1));
  make_paths_absolute(value, "",
                      pointer.ends_with("/path"));  // typed from here, not from the config's folder
  Json* at = &root;
  for (std::size_t begin = 1; begin < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
    if (!at->is_object() && !at->is_null())
      throw io::ConfigError(origin, pointer.substr(0, begin - 1), "is not an object, it has no keys");
    at = &(*at)[pointer.substr(begin, end - begin)];
    begin = end + 1;
  }
  *at = std::move(value);
  for (const auto& [given, other] : kInPlaceOf)
    if (pointer == given && source.overrides.count(other) == 0) erase(root, other);
  source.overrides[pointer] = origin;
}

}  // namespace

void make_paths_absolute(Json& value, const std::filesystem::path& folder, bool is_path) {
  if (is_path && value.is_string() && !value.get<std::string>().empty())
    value = std::filesystem::absolute(folder / value.get<std::string>()).lexically_normal().string();
  if (!value.is_object()) return;
  for (auto& [key, inner] : value.items()) make_paths_absolute(inner, folder, key == "path");
}

ConfigDocument::ConfigDocument(Json root, io::Source source, std::filesystem::path folder)
    : root_(std::make_shared<const nlohmann::json>(std::move(root))),
      source_(std::move(source)),
      folder_(std::move(folder)) {}

ConfigDocument::~ConfigDocument() = default;

ConfigDocument ConfigDocument::load(const std::filesystem::path& file, const std::vector<std::string>& sets) {
  io::Source source{file.string(), {}};
  Json root = io::parse_json(io::read_text_file(file).text, source.file);
  if (!root.is_object()) throw io::ConfigError(source.file, "", "a config must be a JSON object, { ... }");
  for (const std::string& set : sets) apply(root, set, source);
  return {std::move(root), std::move(source), file.parent_path()};
}

ConfigDocument ConfigDocument::from_json(const Json& root, const std::filesystem::path& folder,
                                         const char* file) {
  return {root, io::Source{(folder / file).string(), {}}, folder};
}

io::Fields ConfigDocument::fields(io::Purpose purpose) const { return io::Fields(*root_, source_, purpose); }

std::string origin_text(const io::Key& key, const std::string& file) {
  if (key.origin == file) return "file";
  return key.origin.empty() ? "default" : "command line";
}

TrainSettings read_train(io::Fields& fields) {
  TrainSettings s;
  const auto steps =
      fields.optional_integer("steps", {.doc = "how many updates the run makes", .at_least = 1});
  const auto epochs = fields.optional_integer(
      "epochs",
      {.doc = "how many times the run reads the training data", .at_least = 1, .instead_of = "steps"});
  s.steps = steps.value_or(0);
  s.epochs = epochs.value_or(0);
  s.stop_after = fields.integer("stop_after",
                                {.doc = "stops after this step without changing the schedule; 0: at the end",
                                 .fallback = 0,
                                 .at_least = 0});
  s.batch_size = fields.integer(
      "batch_size", {.doc = "rows of a batch", .fallback = 16, .at_least = 1, .at_most = kMostRows});
  s.accumulate =
      fields.integer("accumulate", {.doc = "batches whose gradients make one update, their mean over tokens",
                                    .fallback = 1,
                                    .at_least = 1,
                                    .at_most = kMostRows});
  s.trainer.grad_clip = fields.number(
      "grad_clip",
      {.doc = "largest norm of all gradients together; 0: no clipping", .fallback = 0, .at_least = 0});
  s.freeze = fields.strings("freeze", {.doc = "names or patterns of parameters that stay as they are",
                                       .fallback = std::vector<std::string>{}});
  s.eval_every = fields.integer(
      "eval_every", {.doc = "steps between two evaluations on the validation data; 0: only at the "
                            "beginning and at the end",
                     .fallback = 0,
                     .at_least = 0});
  s.eval_batches = fields.integer(
      "eval_batches", {.doc = "batches of an evaluation on the way; 0: all. The last evaluation takes all",
                       .fallback = 0,
                       .at_least = 0});
  s.checkpoint_every = fields.integer(
      "checkpoint_every",
      {.doc = "steps between two checkpoints; 0: only at the end", .fallback = 0, .at_least = 0});
  s.dtype = fields.string("dtype", {.doc = "element type of weights and arithmetic",
                                    .fallback = "float32",
                                    .choices = {"float32", "float64"},
                                    .what = "element type"}) == "float64"
                ? DType::float64
                : DType::float32;
  s.trainer.check_non_finite =
      fields.boolean("find_nan", {.doc = "whether every operation of every step is checked "
                                         "for NaN and infinity, not only after a bad loss",
                                  .fallback = false});
  s.trainer.allow_unused = fields.boolean(
      "allow_unused", {.doc = "whether trainable parameters may be without any gradient", .fallback = false});
  return s;
}

InspectSettings read_inspect(io::Fields& fields) {
  InspectSettings s;
  s.parameters = fields.strings(
      "parameters",
      {.doc = "names or patterns of parameters to record after each step; by default all of every norm",
       .fallback = std::vector<std::string>{"*norm*"}});
  s.every = fields.integer("every", {.doc = "records values, gradients and updates every n-th step; "
                                            "statistics of every step are kept anyhow",
                                     .fallback = 1,
                                     .at_least = 1});
  return s;
}

}  // namespace handgrad::train
