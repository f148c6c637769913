#include "handgrad/core/autograd.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "handgrad/core/error.h"
#include "handgrad/core/kernels/binary.h"
#include "handgrad/core/parallel.h"

namespace handgrad {
namespace {

constinit thread_local bool gradients_on = true;
constinit thread_local GraphObserver* graph_observer = nullptr;
constinit thread_local std::uint64_t next_order = 0;

bool wants_gradient(const Input& input) { return input.slot != nullptr && input.slot->requires_grad; }

/// to += x, of equal shape and type.
void accumulate(Array& to, const Array& x) {
  dispatch(to.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto add = kernels::binary_function<T>(kernels::Binary::add);
    T* sums = to.mutable_data<T>();
    const T* from = x.data<T>();
    parallel_ranges(to.numel(), grain_for(0.2), [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t n = end - begin;
      add(sums + begin, {sums + begin, n, 1}, {from + begin, n, 1}, 1, n, false);
    });
  });
}

Tensor attach(Array&& y, Ref<Node>&& node) {
  if (graph_observer != nullptr) [[unlikely]]
    graph_observer->recorded(*node, y);
  Ref<GradSlot> slot = GradSlot::make(y.shape(), y.dtype());
  slot->producer = std::move(node);
  return {std::move(y), std::move(slot)};
}

}  // namespace

// ---- GradSlot

GradSlot::GradSlot(const Shape& of_shape, DType of_dtype) : dtype(of_dtype), shape(of_shape) {}
GradSlot::~GradSlot() = default;

Ref<GradSlot> GradSlot::make(const Shape& shape, DType dtype) {
  return Ref<GradSlot>(new (pool_allocate(sizeof(GradSlot))) GradSlot(shape, dtype));
}

void GradSlot::destroy(GradSlot* slot) noexcept {
  slot->~GradSlot();
  pool_release(slot, sizeof(GradSlot));
}

Tensor& Tensor::requires_grad(bool on) {
  if (has_node())
    throw GraphError("requires_grad",
                     "only a leaf can be told to; this tensor is the result of " + std::string(node().op()),
                     {{"tensor", shape()}}, "detach() it first");
  if (!slot_) slot_ = GradSlot::make(shape(), dtype());
  slot_->requires_grad = on;
  if (!on) slot_->grad = Array();
  return *this;
}

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

// Without recursion: a node whose last owner is being destroyed waits in a list, so the depth of the stack does not
// depend on the length of the graph.
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
    if (name.data() == saved.name || name == saved.name) return &saved;  // usually the same literal
  return nullptr;
}

