#include "handgrad/io/program_name.h"

#include <utility>

namespace handgrad::io {
namespace {

std::string& name() {
  static std::string name = "handgrad";
  return name;
}

}  // namespace

const std::string& program_name() { return name(); }
void set_program_name(std::string new_name) { name() = std::move(new_name); }

std::string shell_word(const std::string& word) {
  constexpr const char* kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace handgrad::io
