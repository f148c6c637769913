#include "handgrad/view/explain/model_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "handgrad/core/error.h"
#include "handgrad/io/near_match.h"
#include "handgrad/io/pattern.h"
#include "handgrad/view/text.h"

namespace handgrad::view::explain {
namespace {

using namespace nlohmann::json_literals;

[[noreturn]] void wrong(const ModelRequest& request, const std::string& rule,
                        const std::string& advice = {}) {
  throw ValueError("explain " + request.run.string(), rule, {}, advice);
}

/// Says what there is: of GPT-2's two hundred modules the first ones tell enough.
[[noreturn]] void throw_layer(const ModelRequest& request, const std::vector<std::string>& paths) {
  constexpr std::size_t kShown = 6;
  std::string modules, norm = paths.front();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (i < kShown) modules += (i == 0 ? "" : ", ") + paths[i];
    names.push_back(last_part(paths[i]));
    if (names.back().find("norm") != std::string::npos) norm = paths[i];
  }
  if (paths.size() > kShown) modules += fmt::format(" and {} more", paths.size() - kShown);
  const std::string near = io::near_match(last_part(request.layer), names);
  std::string rule = "needs `layer`, a module of the model";
  if (!request.layer.empty())
    rule = fmt::format("there is no module \"{}\"{}", request.layer,
                       near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near));
  throw ValueError("explain " + request.run.string(), rule, {{"modules ", modules}},
                   "`layer` " + (near.empty() ? norm : near));
}

/// The module that the request names by its path or by the end of one.
nn::NamedModule find_layer(const ModelRequest& request, models::Model& model) {
  std::vector<nn::NamedModule> found;
  std::vector<std::string> known;
  for (const nn::NamedModule& named : model.modules()) {
    if (named.path.empty()) continue;
    known.push_back(named.path);
    if (named.path == request.layer) return named;
    if (io::is_end_of(request.layer, named.path)) found.push_back(named);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) throw_layer(request, known);
  std::vector<std::string> names;
  for (const nn::NamedModule& named : found) names.push_back(named.path);
  wrong(request, fmt::format("`layer` {} may be {}", request.layer, listed(names, "or")),
        "`layer` " + names.front());
}

/// A token as people read it: "\"r\"", with a name for what cannot be seen.
std::string token_text(const train::Run& run, std::int32_t id) {
  const data::Tokenizer* tokenizer = run.source().tokenizer();
  if (tokenizer == nullptr) return fmt::format("token {}", id);
  std::string text(tokenizer->token(id));
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\n");
  return "\"" + text + "\"";
}

/// The tokens that go in, and which of them count in the loss.
struct Input {
  data::Batch batch;
  std::int64_t counted = 0;  // targets of all micro-batches; 0: only the last token counts
};

std::vector<std::int32_t> encoded(const ModelRequest& request, const data::Tokenizer& tokenizer,
                                  const std::string& text, const char* option) {
  try {
    return tokenizer.encode(text);
  } catch (const Error& error) {
    wrong(request, fmt::format("{}: {}", option, error.what()));
  }
}

Input input_at(const ModelRequest& request, ModelPass& pass) {
  const train::Run& run = *pass.state.run;
  const data::Tokenizer* tokenizer = run.source().tokenizer();
  if (tokenizer == nullptr)
    wrong(request, "`at` needs a text, but the tokens of this run are none", "`row` 0,0");
  const std::vector<std::int32_t> ids = encoded(request, *tokenizer, *request.at, "`at`");
  const auto count = static_cast<std::int64_t>(ids.size());
  if (ids.empty()) wrong(request, "`at` must not be empty", "`at` \"The \"");
  if (count > run.model().context_length())
    wrong(request, fmt::format("`at` must have at most {} tokens, the context of this model, got {}",
                               run.model().context_length(), count));
  Input input;
  input.batch.resize(1, count);
  input.batch.inputs = ids;
  std::fill(input.batch.targets.begin(), input.batch.targets.end(), kIgnoreIndex);
  if (!request.then.empty()) {
    const std::vector<std::int32_t> next = encoded(request, *tokenizer, request.then, "`then`");
    if (next.size() != 1) wrong(request, fmt::format("`then` must be one token, got {}", next.size()));
    input.batch.targets.back() = next.front();
  }
  pass.t = count - 1;
  pass.token = token_text(run, ids.back());
  pass.place = fmt::format("the row of the last token, {}", pass.token);
  return input;
}

