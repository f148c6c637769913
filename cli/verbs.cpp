// The list of verbs. Each NAME is a function NAME_verb() in NAME_verb.cpp; help lists a group's verbs in this order.
#include <fmt/format.h>

#include <algorithm>

#include "handgrad/cli/verb.h"
#include "handgrad/io/program_name.h"

#define HANDGRAD_VERBS(VERB) \
  VERB(inspect)              \
  VERB(explain)              \
  VERB(report)               \
  VERB(generate)             \
  VERB(layers)               \
  VERB(train)                \
  VERB(config)               \
  VERB(check)                \
  VERB(trace)                \
  VERB(bench)                \
  VERB(manual)

namespace handgrad::cli {

#define HANDGRAD_DECLARE(name) Verb name##_verb();
HANDGRAD_VERBS(HANDGRAD_DECLARE)

#define HANDGRAD_CALL(name) name##_verb(),
Verb program() {
  return {.name = "handgrad",
          .purpose = "A small autograd framework that trains a GPT on a CPU and hides nothing.",
          .verbs = {HANDGRAD_VERBS(HANDGRAD_CALL)}};
}

int print_text(const std::string& text) {
  fmt::print("{}", text);
  return 0;
}

// ---- The library's errors in the words of the command line

namespace {

bool has_option(const Verb& verb, const std::string& name) {
  return std::any_of(verb.options.begin(), verb.options.end(),
                     [&](const Option& o) { return o.name == name; }) ||
         std::any_of(verb.verbs.begin(), verb.verbs.end(),
                     [&](const Verb& inner) { return has_option(inner, name); });
}

}  // namespace

std::string error_text(const std::exception& error) {
  std::string text = error.what();
  const Verb all = program();
  for (std::size_t open = 0; (open = text.find('`', open)) != text.npos; ++open) {
    const std::size_t close = text.find('`', open + 1);
    if (close == text.npos) break;
    const std::string name = text.substr(open + 1, close - open - 1), option = "--" + name;
    const std::string shown = name == "handgrad" ? io::program_name() : has_option(all, option) ? option : "";
    if (!shown.empty()) text.replace(open, close - open + 1, shown);
  }
  return text;
}

}  // namespace handgrad::cli
