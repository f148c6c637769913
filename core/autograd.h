// Reverse-mode differentiation. An operation computes its numbers, then calls record() with what its backward
// needs; backward() walks what was recorded, newest first. Output slot -> Node -> input slots: nothing points
// forward, so there are no cycles, and dropping the loss frees the graph.
#pragma once

#include <initializer_list>
#include <iterator>
#include <string_view>
#include <vector>

#include "handgrad/core/scope.h"
#include "handgrad/core/tensor.h"

namespace handgrad {

class GradSink;

/// A list of arguments, read only while a function runs. Passed by reference: see kernels/binary.h.
template <class T>
class ListView {
 public:
  /// @{ Of items that outlive the list: none is copied.
  ListView(std::initializer_list<T> items) : data_(std::data(items)), size_(items.size()) {}
  ListView(const std::vector<T>& items) : data_(items.data()), size_(items.size()) {}  // NOLINT
  ListView(const T* data, std::size_t size) : data_(data), size_(size) {}
  /// @}
  ListView() = default;

  /// @{ For a range-based for loop.
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::size_t size() const { return size_; }
  /// @}

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// An input of an operation: only its gradient slot matters to the graph.
struct Input {
  /// Not explicit: operations list plain tensors.
  Input(const Tensor& tensor) : slot(tensor.slot()) {}  // NOLINT(google-explicit-constructor)
  /// The tensor's; nullptr when it never wanted a gradient.
  GradSlot* slot;
};

/// An array that backward will read, under its name in the formula. With `when` false it is not kept: an
/// operation names what it would need, and keeps only what the wanted gradients need.
struct Save {
  /// `numbers` must live until record() returns.
  Save(const char* as, const Array& numbers, bool when = true) : name(as), array(&numbers), wanted(when) {}
  const char* name;    ///< a string literal
  const Array* array;  ///< what is kept
  bool wanted;         ///< whether it is kept
};

/// A number or a short list of integers that backward will read: eps, or the dimensions of a sum.
struct Attribute {
  /// @{ `as` must be a string literal: the name is not copied.
  Attribute(const char* as, double value) : name(as), number(value) {}
  Attribute(const char* as, const Shape& values) : name(as), list(values) {}
  /// @}
  const char* name;   ///< a string literal
  double number = 0;  ///< 0 for a list
  Shape list;         ///< empty for a number
};

/// Computes the gradients of a node's inputs from `dy` = d loss / d output. A plain function: it captures nothing,
/// and reads only what the node has saved.
using Backward = void (*)(const Node& node, const Array& dy, GradSink& sink);

/// A recorded operation.
class Node {
 public:
  /// A saved array, and its version at that time: a later write is detected.
  struct Saved {
    const char* name;       ///< as in Save
    Array array;            ///< shares its numbers with the tensor it came from
    std::uint32_t version;  ///< Array::version() when it was saved
  };

  const char* op() const { return op_; }          ///< as it was given to record(): "layer_norm"
  const Scope& scope() const { return *scope_; }  ///< the module that was running
  std::uint64_t order() const { return order_; }  ///< creation number; inputs have smaller ones
  /// Why there is no backward; nullptr when there is one.
  const char* no_gradient_reason() const { return reason_; }

  int input_count() const { return input_count_; }  ///< wanted or not
  /// The slot of input `i`; nullptr when it needs no gradient.
  const GradSlot* input(int i) const { return edges()[i].get(); }

  /// In the order in which the operation gave them.
  ListView<Saved> saved_arrays() const { return {saves(), static_cast<std::size_t>(saved_count_)}; }
  /// Whether saved(name) would find one.
  bool has_saved(std::string_view name) const { return find_saved(name) != nullptr; }
  /// The array saved under `name`. GraphError when it was released by an earlier backward, when it was changed in
  /// place since, or when there is none of that name.
  const Array& saved(std::string_view name) const;

  /// In the order in which the operation gave them.
  ListView<Attribute> attributes() const {
    return {attributes_begin(), static_cast<std::size_t>(attribute_count_)};
  }
  /// @{ The attribute of that name; GraphError when there is none.
  double number(std::string_view name) const { return attribute(name).number; }
  const Shape& list(std::string_view name) const { return attribute(name).list; }
  /// @}

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// For the engine.
  static Ref<Node> make(const char* op, Backward backward, const char* reason, const ListView<Input>& inputs,
                        const ListView<Save>& saves, const ListView<Attribute>& attributes);
  static void destroy(Node* node) noexcept;  ///< with all that only it refers to, without recursion
  /// Calls the backward function.
  void run(const Array& dy, GradSink& sink) const { backward_(*this, dy, sink); }
  void release_saved();                ///< when its backward is done
  bool used() const { return used_; }  ///< whether a backward went through it
  void mark_used() { used_ = true; }   ///< a second backward then throws
  std::uint32_t refs = 0;              ///< for Ref

