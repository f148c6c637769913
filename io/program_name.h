// The program's name in suggested commands, so that they can be copied and run.
#pragma once

#include <string>

namespace handgrad::io {

/// "handgrad" until it is set.
const std::string& program_name();
/// "./dev", or the path of a program of the user's own.
void set_program_name(std::string name);

/// `word` as a shell takes it for one word: quoted where it must be.
std::string shell_word(const std::string& word);

}  // namespace handgrad::io
