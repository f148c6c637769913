// handgrad generate RUN --prompt TEXT
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/cli/verb.h"
#include "handgrad/core/error.h"
#include "handgrad/models/generate.h"
#include "handgrad/train/open_run.h"

namespace handgrad::cli {
namespace {

constexpr double kMost = 1 << 30;  // tokens

struct GenerateRequest {
  std::string run, prompt;
  models::GenerateOptions options;
  bool json = false;
};

int generate_text(const GenerateRequest& request) {
  const train::TrainedModel trained = train::open_model(request.run);
  const data::Tokenizer* tokenizer = trained.tokenizer.get();
  if (tokenizer == nullptr)
    throw Error("generate", fmt::format("the tokens of '{}' are not text", request.run), {},
                "a run that learned from a text (\"data\": {\"type\": \"text\"})");
  const auto prompt = tokenizer->encode(request.prompt);
  std::string text;
  if (!request.json) fmt::print("{}", request.prompt);
  const auto ids = models::generate(*trained.model, prompt, request.options, [&](std::int32_t id) {
    text += tokenizer->token(id);
    if (!request.json) {
      fmt::print("{}", tokenizer->token(id));
      std::fflush(stdout);
    }
    return true;
  });
  if (request.json) {
    fmt::print("{}\n",
               nlohmann::ordered_json{{"prompt", request.prompt}, {"text", text}, {"ids", ids}}.dump());
  } else {
    fmt::print("\n");
  }
  return 0;
}

}  // namespace

Verb generate_verb() {
  auto request = std::make_shared<GenerateRequest>();
  models::GenerateOptions& options = request->options;
  return {
      .name = "generate",
      .purpose = "let a trained model continue a text",
      .group = Group::look,
      .options = {{"run", "RUN", "a run's folder, or a checkpoint's", &request->run, {.required = true}},
                  {"--prompt", "TEXT", "the text to continue", &request->prompt, {.required = true}},
                  {"--max-new-tokens",
                   "N",
                   "how many tokens to add (default 100)",
                   &options.max_new_tokens,
                   {.least = 0, .most = kMost}},
                  {"--temperature",
                   "T",
                   "0: always the most likely token; 1: as learned (default)",
                   &options.temperature,
                   {.least = 0}},
                  {"--top-k",
                   "K",
                   "only the K most likely tokens; 0: all (default)",
                   &options.top_k,
                   {.least = 0, .most = kMost}},
                  {"--seed", "S", "equal seeds give equal texts (default 0)", &options.seed, {.least = 0}},
                  {"--json", "", "prompt, text and ids as JSON", &request->json}},
      .run = [request] { return generate_text(*request); }};
}

}  // namespace handgrad::cli