 private:
  Node() = default;
  ~Node();

  // Edges, saved arrays and attributes follow the node in the same block of memory: an addition takes 128 bytes.
  Ref<GradSlot>* edges() const { return reinterpret_cast<Ref<GradSlot>*>(const_cast<Node*>(this) + 1); }
  Saved* saves() const { return reinterpret_cast<Saved*>(edges() + input_count_); }
  Attribute* attributes_begin() const { return reinterpret_cast<Attribute*>(saves() + saved_capacity_); }
  const Saved* find_saved(std::string_view name) const;
  const Attribute& attribute(std::string_view name) const;

  const char* op_ = nullptr;
  const char* reason_ = nullptr;
  Backward backward_ = nullptr;
  const Scope* scope_ = nullptr;
  std::uint64_t order_ = 0;
  Node* next_to_destroy_ = nullptr;
  std::uint32_t block_bytes_ = 0;
  int input_count_ = 0;
  std::uint8_t saved_count_ = 0, saved_capacity_ = 0, attribute_count_ = 0;
  bool used_ = false;

  friend class GradSink;
};

/// Where a backward function puts the gradients of its node's inputs.
class GradSink {
 public:
  /// For the inputs of this node, in the order of record().
  explicit GradSink(const Node& node) : node_(node) {}

  /// Whether the gradient of input `i` is needed.
  bool wants(int i) const { return node_.edges()[i].get() != nullptr; }

  /// A place for a gradient.
  struct Target {
    Array& array;  ///< of the input's shape and type
    bool add;      ///< true: add to the numbers there; false: they are not initialized, write
  };
  /// The place to compute the gradient into: weights' gradients add up in place, without a second array. Two inputs
  /// may be the same tensor, so finish with one target before asking for the next.
  Target into(int i);
  /// Hands over a finished gradient of the input's shape. It may share numbers with `dy` or another gradient.
  void move(int i, Array gradient);

 private:
  const Node& node_;
};

/// The result of an operation. There is no other way to make one, so an operation cannot silently lose its
/// gradient. Keeps history only if gradients are on and an input needs one. GraphError when `backward`
/// is nullptr.
Tensor record(const char* op, Array y, const ListView<Input>& inputs, const ListView<Save>& saves,
              Backward backward, const ListView<Attribute>& attributes = {});

/// The result of an operation that has no derivative. The reason appears in the error of a backward through it.
Tensor no_gradient(const char* op, const char* reason, Array y, const ListView<Input>& inputs);

/// Whether record() would keep history for these inputs. If not, work that only backward needs can be skipped.
bool will_record(const ListView<Input>& inputs);

/// Runs one operation's backward in isolation, for observers: what the backward of `node` gives each of its inputs for
/// `dy`, undefined where no gradient is wanted. The gradients that the inputs hold do not change. An input that occurs
/// twice gets the sum in its first place. Called from GraphObserver::differentiating; GraphError when what the node
/// saved was released.
std::vector<Array> input_gradients(const Node& node, const Array& dy);

/// No history is kept on this thread while it lives: for evaluation and generation.
class NoGrad : ScopedValue<bool> {
 public:
  NoGrad();
};
bool grad_enabled();  ///< whether the calling thread keeps history: no NoGrad lives

/// Sees every operation of the calling thread when it is recorded, and every gradient just before its operation's
/// backward runs. Must change nothing. Costs one comparison when there is none.
class GraphObserver {
 public:
  virtual ~GraphObserver() = default;
  virtual void recorded(const Node& /*node*/, const Array& /*y*/) {}  ///< `y` is the result of `node`
  /// `dy` is complete: every use of the result has added its part.
  virtual void differentiating(const Node& /*node*/, const Array& /*dy*/) {}
};

/// Sets the calling thread's observer for a block.
class GraphObserverGuard : ScopedValue<GraphObserver*> {
 public:
  explicit GraphObserverGuard(GraphObserver& observer);  ///< must outlive the guard
};

}  // namespace handgrad