std::int64_t index_in(const ModelRequest& request, std::string_view text, std::int64_t count,
                      const char* what) {
  const auto value = whole_number(text);
  if (!value || *value >= count)
    wrong(request, fmt::format("`row` needs B,T with {} in 0..{}, got {}", what, count - 1, request.row),
          "`row` 0,0");
  return *value;
}

Input input_of_batch(const ModelRequest& request, ModelPass& pass) {
  const train::Run& run = *pass.state.run;
  Input input;
  data::Batch other;
  for (std::int64_t i = 0; i < run.plan().micro_batches; ++i) {
    data::Batch& batch = i == 0 ? input.batch : other;
    run.data().training->fill(batch, {.step = pass.state.step, .micro_batch = i});
    input.counted += std::count_if(batch.targets.begin(), batch.targets.end(),
                                   [](std::int32_t id) { return id != kIgnoreIndex; });
  }
  input.counted = std::max<std::int64_t>(input.counted, 1);
  const data::Batch& batch = input.batch;
  pass.t = batch.cols - 1;
  if (!request.row.empty()) {
    const std::size_t comma = request.row.find(',');
    const std::string_view row = request.row;
    pass.b = index_in(request, row.substr(0, comma), batch.rows, "B");
    pass.t = index_in(request, comma == std::string::npos ? "" : row.substr(comma + 1), batch.cols, "T");
  }
  const auto at = static_cast<std::size_t>(pass.b * batch.cols + pass.t);
  pass.token = token_text(run, batch.inputs[at]);
  pass.place = fmt::format("row {},{} of the batch of step {}, the token {}", pass.b, pass.t,
                           pass.state.step + 1, pass.token);
  return input;
}

/// The loss of the pass, said in words.
Tensor loss_of(ModelPass& pass, Input& input) {
  const train::Run& run = *pass.state.run;
  data::Batch& batch = input.batch;
  const Shape shape({batch.rows, batch.cols});
  const Tensor logits = run.model()(Ids(batch.inputs, shape));
  const auto last = static_cast<std::size_t>(batch.tokens() - 1);
  if (input.counted > 0) {
    pass.loss = {fmt::format("The loss is the training's: -log p(next token), the mean over {} tokens.",
                             input.counted)};
    if (run.plan().micro_batches > 1)
      pass.loss.push_back(fmt::format(
          "These rows are the first of {} micro-batches, so they make a part of the step's gradient.",
          run.plan().micro_batches));
    if (run.effective().value("/model/drop_rate"_json_pointer, 0.0) > 0)
      pass.loss.push_back("Dropout is left out here: the step's own gradient has it.");
    return cross_entropy_by_count(logits, Ids(batch.targets, shape), static_cast<double>(input.counted));
  }
  std::string whose = ", as --then says";
  if (batch.targets[last] == kIgnoreIndex) {
    const NoGrad no_grad;
    batch.targets[last] = argmax(logits).values()[last];
    whose = ", which the model finds most likely (--then chooses another)";
  }
  pass.loss = {
      fmt::format("The loss is -log p({} comes next){}.", token_text(run, batch.targets[last]), whose)};
  return cross_entropy(logits, Ids(batch.targets, shape));
}

}  // namespace

ModelPass run_model(const ModelRequest& request) {
  if (request.at && !request.row.empty())
    wrong(request, "`at` and `row` both choose a row; give one of them");
  if (!request.then.empty() && !request.at) wrong(request, "`then` needs `at`, the text that goes before");
  ModelPass pass;
  nn::NamedModule layer{};
  pass.state = restore(request.run, request.sets, request.step,
                       [&](train::Run& run) { layer = find_layer(request, run.model()); });
  models::Model& model = pass.state.run->model();
  pass.module = layer.module;
  pass.path = layer.path;
  Input input = request.at ? input_at(request, pass) : input_of_batch(request, pass);
  pass.texts = input.batch.rows;
  pass.tokens = input.batch.cols;

  const nn::EvalMode eval_mode(model);
  model.zero_grad();
  pass.graph = RecordedGraph(layer.path);
  RecordedModules modules([&](const nn::Module& module) { return &module == layer.module; });
  const GraphObserverGuard graph_guard(pass.graph);
  const nn::ModuleObserverGuard module_guard(modules);
  loss_of(pass, input).backward();
  if (modules.calls().empty()) wrong(request, fmt::format("{} did not run in this pass", layer.path));
  pass.x = modules.calls().front().x;
  pass.y = modules.calls().front().y;
  return pass;
}

}  // namespace handgrad::view::explain
