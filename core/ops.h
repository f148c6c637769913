// Every operation: what it computes, shapes, errors. The formula and derivative of each are in its file in
// core/ops/.
//
// Letters: B batch, T time (tokens in a row), C channels, H heads, D head size, V vocabulary; x input, y output,
// dy = d loss / d y.
//
// Unless stated otherwise operands must have one element type, float32 or float64 (else DTypeError), shapes that do
// not fit are a ShapeError, and a negative dimension counts from the end.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "handgrad/core/tensor.h"

namespace handgrad {

/// Whether a reduced dimension stays, with size 1.
enum class KeepDim { no, yes };
inline constexpr int kLast = -1;  ///< the last dimension, as an argument `dim` or `dims`
/// A target that cross_entropy leaves out, as in PyTorch.
inline constexpr std::int32_t kIgnoreIndex = -100;

// ---- Arithmetic (core/ops/arithmetic.cpp). Shapes broadcast by NumPy's rule: aligned at the end, equal or 1.

/// @{ a + b, a - b, a * b, a / b, -x. The gradient of an operand that was repeated is summed over its repetitions.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, double b);
Tensor sub(const Tensor& a, double b);
Tensor mul(const Tensor& a, double b);
Tensor div(const Tensor& a, double b);
Tensor add(double a, const Tensor& b);
Tensor sub(double a, const Tensor& b);
Tensor mul(double a, const Tensor& b);
Tensor div(double a, const Tensor& b);
Tensor neg(const Tensor& x);
/// @}

/// @{ The same as operators.
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, double b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, double b) { return div(a, b); }
inline Tensor operator+(double a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(double a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(double a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(double a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& x) { return neg(x); }
/// @}

// ---- Element by element (core/ops/pointwise.cpp, pow.cpp). A zero upstream gradient gives a zero gradient
// even where the derivative is infinite.

/// x^exponent. At 0 with exponent < 1 the infinite derivative stays for a non-zero upstream gradient.
Tensor pow(const Tensor& x, double exponent);
/// base^exponent, broadcasting, with gradients for both; d exponent at base 0 and exponent > 0 is 0.
Tensor pow(const Tensor& base, const Tensor& exponent);
Tensor square(const Tensor& x);  ///< x * x
/// Derivative 0 at 0, by choice: a norm of zeros then trains.
Tensor sqrt(const Tensor& x);
/// 1 / sqrt(x)
Tensor rsqrt(const Tensor& x);
Tensor exp(const Tensor& x);  ///< derivative: the result itself
Tensor log(const Tensor& x);  ///< natural; 0 gives -inf, a negative number NaN
/// The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
Tensor erf(const Tensor& x);
Tensor tanh(const Tensor& x);  ///< derivative: 1 - y^2
/// 1 / (1 + exp(-x))
Tensor sigmoid(const Tensor& x);
/// max(x, 0); derivative 0 at 0
Tensor relu(const Tensor& x);
/// x * sigmoid(x), also called swish
Tensor silu(const Tensor& x);
/// The form of GELU. tanh is the book's and GPT-2's: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)));
/// exact is x times the normal distribution function, 0.5 x (1 + erf(x / sqrt(2))).
enum class GeluForm { tanh, exact };
/// x times the probability that a normal number is below it (Hendrycks and Gimpel, 2016).
Tensor gelu(const Tensor& x, GeluForm form = GeluForm::tanh);
/// The same numbers from primitive operations, each of them visible in the graph.
Tensor gelu_composed(const Tensor& x, GeluForm form = GeluForm::tanh);

// ---- Products (core/ops/matmul.cpp, linear.cpp)

/// Whether the last two dimensions of an operand are swapped: a flag of the product, no copy.
enum class Transpose { no, yes };
/// a [..., M, K] times b [..., K, N] gives [..., M, N] (shapes after the flags); leading dimensions broadcast. A
/// vector on either side is a row or a column that the result leaves out, as in PyTorch.
Tensor matmul(const Tensor& a, const Tensor& b, Transpose a_flag = Transpose::no,
              Transpose b_flag = Transpose::no);
/// x [..., in] times weight [out, in] transposed, plus bias [out]: y [..., out]. `bias` may be undefined.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// Several linear maps of one x in one product: y [..., sum of out], the results one after another in the last
/// dimension. `biases` is empty or has one entry, possibly undefined, for each weight.
Tensor linear_fused(const Tensor& x, const std::vector<Tensor>& weights,
                    const std::vector<Tensor>& biases = {});

// ---- Reductions (core/ops/reduce.cpp). Without `dims` over all of them. Sums accumulate in double.

/// @{ The sum of all elements, or along `dims`; 0 for none.
Tensor sum(const Tensor& x);
Tensor sum(const Tensor& x, const Dims& dims, KeepDim keep = KeepDim::no);
/// @}
/// @{ The sum divided by the count, of all elements or along `dims`; NaN for none.
Tensor mean(const Tensor& x);
Tensor mean(const Tensor& x, const Dims& dims, KeepDim keep = KeepDim::no);
/// @}
/// Variance in two passes: the mean first, then the squared distances. Unbiased divides by n - 1 and is not the norm's.
enum class Variance { biased, unbiased };
/// The mean squared distance from the mean, along `dims`; NaN for no elements.
Tensor var(const Tensor& x, const Dims& dims, KeepDim keep = KeepDim::no, Variance form = Variance::biased);
/// Largest element; with ties the gradient goes to the first. The first NaN wins.
Tensor max(const Tensor& x);
Tensor max(const Tensor& x, const Dims& dims, KeepDim keep = KeepDim::no);  ///< the same along `dims`

// ---- Shapes (core/ops/shape.cpp). reshape shares the numbers; permute, slice, concat, stack and expand copy.

/// One size may be -1.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Dimensions first..last become one.
Tensor flatten(const Tensor& x, int first = 0, int last = kLast);
/// Without the dimension `dim`, whose size must be 1.
Tensor squeeze(const Tensor& x, int dim);
/// With a new dimension of size 1 before `dim`.
Tensor unsqueeze(const Tensor& x, int dim);
/// Dimension i of the result is dimension order[i] of x.
Tensor permute(const Tensor& x, const Dims& order);
Tensor transpose(const Tensor& x, int a, int b);  ///< dimensions a and b change places, as a copy
/// Elements begin..end-1 along `dim`; negative positions count from the end.
Tensor slice(const Tensor& x, int dim, std::int64_t begin, std::int64_t end);
/// One after another along an existing dimension.
Tensor concat(const std::vector<Tensor>& parts, int dim);
/// Beside each other along a new dimension.
Tensor stack(const std::vector<Tensor>& parts, int dim);
/// Dimensions of size 1 (and missing leading ones) repeated to `shape`; -1 keeps a size.
Tensor expand(const Tensor& x, const Shape& shape);

// ---- Softmax and masks (core/ops/softmax.cpp, mask.cpp)

/// exp(x - max) / sum along `dim`. A slice of nothing but -inf gives zeros, and zero gradients.
Tensor softmax(const Tensor& x, int dim = kLast);
/// The same numbers from primitive operations, each of them visible in the graph; but NaN for a slice of nothing but -inf.
Tensor softmax_composed(const Tensor& x, int dim = kLast);
/// x - max - log(sum(exp(x - max)))
Tensor log_softmax(const Tensor& x, int dim = kLast);
/// x with `value` where mask is not 0; the mask broadcasts to x and gets no gradient.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
/// a where condition is not 0, else b; all three broadcast; the condition gets no gradient.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

// ---- Normalization (core/ops/layer_norm.cpp)

/// y = scale * (x - mean) / sqrt(var + eps) + shift over the last dimension C, with the biased variance of two
/// passes. x [..., C], scale [C], shift [C]. eps >= 0, else ValueError. Saved by name: x, scale, mean, rstd.
Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps = 1e-5);
/// The same numbers from primitive operations, each of them visible in the graph.
Tensor layer_norm_composed(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps = 1e-5);
/// y = scale * x / sqrt(mean(x^2) + eps) (Zhang and Sennrich, 2019). x [..., C], scale [C].
Tensor rms_norm(const Tensor& x, const Tensor& scale, double eps = 1e-5);
/// The same numbers from primitive operations, each of them visible in the graph.
Tensor rms_norm_composed(const Tensor& x, const Tensor& scale, double eps = 1e-5);

// ---- Attention (core/ops/attention.cpp)

/// Causal self-attention of `heads` heads: qkv [B, T, 3C] holds queries, keys and values one after another in the last
/// dimension (as linear_fused gives them), each split into heads of D = C / heads. For each head
/// softmax(q k^T / sqrt(D), rows masked to the past) v; y [B, T, C]. `drop_rate` drops probabilities (inverted
/// dropout) unless it is 0. Saved by name: qkv, and attention weights up to T = 128; beyond, they are recomputed.
Tensor causal_attention(const Tensor& qkv, int heads, double drop_rate = 0);
/// The same from primitive operations, as the book writes it. With equal random keys it drops the same weights.
Tensor causal_attention_composed(const Tensor& qkv, int heads, double drop_rate = 0);

// ---- Tokens (core/ops/embedding.cpp, cross_entropy.cpp)

/// Rows of weight [V, C]: y [..., C] for ids [...]. IndexError naming id, position and V when an id is out of range.
Tensor embedding(const Ids& ids, const Tensor& weight);
/// Mean of -log softmax(logits)[target] over the targets that are not `ignore_index`; logits [..., V], targets [...].
/// All ignored: 0, with zero gradients. IndexError naming target, position and V when a target is out of range.
Tensor cross_entropy(const Tensor& logits, const Ids& targets, std::int32_t ignore_index = kIgnoreIndex);
/// The same with the count of targets given, above 0: sum of losses / `target_count`. The parts of a batch that is computed
/// in several micro-batches then add up to its mean.
Tensor cross_entropy_by_count(const Tensor& logits, const Ids& targets, double target_count,
                              std::int32_t ignore_index = kIgnoreIndex);

// ---- Dropout (core/ops/dropout.cpp)

/// Each element is 0 with probability `rate`, else x / (1 - rate). 0 <= rate < 1, else ValueError. The random numbers
/// depend on the current module path, see core/random.h.
Tensor dropout(const Tensor& x, double rate);
/// The same numbers without history: the gradient stops here.
Tensor detach(const Tensor& x);

// ---- Without gradient (core/ops/select.cpp)

/// Position of the largest element along `dim`; the first of equals, the first NaN.
Ids argmax(const Tensor& x, int dim = kLast);
/// The k largest along the last dimension, falling, and their positions.
std::pair<Tensor, Ids> topk(const Tensor& x, std::int64_t k);
/// The triangle on and above (below) the diagonal number `diagonal`, zeros elsewhere; the last two dimensions.
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);  ///< on and below
/// 0, 1, ..., n - 1
Tensor arange(std::int64_t n, DType dtype = DType::float32);
Ids arange_ids(std::int64_t n);  ///< the same as ids
/// 1 where it holds, else 0; broadcasting.
Tensor operator>(const Tensor& a, const Tensor& b);
/// @{ The same for the other comparisons, and against a number.
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& a, double b);
Tensor operator<(const Tensor& a, double b);
Tensor operator>=(const Tensor& a, double b);
Tensor operator<=(const Tensor& a, double b);
Tensor equal(const Tensor& a, double b);
/// @}

}  // namespace handgrad
