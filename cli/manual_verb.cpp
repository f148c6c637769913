// handgrad manual man, handgrad manual bash: for packagers; not listed by --help.
#include "handgrad/cli/help.h"

namespace handgrad::cli {
Verb manual_verb() {
  return {.name = "manual",
          .purpose = "the manual page and the completion script",
          .group = Group::hidden,
          .verbs = {{.name = "man",
                     .purpose = "the manual page",
                     .run = [] { return print_text(man_page(program())); }},
                    {.name = "bash", .purpose = "completion for bash", .run = [] {
                       return print_text(bash_completion(program()));
                     }}}};
}

}  // namespace handgrad::cli
