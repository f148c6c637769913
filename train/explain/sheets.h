// What the table of operations calls.
#pragma once

#include "handgrad/train/explain/operation.h"

namespace handgrad::train::explain {

/// @{ The operation of that name; ValueError for a wrong request.
Explanation explain_layer_norm(const Request& request);
Explanation explain_rms_norm(const Request& request);
Explanation explain_linear(const Request& request);
Explanation explain_attention(const Request& request);
Explanation explain_softmax(const Request& request);
Explanation explain_gelu(const Request& request);
Explanation explain_cross_entropy(const Request& request);
Explanation explain_adam(const Request& request);
/// @}
/// Of a model's norm whose scale is perhaps frozen.
Explanation explain_rms_norm(const Request& request, bool scale_frozen);

}  // namespace handgrad::train::explain
