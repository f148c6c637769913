#include "handgrad/train/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "handgrad/io/pattern.h"
#include "handgrad/models/model.h"
#include "handgrad/optim/registry.h"

namespace handgrad::train {
namespace {

using Json = nlohmann::ordered_json;

optim::Parameters named_parameters(const models::Model* model) {
  return model == nullptr ? optim::Parameters{} : model->named_parameters();
}

std::vector<std::string> matching(const std::vector<std::string>& patterns, const models::Model& model) {
  std::vector<std::string> names;
  for (const auto& parameter : model.named_parameters()) {
    const auto meant = [&](const std::string& pattern) { return io::matches(pattern, parameter.name); };
    if (std::any_of(patterns.begin(), patterns.end(), meant)) names.push_back(parameter.name);
  }
  return names;
}

}  // namespace

Run::Run() = default;
Run::~Run() = default;

Run::Run(const ConfigDocument& config, const RunContext& context) {
  const io::Fields checked = config.fields(io::Purpose::check);
  read(checked, config.folder(), context);
  for (const io::Key& key : checked.keys())
    if (key.type != io::Key::Type::object && !key.value.empty())
      origins_[io::dotted(key.pointer)] = origin_text(key, checked.file());
  read(config.fields(io::Purpose::build), config.folder(), context);
  build_trainer(context.stop);
}

void read_config(io::Fields& fields) { Run().read(fields, {}, {}); }

std::int64_t Run::last_step() const {
  return settings_.stop_after > 0 ? std::min(settings_.stop_after, steps_) : steps_;
}

CheckpointOrigin Run::origin() const { return {effective_.get(), source_->tokenizer(), fingerprint_}; }

void Run::read(io::Fields root, const std::filesystem::path& folder, const RunContext& run) {
  const bool build = root.building();
  root.optional_string("$schema", {.doc = "for editors: where the JSON Schema of configs is"});
  seed_ = static_cast<std::uint64_t>(
      root.integer("seed", {.doc = "of first weights, data and dropout: equal seeds give equal runs",
                            .fallback = 2266,
                            .at_least = 0}));
  io::Fields model = root.object("model", "what is trained");
  io::Fields data = root.object("data", "what it learns from");
  source_ = data::data_sources().make(data, data::DataContext{folder, build, run.tokenizer});
  const models::ModelContext context{source_ && build ? source_->vocab_size() : 0};
  model_ = run.weights_follow ? models::make(model, context) : models::make(model, context, seed_);
  io::Fields train = root.object("train", "how long and how");
  settings_ = read_train(train);
  io::Fields optimizer = root.object("optimizer", "how gradients move parameters");
  io::Fields schedule = root.object("schedule", "how the learning rate changes");
  io::Fields inspect = root.object("inspect", "what is recorded after each step");
  inspect_ = read_inspect(inspect);
  if (build) {
    model_->to(settings_.dtype);
    if (source_->vocab_size() > model_->vocab_size())
      model.throw_error("vocab_size",
                        fmt::format("must be at least {}, the number of different tokens in the data, got {}",
                                    source_->vocab_size(), model_->vocab_size()));
    for (const std::string& pattern : settings_.freeze)
      if (matching({pattern}, *model_).empty())
        train.throw_error("freeze",
                          fmt::format("no parameter is named \"{}\"; a part of a name (scale, norm1) or a "
                                      "pattern (*.norm1.*) will do too",
                                      pattern));
    if (!settings_.freeze.empty()) frozen_ = model_->freeze(settings_.freeze);
    if (frozen_.size() == model_->named_parameters().size())
      train.throw_error("freeze", "leaves nothing to train: every parameter is frozen");
    plan_.rows = settings_.batch_size;
    plan_.cols = source_->row_length() > 0 ? source_->row_length() : model_->context_length();
    plan_.micro_batches = settings_.accumulate;
    data_ = source_->open(plan_, seed_, model_->vocab_size());
    steps_ = settings_.steps > 0 ? settings_.steps : data_.training->steps_for_epochs(settings_.epochs);
    inspected_ = matching(inspect_.parameters, *model_);
    fingerprint_ = source_->fingerprint();
    notes_ = source_->notes();
    if (inspected_.empty() && !inspect_.parameters.empty())
      notes_.push_back("nothing is recorded: no parameter has a name that inspect.parameters means");
  }
  optimizer_ = optim::optimizers().make(optimizer, named_parameters(model_.get()));
  schedule_ =
      optim::schedules().make(schedule, optim::ScheduleContext{optimizer_ ? optimizer_->lr() : 0, steps_});
  root.finish();
  if (!build) return;
  effective_ = std::make_unique<Json>(root.effective());
  effective_->erase("$schema");              // a path relative to the config's folder
  make_paths_absolute(*effective_, folder);  // the run has another folder
}

void Run::build_trainer(const std::atomic<bool>* stop) {
  TrainerOptions options = settings_.trainer;
  options.seed = seed_;
  options.stop = stop;
  trainer_ = std::make_unique<Trainer>(*model_, *data_.training, *optimizer_, *schedule_, options,
                                       data_.validation.get());
}

}  // namespace handgrad::train
