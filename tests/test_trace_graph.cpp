// trace --graph: the graph of a pass as text for Graphviz.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <regex>
#include <set>
#include <sstream>

#include "handgrad/core/ops.h"
#include "handgrad/io/safetensors.h"
#include "handgrad/view/trace.h"
#include "program.h"
#include "temporary_folder.h"

using namespace handgrad;

namespace {

/// The boxes and edges of a drawing, read line by line.
struct Read {
  std::set<std::string> boxes;
  std::vector<std::pair<std::string, std::string>> edges;
  std::ptrdiff_t open = 0, clusters = 0;  // braces, and modules that are drawn open
};

Read read(const std::string& dot) {
  static const std::regex box(R"re(\s*("module [^"]+"|\w+) \[label="(?:[^"\\]|\\.)*".*\];)re"),
      edge(R"re(\s*("module [^"]+"|\w+) -> ("module [^"]+"|\w+);)re");
  Read all;
  std::istringstream lines(dot);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    all.open += line.ends_with('{') ? 1 : line.ends_with('}') ? -1 : 0;
    CHECK(all.open >= 0);
    all.clusters += line.find("subgraph \"cluster ") != std::string::npos;
    if (std::regex_match(line, match, box))
      CHECK(all.boxes.insert(match[1]).second);
    else if (std::regex_match(line, match, edge))
      all.edges.emplace_back(match[1], match[2]);
  }
  CHECK(all.open == 0);
  for (const auto& ends : all.edges) {
    CHECK_MESSAGE(all.boxes.contains(ends.first), ends.first);
    CHECK_MESSAGE(all.boxes.contains(ends.second), ends.second);
  }
  return all;
}

bool has_dot() { return std::system("dot -V >/dev/null 2>&1") == 0; }

/// y = x * gain, in a module with an odd name.
class Odd final : public nn::Layer {
 public:
  Tensor forward(const Tensor& x) override { return x * gain; }
  Parameter& gain = param("ga\"in\\", Tensor::ones({2}));
};

}  // namespace

TEST_CASE(
    "graph: a box for each operation and each parameter of the toy, edges between them, in their modules") {
  const TemporaryFolder folder;
  const Outcome outcome = handgrad_in(folder.path(), "trace " + config_path("toy.json") + " --graph toy.dot");
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  CHECK(outcome.out.find("\ngraph of 16 operations and 18 parameters in toy.dot\n") != std::string::npos);
  const std::string dot = read_file(folder.path() / "toy.dot");
  const Read graph = read(dot);
  CHECK(graph.boxes.size() == 16 + 18);
  // Every operation but the loss is used once; the input of a block twice; every parameter is used once.
  CHECK(graph.edges.size() == 15 + 2 + 18);
  for (const auto& box : graph.boxes)
    CHECK_MESSAGE((box == "op16" || std::any_of(graph.edges.begin(), graph.edges.end(),
                                                [&](const auto& edge) { return edge.first == box; })),
                  box);
  CHECK(dot.find("label=\"layer_norm [16, 16, 32]\\nsaves x [16, 16, 32]\\nsaves scale [32]\\n") !=
        std::string::npos);
  CHECK(dot.find("label=\"cross_entropy []\\n") != std::string::npos);
  CHECK(dot.find("\\n|gradient| 1\"") != std::string::npos);  // d loss / d loss
  CHECK(dot.find("rstd") == std::string::npos);

  // The norms are those of the gradients that trace writes.
  const Outcome both = handgrad_in(
      folder.path(), "trace " + config_path("toy.json") + " --out toy.st --graph toy.dot --overwrite");
  CHECK(both.out.find(" tensors in toy.st\n") != std::string::npos);
  CHECK(read_file(folder.path() / "toy.dot") == dot);
  const io::SafetensorsReader numbers(folder.path() / "toy.st");
  double sum = 0;
  for (const double g : numbers.read("grad.final_norm.scale").values()) sum += g * g;
  char text[64];
  std::snprintf(text, sizeof text, "final_norm.scale\\n[32]\\n|gradient| %.4g\"", std::sqrt(sum));
  CHECK_MESSAGE(dot.find(text) != std::string::npos, text);
}

