#include "handgrad/view/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "handgrad/core/error.h"
#include "handgrad/io/files.h"
#include "handgrad/view/text.h"

extern char** environ;

namespace handgrad::view {
namespace {

constexpr std::size_t kMostBoxes = 150;  // in a readable drawing

/// A text in quotes, as dot reads it.
std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '\n') {
      all += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') all += '\\';
    all += c;
  }
  return all + '"';
}

std::string gradient_text(double norm) {
  return norm < 0 ? "no gradient" : fmt::format("|gradient| {:.4g}", norm);
}

/// The module that stands for `path`: `path` itself, or the outermost one around it that is deeper than `depth`.
std::string closed_module(const std::string& path, std::int64_t depth) {
  std::size_t end = 0;
  for (std::int64_t i = 0; i <= depth; ++i) {
    end = path.find('.', end);
    if (end == std::string::npos) return i < depth ? "" : path;
    if (i < depth) ++end;
  }
  return path.substr(0, end);
}

/// What is drawn in one module.
struct Cluster {
  std::vector<std::string> lines;
  std::vector<std::string> inner;  // paths, in the order of their first use
};

/// Builds the text.
class Drawer {
 public:
  Drawer(const RecordedGraph& graph, const std::vector<nn::NamedParameter>& parameters,
         std::optional<std::int64_t> depth)
      : graph_(graph), parameters_(parameters), depth_(depth) {
    clusters_[""];
    place_operations();
    place_parameters();
    add_operations();
    add_parameters();
    add_closed();
    add_edges();
  }

  std::size_t boxes() const { return boxes_; }
  std::size_t closed_modules() const { return closed_.size(); }
  std::string text(const std::string& title) const {
    return "digraph " + quoted(title) +
           " {\n"
           "  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=10];\n"
           "  graph [fontname=\"sans-serif\", fontsize=11, color=\"#999999\", labeljust=l];\n" +
           cluster_text("", 1) + edges_ + "}\n";
  }

 private:
  /// A module that is drawn as one box.
  struct Closed {
    std::size_t operations = 0, parameters = 0;
    const RecordedOperation* last = nullptr;
  };

  /// The closed module that contains `path`; empty when it is drawn open.
  std::string closed(const std::string& path) const { return depth_ ? closed_module(path, *depth_) : ""; }

  void place_operations() {
    for (std::size_t i = 0; i < graph_.operations().size(); ++i) {
      const RecordedOperation& operation = graph_.operations()[i];
      const std::string module = closed(operation.module);
      if (!module.empty()) {
        Closed& box = closed_[module];
        ++box.operations;
        box.last = &operation;
      }
      names_[operation.order] = module.empty() ? fmt::format("op{}", i + 1) : quoted("module " + module);
    }
  }

