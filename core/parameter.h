// Parameter: a trainable tensor with a name.
#pragma once

#include <string>

#include "handgrad/core/tensor.h"

namespace handgrad {

/// A leaf tensor that a module owns, an optimizer moves and a checkpoint stores. It is used like any tensor. It is
/// neither copied nor moved: all users refer to the one object, so tied weights stay tied.
class Parameter : public Tensor {
 public:
  /// `name` is the local one, such as "scale"; the numbers of `start` are copied. Weight decay applies by rank:
  /// matrices decay, vectors do not.
  Parameter(std::string name, const Tensor& start)
      : Tensor(constant(start.array().copy())), name_(std::move(name)) {
    requires_grad();
  }
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const std::string& name() const { return name_; }  ///< the local one, "scale"; its owner knows the path

  /// Whether an optimizer with weight decay shrinks it: by default only if its rank is at least 2.
  bool decay() const { return rank() >= 2; }

  /// A frozen parameter collects no gradient and is not updated.
  void freeze() { requires_grad(false); }
  bool frozen() const { return !needs_grad(); }  ///< whether it is left out of updates

  /// Converts the numbers to another element type; gradients collected so far are dropped.
  void to(DType dtype) {
    if (dtype == this->dtype()) return;
    const bool trainable = needs_grad();
    array_ = array_.to(dtype);
    slot_ = {};
    requires_grad(trainable);
  }

 private:
  std::string name_;
};

}  // namespace handgrad
