#include "handgrad/core/autograd.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "handgrad/core/accumulate.h"
#include "handgrad/core/error.h"

namespace handgrad {
namespace {

constinit thread_local bool gradients_on = true;
constinit thread_local GraphObserver* graph_observer = nullptr;
constinit thread_local std::uint64_t next_order = 0;

bool wants_gradient(const Input& input) { return input.slot != nullptr && input.slot->requires_grad; }

Tensor attach(Array&& y, Ref<Node>&& node) {
  if (graph_observer != nullptr) [[unlikely]]
    graph_observer->recorded(*node, y);
  Ref<GradSlot> slot = GradSlot::make(y.shape(), y.dtype());
  slot->producer = std::move(node);
  return {std::move(y), std::move(slot)};
}

}  // namespace

// ---- Node

Ref<Node> Node::make(const char* op, Backward backward, const char* reason, const ListView<Input>& inputs,
                     const ListView<Save>& saves, const ListView<Attribute>& attributes) {
  std::size_t saved_count = 0;
  for (const Save& save : saves) saved_count += save.wanted;
  const std::size_t bytes = sizeof(Node) + inputs.size() * sizeof(Ref<GradSlot>) +
                            saved_count * sizeof(Saved) + attributes.size() * sizeof(Attribute);
  auto* node = new (pool_allocate(bytes)) Node;
  node->op_ = op;
  node->reason_ = reason;
  node->backward_ = backward;
  node->scope_ = &current_scope();
  node->order_ = ++next_order;
  node->block_bytes_ = static_cast<std::uint32_t>(bytes);
  node->input_count_ = static_cast<int>(inputs.size());
  node->saved_capacity_ = node->saved_count_ = static_cast<std::uint8_t>(saved_count);
  node->attribute_count_ = static_cast<std::uint8_t>(attributes.size());
  auto* edge = node->edges();
  for (const Input& input : inputs) new (edge++) Ref<GradSlot>(wants_gradient(input) ? input.slot : nullptr);
  auto* saved = node->saves();
  for (const Save& save : saves)
    if (save.wanted) new (saved++) Saved{save.name, *save.array, save.array->version()};
  std::uninitialized_copy(attributes.begin(), attributes.end(), node->attributes_begin());
  return Ref<Node>(node);
}

Node::~Node() {
  release_saved();
  std::destroy_n(edges(), input_count_);
}

// A long chain is freed link by link: a node whose last owner is a node that is just being destroyed waits in a
// list, so the depth of the stack does not depend on the length of the graph.
void Node::destroy(Node* node) noexcept {
  constinit static thread_local Node* waiting = nullptr;
  constinit static thread_local bool destroying = false;
  node->next_to_destroy_ = waiting;
  waiting = node;
  if (destroying) return;
  destroying = true;
  while (waiting != nullptr) {
    Node* next = waiting;
    waiting = next->next_to_destroy_;
    const std::size_t bytes = next->block_bytes_;
    next->~Node();
    pool_release(next, bytes);
  }
  destroying = false;
}

void Node::release_saved() {
  std::destroy_n(saves(), saved_count_);
  saved_count_ = 0;
}

const Node::Saved* Node::find_saved(std::string_view name) const {
  for (const Saved& saved : saved_arrays())
    if (name.data() == saved.name || name == saved.name) return &saved;  // most often it is the very literal
  return nullptr;
}

const Array& Node::saved(std::string_view name) const {
  const Saved* saved = find_saved(name);
  if (saved == nullptr)
    throw GraphError(op_,
                     used_ ? "what it saved was released by an earlier backward"
                           : "it saved no array named '" + std::string(name) + "'",
                     {}, used_ ? "backward(KeepGraph::yes) the first time" : "");
  if (saved->version != saved->array.version())
    throw GraphError(
        op_,
        "'" + std::string(name) + "' was changed in place after the forward pass (version " +
            std::to_string(saved->array.version()) + ", saved at " + std::to_string(saved->version) + ")",
        {{std::string(name), saved->array.shape()}}, "change a copy, or change it after backward()");
  return saved->array;
}

const Attribute& Node::attribute(std::string_view name) const {
  for (const Attribute& attribute : attributes())
    if (name == attribute.name) return attribute;
  throw GraphError(op_, "it has no attribute named '" + std::string(name) + "'");
}

// ---- GradSink

GradSink::Target GradSink::into(int i) {
  GradSlot& slot = *node_.edges()[i];
  if (!slot.grad.defined()) {
    slot.grad = Array(slot.shape, slot.dtype);
    return {slot.grad, false};
  }
  if (!slot.grad.is_sole_owner()) slot.grad = slot.grad.copy();
  return {slot.grad, true};
}

void GradSink::move(int i, Array gradient) {
  GradSlot& slot = *node_.edges()[i];
  if (gradient.shape() != slot.shape || gradient.dtype() != slot.dtype)
    throw GraphError(node_.op(),
                     "its backward gave input " + std::to_string(i) + " a gradient of another shape or type",
                     {{"input", slot.shape}, {"gradient", gradient.shape()}});
  if (!slot.grad.defined()) {
    slot.grad = std::move(gradient);
    return;
  }
  accumulate(into(i).array, gradient);
}

// ---- record

bool will_record(const ListView<Input>& inputs) {
  if (!gradients_on) return false;
  for (const Input& input : inputs)
    if (wants_gradient(input)) return true;
  return false;
}

Tensor record(const char* op, Array y, const ListView<Input>& inputs, const ListView<Save>& saves,
              Backward backward, const ListView<Attribute>& attributes) {
  if (backward == nullptr) [[unlikely]]
    throw GraphError(op, "record() must be given a backward function", {},
                     "no_gradient() for what has no derivative");
  if (!will_record(inputs)) return {std::move(y), Ref<GradSlot>()};
  return attach(std::move(y), Node::make(op, backward, nullptr, inputs, saves, attributes));
}

Tensor no_gradient(const char* op, const char* reason, Array y, const ListView<Input>& inputs) {
  if (!will_record(inputs)) return {std::move(y), Ref<GradSlot>()};
  return attach(std::move(y), Node::make(op, nullptr, reason, inputs, {}, {}));
}

NoGrad::NoGrad() : before_(gradients_on) { gradients_on = false; }
NoGrad::~NoGrad() { gradients_on = before_; }
bool grad_enabled() { return gradients_on; }

GraphObserverGuard::GraphObserverGuard(GraphObserver& observer) : before_(graph_observer) {
  graph_observer = &observer;
}
GraphObserverGuard::~GraphObserverGuard() { graph_observer = before_; }

// ---- backward

namespace {

/// The lists of a backward pass. One set for each thread, so that their memory is reused.
struct Pass {
  std::vector<GradSlot*> order;  // results of operations, newest first
  std::vector<GradSlot*> stack;
  std::vector<GradSlot*> observed;  // leaves somebody looks at
  std::uint64_t number = 0;
  bool running = false;
};

thread_local Pass pass;

/// Leaves the thread ready for another pass, also after an exception: no gradient stays inside the graph.
class PassGuard {
 public:
  explicit PassGuard(Pass& running) : pass_(running) {
    if (pass_.running) throw GraphError("backward", "a backward pass is already running on this thread");
    pass_.running = true;
    ++pass_.number;
  }
  ~PassGuard() {
    for (GradSlot* slot : pass_.order)
      if (!slot->keep) slot->grad = Array();
    pass_.order.clear();
    pass_.stack.clear();
    pass_.observed.clear();
    pass_.running = false;
  }
  PassGuard(const PassGuard&) = delete;
  PassGuard& operator=(const PassGuard&) = delete;

