// What is known of the terminal that output goes to.
#pragma once

#include <cstddef>
#include <cstdio>

namespace handgrad::train::cli {

/// Whether a person looks at this stream; a line may then be rewritten in place.
bool is_terminal(std::FILE* stream);

/// Columns of the terminal behind stderr, 100 when there is none or it does not say.
std::size_t terminal_columns();

/// The character that Enter sends, from standard input; false at its end.
bool wait_for_enter();

}  // namespace handgrad::train::cli
