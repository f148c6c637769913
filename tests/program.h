// Runs the built program as a user would, and reads what it left.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>

#include "paths.h"

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Outcome {
  int status = -1;
  std::string out, err;

  nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false); }
};

/// `handgrad ARGUMENTS`, as typed in a shell whose current folder is `folder`.
inline Outcome handgrad_in(const std::filesystem::path& folder, const std::string& arguments) {
  const std::string out = (folder / ".out").string(), err = (folder / ".err").string();
  const std::string command = "unset HANDGRAD_CALLED_AS; cd '" + folder.string() +
                              "' && '" HANDGRAD_PROGRAM "' " + arguments + " >'" + out + "' 2>'" + err +
                              "' </dev/null";
  const int result = std::system(command.c_str());
  Outcome outcome{WIFEXITED(result) ? WEXITSTATUS(result) : -1, read_file(out), read_file(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return outcome;
}

inline std::string config_path(const std::string& name) {
  return "'" HANDGRAD_SOURCE_DIR "/configs/" + name + "'";
}