const Array& Node::saved(std::string_view name) const {
  const Saved* saved = find_saved(name);
  if (saved == nullptr)
    throw GraphError(op_,
                     used_ ? "what it saved was released by an earlier backward"
                           : "it saved no array named '" + std::string(name) + "'",
                     {}, used_ ? "backward(RetainGraph::yes) the first time" : "");
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
  throw GraphError(op_, "there is no attribute named '" + std::string(name) + "'");
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

NoGrad::NoGrad() : ScopedValue(gradients_on, false) {}
bool grad_enabled() { return gradients_on; }

GraphObserverGuard::GraphObserverGuard(GraphObserver& observer) : ScopedValue(graph_observer, &observer) {}

// ---- backward

namespace {

/// The lists of a backward pass, one set for each thread, so that their memory is reused.
struct Pass {
  std::vector<GradSlot*> order;  // results of operations, newest first
  std::vector<GradSlot*> stack;
  std::vector<GradSlot*> observed;  // leaves with observers
  std::uint64_t number = 0;
  bool running = false;
};

thread_local Pass pass;

/// Clears the pass at its end, also after an exception: no gradient stays inside the graph.
class PassGuard {
 public:
  explicit PassGuard(Pass& running) : pass_(running) {
    if (pass_.running) throw GraphError("backward", "a backward pass is already running on this thread");
    pass_.running = true;
    ++pass_.number;
  }
  ~PassGuard() {
    for (GradSlot* slot : pass_.order)
      if (!slot->retain_grad) slot->grad = Array();
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

[[noreturn]] void throw_no_gradient(const Node& node) {
  const ScopeGuard scope(node.scope());
  throw GraphError("backward", std::string(node.op()) + " has no gradient: " + node.no_gradient_reason(), {},
                   "detach() its result where the gradient should stop");
}

/// Everything that `root` depends on, newest first. Throws for what cannot be differentiated, before any gradient has
/// changed.
void collect(Pass& run, GradSlot* root) {
  visit(run, root);
  while (!run.stack.empty()) {
    const Node& node = *run.stack.back()->producer;
    run.stack.pop_back();
    if (node.used())
      throw GraphError("backward", std::string("this graph was already used (") + node.op() + ")", {},
                       "backward(RetainGraph::yes) the first time");
    if (node.no_gradient_reason() != nullptr) throw_no_gradient(node);
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

void differentiate(GradSlot& slot, RetainGraph retain_graph) {
  Node& node = *slot.producer;
  if (slot.grad.defined()) {
    const ScopeGuard scope(node.scope());
    if (graph_observer != nullptr) [[unlikely]]
      graph_observer->differentiating(node, slot.grad);
    notify(slot);
    GradSink sink(node);
    node.run(slot.grad, sink);
  }
  if (retain_graph == RetainGraph::no) {
    node.mark_used();
    node.release_saved();
  }
  if (!slot.retain_grad) slot.grad = Array();
}

}  // namespace

void Tensor::backward(const Array& dy, RetainGraph retain_graph) const {
  GradSlot* root = slot();
  if (!needs_grad())
    throw GraphError("backward",
                     "this tensor has no history: no input of it requires a gradient, or it was computed "
                     "under NoGrad",
                     {{"tensor", shape()}});
  if (dy.shape() != shape() || dy.dtype() != dtype())
    throw ShapeError("backward", "the upstream gradient must have the tensor's shape and type",
                     {{"tensor", shape()}, {"dy", dy.shape()}, {"tensor", dtype()}, {"dy", dy.dtype()}});
  Pass& run = pass;
  const PassGuard guard(run);
  collect(run, root);
  for (GradSlot* each : run.order)
    if (each->retain_grad) each->grad = Array();  // a retained gradient is that of the last pass, not a sum
  if (root->grad.defined()) {
    if (!root->grad.is_sole_owner()) root->grad = root->grad.copy();
    accumulate(root->grad, dy);
  } else {
    root->grad = dy;
  }
  for (GradSlot* each : run.order) differentiate(*each, retain_graph);
  for (const GradSlot* leaf : run.observed) notify(*leaf);
}

// ---- input_gradients

namespace {

/// Sets the gradients of a node's inputs aside for a block and restores them at its end.
class HeldGradients {
 public:
  explicit HeldGradients(const Node& node)
      : node_(node), held_(static_cast<std::size_t>(node.input_count())) {
    for (int i = 0; i < node.input_count(); ++i)
      if (GradSlot* input = slot(i)) std::swap(input->grad, held_[static_cast<std::size_t>(i)]);
  }
  // Backwards, since an input that occurs twice has its gradient in the first place.
  ~HeldGradients() {
    for (int i = node_.input_count() - 1; i >= 0; --i)
      if (GradSlot* input = slot(i)) input->grad = std::move(held_[static_cast<std::size_t>(i)]);
  }
  HeldGradients(const HeldGradients&) = delete;
  HeldGradients& operator=(const HeldGradients&) = delete;

  GradSlot* slot(int i) const { return const_cast<GradSlot*>(node_.input(i)); }

 private:
  const Node& node_;
  std::vector<Array> held_;
};

}  // namespace

std::vector<Array> input_gradients(const Node& node, const Array& dy) {
  const HeldGradients held(node);
  GradSink sink(node);
  node.run(dy, sink);
  std::vector<Array> given;
  for (int i = 0; i < node.input_count(); ++i) {
    GradSlot* input = held.slot(i);
    given.push_back(input != nullptr ? std::exchange(input->grad, Array()) : Array());
  }
  return given;
}

}  // namespace handgrad