TEST_CASE("graph: a module that is deeper than --depth is one box, in a large graph unasked") {
  const TemporaryFolder folder;
  const std::string toy = "trace " + config_path("toy.json") + " --overwrite --graph a.dot ";
  const auto boxes = [&](const std::string& arguments) {
    const Outcome outcome = handgrad_in(folder.path(), toy + arguments);
    CHECK_MESSAGE(outcome.status == 0, outcome.err);
    return read(read_file(folder.path() / "a.dot"));
  };
  const Read closed = boxes("--depth 0");
  CHECK(closed.boxes == std::set<std::string>{"op3", "op16", "\"module tok_emb\"", "\"module pos_emb\"",
                                              "\"module trf_blocks\"", "\"module final_norm\"",
                                              "\"module out_head\""});
  CHECK(closed.edges.size() == 6);
  CHECK(closed.clusters == 0);
  CHECK(
      read_file(folder.path() / "a.dot")
          .find("\"module trf_blocks\" [label=\"trf_blocks [16, 16, 32]\\n10 operations, 13 parameters\\n") !=
      std::string::npos);
  const Read blocks = boxes("--depth 2");
  CHECK(blocks.boxes.contains("\"module trf_blocks.0.att\""));
  CHECK(blocks.clusters > 2);
  CHECK(boxes("--depth 9").boxes.size() == 16 + 18);
  CHECK(handgrad_in(folder.path(), toy + "--depth 9").out.find("one box") == std::string::npos);

  const Outcome deep = handgrad_in(folder.path(), toy + "--set model.n_layers=20");
  CHECK(deep.out.find("graph of 206 operations and 265 parameters in a.dot\n") != std::string::npos);
  CHECK(deep.out.find(": a module deeper than 2 is one box; --depth chooses\n") != std::string::npos);
  read(read_file(folder.path() / "a.dot"));
}

TEST_CASE("graph: odd names are quoted, and what no backward reached says so") {
  Odd layer;
  view::RecordedGraph recorded("", view::Record::shapes);
  {
    const GraphObserverGuard guard(recorded);
    const Tensor y = sum(layer(Tensor::of({1, 2})));
    (void)(layer.gain * 2);  // unused
    y.backward();
  }
  const view::GraphDrawing drawing =
      view::draw(recorded, layer.named_parameters(), "a \"b\" \\", std::nullopt);
  CHECK(drawing.dot.starts_with("digraph \"a \\\"b\\\" \\\\\" {\n"));
  CHECK(drawing.dot.find("[label=\"ga\\\"in\\\\\\n[2]\\n|gradient| 2.236\"") != std::string::npos);
  CHECK(drawing.dot.find("\\nno gradient\"") != std::string::npos);
  CHECK(drawing.boxes == recorded.operations().size() + 1);
  CHECK(!drawing.depth);
  const TemporaryFolder folder;
  view::write_graph(drawing, folder.path() / "odd.dot");
  CHECK(read_file(folder.path() / "odd.dot") == drawing.dot);
  read(drawing.dot);
  if (!has_dot()) {
    MESSAGE("skipped: Graphviz's dot is not installed");
    return;
  }
  view::write_graph(drawing, folder.path() / "odd.svg");
  CHECK(read_file(folder.path() / "odd.svg").find("<svg") != std::string::npos);
}

TEST_CASE("graph: Graphviz reads the toy's, whole and closed") {
  const TemporaryFolder folder;
  const std::string toy = "trace " + config_path("toy.json") + " --graph ";
  const Outcome outcome = handgrad_in(folder.path(), toy + "toy.svg");
  if (!has_dot()) {
    CHECK(outcome.status == 1);
    CHECK(outcome.err ==
          "trace: --graph 'toy.svg' needs dot, Graphviz's program: No such file or directory\n"
          "  try: install graphviz, or write the text: --graph FILE.dot\n");
    MESSAGE("skipped: Graphviz's dot is not installed");
    return;
  }
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
  const std::string svg = read_file(folder.path() / "toy.svg");
  const auto count = [&](const std::string& text) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = svg.find(text, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  CHECK(count("class=\"node\"") == 16 + 18);
  CHECK(count("class=\"edge\"") == 15 + 2 + 18);
  CHECK(handgrad_in(folder.path(), toy + "closed.svg --depth 1").status == 0);
}
