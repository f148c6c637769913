// One operation's share of a backward pass, by itself: for those who look on.
#pragma once

#include <vector>

#include "handgrad/core/autograd.h"

namespace handgrad {

/// What the backward of `node` gives to each of its inputs for `dy`: an array for each input, undefined where none is
/// wanted. Nothing is added to the gradients that the inputs hold: those stay as they are. An input that comes twice gets
/// the sum in its first place. To be called from GraphObserver::differentiating; GraphError when what the node saved was
/// released.
std::vector<Array> input_gradients(const Node& node, const Array& dy);

}  // namespace handgrad
