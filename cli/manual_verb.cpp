// handgrad manual man, handgrad manual bash: for packagers; not listed by --help.
#include <fmt/format.h>

#include "handgrad/cli/help.h"

namespace handgrad::cli {
namespace {

int print(const std::string& text) {
  fmt::print("{}", text);
  return 0;
}

}  // namespace

Verb manual_verb() {
  return {.name = "manual",
          .purpose = "the manual page and the completion script",
          .group = Group::hidden,
          .verbs = {{.name = "man",
                     .purpose = "the manual page",
                     .group = Group::hidden,
                     .run = [] { return print(man_page(program())); }},
                    {.name = "bash", .purpose = "completion for bash", .group = Group::hidden, .run = [] {
                       return print(bash_completion(program()));
                     }}}};
}

}  // namespace handgrad::cli
