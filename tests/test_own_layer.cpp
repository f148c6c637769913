// docs/own-layer.md and examples/my_norm: the page shows the files as they are.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "paths.h"

namespace {

std::string text_of(const std::string& file) {
  std::ifstream stream(HANDGRAD_SOURCE_DIR "/" + file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE("docs/own-layer.md shows every file of examples/my_norm, letter by letter") {
  const std::string page = text_of("docs/own-layer.md");
  for (const char* name : {"CMakeLists.txt", "absolute.h", "gradients.cpp", "main.cpp", "my_norm.h"}) {
    const std::string text = text_of(std::string("examples/my_norm/") + name);
    CHECK(text.size() > 100);
    CHECK_MESSAGE(page.find("\n" + text + "```\n") != std::string::npos, name);
  }
}

TEST_CASE("the README of examples/my_norm gives no command that docs/own-layer.md does not give") {
  const std::string page = text_of("docs/own-layer.md");
  std::ifstream readme(HANDGRAD_SOURCE_DIR "/examples/my_norm/README.md");
  int commands = 0;
  bool inside = false;
  for (std::string line; std::getline(readme, line);) {
    if (line.starts_with("```")) {
      inside = line == "```sh";
    } else if (inside) {
      CHECK_MESSAGE(page.find("\n" + line + "\n") != std::string::npos, line);
      ++commands;
    }
  }
  CHECK(commands > 5);
}