 private:
  Pass& pass_;
};

void visit(Pass& run, GradSlot* slot) {
  if (slot->mark == run.number) return;
  slot->mark = run.number;
  if (slot->producer) {
    run.order.push_back(slot);
    run.stack.push_back(slot);
  } else if (slot->observers) {
    run.observed.push_back(slot);
  }
}

[[noreturn]] void refuse_no_gradient(const Node& node) {
  const ScopeGuard scope(node.scope());
  throw GraphError("backward", std::string(node.op()) + " has no gradient: " + node.no_gradient_reason(), {},
                   "detach() its result where the gradient shall stop");
}

/// Everything that `root` depends on, newest first. What cannot be differentiated is refused here, before any gradient
/// has been touched.
void collect(Pass& run, GradSlot* root) {
  visit(run, root);
  while (!run.stack.empty()) {
    const Node& node = *run.stack.back()->producer;
    run.stack.pop_back();
    if (node.used())
      throw GraphError("backward", std::string("this graph was already used (") + node.op() + ")", {},
                       "backward(KeepGraph::yes) the first time");
    if (node.no_gradient_reason() != nullptr) refuse_no_gradient(node);
    for (int i = 0; i < node.input_count(); ++i)
      if (const GradSlot* input = node.input(i)) visit(run, const_cast<GradSlot*>(input));
  }
  const auto newest_first = [](const GradSlot* a, const GradSlot* b) {
    return a->producer->order() > b->producer->order();
  };
  if (!std::is_sorted(run.order.begin(), run.order.end(), newest_first))
    std::sort(run.order.begin(), run.order.end(), newest_first);
}

void notify(const GradSlot& slot) {
  if (!slot.observers || !slot.grad.defined()) return;
  for (const GradObserver& observer : *slot.observers) observer(slot.grad);
}

void differentiate(GradSlot& slot, KeepGraph keep) {
  Node& node = *slot.producer;
  if (slot.grad.defined()) {
    const ScopeGuard scope(node.scope());
    if (graph_observer != nullptr) [[unlikely]]
      graph_observer->differentiating(node, slot.grad);
    notify(slot);
    GradSink sink(node);
    node.run(slot.grad, sink);
  }
  if (keep == KeepGraph::no) {
    node.mark_used();
    node.release_saved();
  }
  if (!slot.keep) slot.grad = Array();
}

}  // namespace

void run_backward(const Tensor& root, const Array& dy, KeepGraph keep) {
  GradSlot* slot = root.slot();
  if (!root.needs_grad())
    throw GraphError("backward",
                     "this tensor has no history: no input of it requires a gradient, or it was computed "
                     "under NoGrad",
                     {{"tensor", root.shape()}});
  if (dy.shape() != root.shape() || dy.dtype() != root.dtype())
    throw ShapeError(
        "backward", "the upstream gradient must have the tensor's shape and type",
        {{"tensor", root.shape()}, {"dy", dy.shape()}, {"tensor", root.dtype()}, {"dy", dy.dtype()}});
  Pass& run = pass;
  const PassGuard guard(run);
  collect(run, slot);
  for (GradSlot* each : run.order)
    if (each->keep) each->grad = Array();  // a kept gradient is that of the last pass, not a sum
  if (slot->grad.defined()) {
    if (!slot->grad.is_sole_owner()) slot->grad = slot->grad.copy();
    accumulate(slot->grad, dy);
  } else {
    slot->grad = dy;
  }
  for (GradSlot* each : run.order) differentiate(*each, keep);
  for (const GradSlot* leaf : run.observed) notify(*leaf);
}

}  // namespace handgrad
