// handgrad generate RUN --prompt TEXT
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "handgrad/cli/verbs.h"
#include "handgrad/core/error.h"
#include "handgrad/models/generate.h"
#include "handgrad/train/open_run.h"

namespace handgrad::cli {
namespace {

constexpr double kMost = 1 << 30;  // tokens

struct Request {
  std::string run, prompt;
  models::GenerateOptions options;
  bool json = false;
};

int generate_text(const Request& request) {
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

void add_generate(CLI::App& app, Chosen& chosen) {
  auto request = std::make_shared<Request>();
  CLI::App* verb = app.add_subcommand("generate", "let a trained model continue a text")->group("look");
  verb->add_option("run", request->run, "a run's folder, or a checkpoint's")->option_text("RUN")->required();
  verb->add_option("--prompt", request->prompt, "the text to continue")->option_text("TEXT")->required();
  verb->add_option("--max-new-tokens", request->options.max_new_tokens,
                   "how many tokens to add (default 100)")
      ->option_text("N")
      ->check(between(0, kMost));
  verb->add_option("--temperature", request->options.temperature,
                   "0: always the most likely token; 1: as learned (default)")
      ->option_text("T")
      ->check(at_least(0));
  verb->add_option("--top-k", request->options.top_k, "only the K most likely tokens; 0: all (default)")
      ->option_text("K")
      ->check(between(0, kMost));
  verb->add_option("--seed", request->options.seed, "equal seeds give equal texts (default 0)")
      ->option_text("S")
      ->check(at_least(0));
  verb->add_flag("--json", request->json, "prompt, text and ids as JSON");
  verb->callback([request, &chosen] { chosen.action = [request] { return generate_text(*request); }; });
}

}  // namespace handgrad::cli