  void place_parameters() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const std::string module = closed(outer(parameters_[i].name));
      if (!module.empty()) ++closed_[module].parameters;
      leaves_[parameters_[i].parameter->slot()] =
          module.empty() ? fmt::format("p{}", i + 1) : quoted("module " + module);
    }
  }

  void add_operations() {
    for (const RecordedOperation& operation : graph_.operations()) {
      if (!closed(operation.module).empty()) continue;
      std::string label = fmt::format("{} {}", operation.op, operation.shape.text());
      for (const RecordedSave& save : operation.saved)
        label += fmt::format("\nsaves {} {}", save.name, save.shape.text());
      add_box(operation.module, names_.at(operation.order),
              label + "\n" + gradient_text(operation.gradient_norm), "");
    }
  }

  void add_parameters() {
    for (const nn::NamedParameter& named : parameters_) {
      if (!closed(outer(named.name)).empty()) continue;
      const Parameter& parameter = *named.parameter;
      add_box(outer(named.name), leaves_.at(parameter.slot()),
              fmt::format("{}\n{}\n{}", named.name, parameter.shape().text(),
                          gradient_text(parameter.has_grad() ? norm_of(parameter.grad()) : -1)),
              ", style=filled, fillcolor=\"#e8eef7\"");
    }
  }

  void add_closed() {
    for (const auto& [module, box] : closed_) {
      std::string label = module;
      if (box.last != nullptr) label += " " + box.last->shape.text();
      label += "\n" + plural(box.operations, "operation", "operations");
      if (box.parameters > 0) label += ", " + plural(box.parameters, "parameter", "parameters");
      if (box.last != nullptr) label += "\n" + gradient_text(box.last->gradient_norm);
      add_box(outer(module), quoted("module " + module), label,
              ", style=\"rounded,filled\", fillcolor=\"#f2f2f2\"");
    }
  }

  void add_box(const std::string& module, const std::string& name, const std::string& label,
               const std::string& more) {
    cluster(module).lines.push_back(fmt::format("{} [label={}{}];\n", name, quoted(label), more));
    ++boxes_;
  }

  /// Created on first use, inside the cluster around it.
  Cluster& cluster(const std::string& path) {
    if (const auto found = clusters_.find(path); found != clusters_.end()) return found->second;
    cluster(outer(path)).inner.push_back(path);
    return clusters_[path];
  }

  void add_edges() {
    std::set<std::pair<std::string, std::string>> drawn;
    const auto add = [&](const std::string& from, const std::string& to) {
      if (from != to && drawn.insert({from, to}).second) edges_ += fmt::format("  {} -> {};\n", from, to);
    };
    for (const RecordedOperation& operation : graph_.operations()) {
      const std::string& to = names_.at(operation.order);
      for (const RecordedInput& input : operation.inputs)
        if (const auto leaf = leaves_.find(input.leaf); input.leaf != nullptr && leaf != leaves_.end())
          add(leaf->second, to);
      for (const RecordedInput& input : operation.inputs)
        if (const auto from = names_.find(input.order); from != names_.end()) add(from->second, to);
    }
  }

  std::string cluster_text(const std::string& path, std::size_t level) const {
    const Cluster& cluster = clusters_.at(path);
    const std::string indent(2 * level, ' ');
    std::string text;
    for (const std::string& line : cluster.lines) text += indent + line;
    for (const std::string& inner : cluster.inner)
      text += indent + "subgraph " + quoted("cluster " + inner) + " {\n" + indent +
              "  label=" + quoted(inner) + ";\n" + cluster_text(inner, level + 1) + indent + "}\n";
    return text;
  }

  const RecordedGraph& graph_;
  const std::vector<nn::NamedParameter>& parameters_;
  std::optional<std::int64_t> depth_;
  std::map<std::string, Cluster> clusters_;
  std::map<std::string, Closed> closed_;
  std::map<std::uint64_t, std::string> names_;     // of operations' boxes, by creation number
  std::map<const GradSlot*, std::string> leaves_;  // of parameters' boxes
  std::string edges_;
  std::size_t boxes_ = 0;
};

std::int64_t depth_of(const std::string& path) {
  return path.empty() ? 0 : 1 + std::count(path.begin(), path.end(), '.');
}

/// How deep `graph` can be drawn without more than kMostBoxes operations and closed modules; none: all of it.
std::optional<std::int64_t> readable_depth(const RecordedGraph& graph) {
  if (graph.operations().size() <= kMostBoxes) return std::nullopt;
  std::int64_t deepest = 0;
  for (const auto& operation : graph.operations()) deepest = std::max(deepest, depth_of(operation.module));
  for (std::int64_t depth = deepest; depth-- > 1;) {
    std::size_t boxes = 0;
    std::set<std::string> modules;
    for (const auto& operation : graph.operations()) {
      const std::string module = closed_module(operation.module, depth);
      if (module.empty() || modules.insert(module).second) ++boxes;
    }
    if (boxes <= kMostBoxes) return depth;
  }
  return 0;
}

/// Runs `dot -Tsvg` with `text` as its input.
void run_dot(const std::string& text, const std::filesystem::path& path) {
  const int input = ::memfd_create("graph", MFD_CLOEXEC);
  if (input < 0 || ::write(input, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(input, 0, SEEK_SET) != 0) {
    const int error = errno;
    if (input >= 0) ::close(input);
    io::throw_file(path, "cannot be drawn", error);
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  std::string words[] = {"dot", "-Tsvg", "-o" + path.string()};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, "dot", &actions, nullptr, argv, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(input);
  if (error != 0)
    throw Error(
        "trace",
        fmt::format("`graph` '{}' needs dot, Graphviz's program: {}", path.string(), std::strerror(error)),
        {}, "install graphviz, or write the text: `graph` FILE.dot");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error("trace", fmt::format("`graph` '{}': Graphviz's dot has failed", path.string()), {},
                "write the text: `graph` FILE.dot");
}

}  // namespace

GraphDrawing draw(const RecordedGraph& graph, const std::vector<nn::NamedParameter>& parameters,
                  const std::string& title, std::optional<std::int64_t> depth) {
  if (!depth) depth = readable_depth(graph);
  const Drawer drawer(graph, parameters, depth);
  return {drawer.text(title), depth, drawer.boxes(), drawer.closed_modules()};
}

void write_graph(const GraphDrawing& drawing, const std::filesystem::path& path) {
  if (path.extension() == ".svg") return run_dot(drawing.dot, path);
  io::DurableFile file(path);
  file.write(drawing.dot);
  file.finish();
}

}  // namespace handgrad::view
