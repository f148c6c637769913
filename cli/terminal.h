// What is known of the terminal that output goes to.
#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>

namespace handgrad::cli {

/// Whether a person looks at this stream; a line may then be rewritten in place.
bool is_terminal(std::FILE* stream);

/// Columns of the terminal behind stdout or stderr; without one what the environment says in COLUMNS, else 100.
std::size_t terminal_columns();
/// The same, but at most 100: running text is not made wider than that.
std::size_t text_columns();

/// Waits for Enter on standard input; false at its end, or when `stop` says so meanwhile.
bool wait_for_enter(const std::function<bool()>& stop);

}  // namespace handgrad::cli
