// The list of verbs. Each NAME is a function NAME_verb() in NAME_verb.cpp; help lists a group's verbs in this order.
#include "handgrad/cli/verbs.h"

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

}  // namespace handgrad::cli
