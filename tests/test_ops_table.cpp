#include "op_table.h"

namespace op_table {
namespace {

using namespace handgrad;

void arithmetic_rows(Table& t) {
  t.pair("add(Tensor, Tensor)", Range::any, Range::any, [](auto& a, auto& b) { return add(a, b); });
  t.pair("sub(Tensor, Tensor)", Range::any, Range::any, [](auto& a, auto& b) { return sub(a, b); });
  t.pair("mul(Tensor, Tensor)", Range::any, Range::any, [](auto& a, auto& b) { return mul(a, b); });
  t.pair("div(Tensor, Tensor)", Range::any, Range::off_zero, [](auto& a, auto& b) { return div(a, b); });
  t.each("add(Tensor, double)", Range::any, [](auto& x) { return add(x, 1.5); });
  t.each("sub(Tensor, double)", Range::any, [](auto& x) { return sub(x, 1.5); });
  t.each("mul(Tensor, double)", Range::any, [](auto& x) { return mul(x, -1.5); });
  t.each("div(Tensor, double)", Range::any, [](auto& x) { return div(x, -1.5); });
  t.each("add(double, Tensor)", Range::any, [](auto& x) { return add(1.5, x); });
  t.each("sub(double, Tensor)", Range::any, [](auto& x) { return sub(1.5, x); });
  t.each("mul(double, Tensor)", Range::any, [](auto& x) { return mul(-1.5, x); });
  t.each("div(double, Tensor)", Range::off_zero, [](auto& x) { return div(-1.5, x); });
  t.each("neg(Tensor)", Range::any, [](auto& x) { return neg(x); });
}

void pointwise_rows(Table& t) {
  for (const double p : {2.0, 3.0, 0.5, -1.5, 0.0, 1.0})
    t.each(
        "pow(Tensor, double)", Range::positive, [p](auto& x) { return pow(x, p); },
        "to " + std::to_string(p));
  for (const double p : {2.0, 3.0, -1.0})
    t.each(
        "pow(Tensor, double)", Range::off_zero, [p](auto& x) { return pow(x, p); },
        "to " + std::to_string(p));
  t.pair("pow(Tensor, Tensor)", Range::positive, Range::any, [](auto& a, auto& b) { return pow(a, b); });
  t.each("square(Tensor)", Range::any, [](auto& x) { return square(x); });
  t.each("sqrt(Tensor)", Range::positive, [](auto& x) { return sqrt(x); });
  t.each("rsqrt(Tensor)", Range::positive, [](auto& x) { return rsqrt(x); });
  t.each("exp(Tensor)", Range::any, [](auto& x) { return exp(x); });
  t.each("log(Tensor)", Range::positive, [](auto& x) { return log(x); });
  t.each("erf(Tensor)", Range::any, [](auto& x) { return erf(x); });
  t.each("tanh(Tensor)", Range::any, [](auto& x) { return tanh(x); });
  t.each("sigmoid(Tensor)", Range::any, [](auto& x) { return sigmoid(x); });
  t.each("relu(Tensor)", Range::off_zero, [](auto& x) { return relu(x); });
  t.each("silu(Tensor)", Range::any, [](auto& x) { return silu(x); });
  t.each(
      "gelu(Tensor, GeluForm)", Range::any, [](auto& x) { return gelu(x, GeluForm::tanh); }, "tanh");
  t.each(
      "gelu(Tensor, GeluForm)", Range::any, [](auto& x) { return gelu(x, GeluForm::exact); }, "exact");
  for (const GeluForm form : {GeluForm::tanh, GeluForm::exact})
    t.each(
        "gelu_composed(Tensor, GeluForm)", Range::any, [form](auto& x) { return gelu_composed(x, form); },
        form == GeluForm::tanh ? "tanh" : "exact");
}

void matmul_rows(Table& t) {
  const auto product = [&t](const Shape& a, const Shape& b, Transpose ta, Transpose tb) {
    t.add(
        "matmul(Tensor, Tensor, Transpose, Transpose)", {{a}, {b}},
        [ta, tb](Inputs in) { return matmul(in[0], in[1], ta, tb); },
        std::string(ta == Transpose::yes ? "a transposed " : "") +
            (tb == Transpose::yes ? "b transposed" : ""));
  };
  constexpr Transpose no = Transpose::no, yes = Transpose::yes;
  product({3, 4}, {4, 5}, no, no);
  product({4, 3}, {4, 5}, yes, no);
  product({3, 4}, {5, 4}, no, yes);
  product({4, 3}, {5, 4}, yes, yes);
  product({4, 4}, {4, 4}, no, no);
  product({1, 4}, {4, 1}, no, no);
  product({3, 1}, {1, 5}, no, no);
  product({5, 19}, {19, 18}, no, no);
  product({4}, {4}, no, no);
  product({4}, {4, 5}, no, no);
  product({3, 4}, {4}, no, no);
  product({2, 3, 4}, {4}, no, no);
  product({4}, {2, 4, 3}, no, no);
  product({2, 3, 4}, {4, 5}, no, no);
  product({2, 3, 4}, {2, 4, 5}, no, no);
  product({2, 4, 3}, {2, 5, 4}, yes, yes);
  product({3, 4}, {2, 4, 5}, no, no);
  product({2, 1, 3, 4}, {5, 4, 2}, no, no);
  product({2, 1, 4, 3}, {1, 2, 4, 2}, yes, no);
}

void linear_rows(Table& t) {
  const std::string one = "linear(Tensor, Tensor, Tensor)";
  const auto biased = [](Inputs in) { return linear(in[0], in[1], in[2]); };
  const auto plain = [](Inputs in) { return linear(in[0], in[1]); };
  t.add(one, {{{4}}, {{3, 4}}, {{3}}}, biased);
  t.add(one, {{{2, 4}}, {{3, 4}}, {{3}}}, biased);
  t.add(one, {{{2, 3, 4}}, {{5, 4}}, {{5}}}, biased);
  t.add(one, {{{2, 1}}, {{1, 1}}, {{1}}}, biased);
  t.add(one, {{{5, 18}}, {{19, 18}}, {{19}}}, biased);
  t.add(one, {{{4}}, {{3, 4}}}, plain);
  t.add(one, {{{2, 3, 4}}, {{4, 4}}}, plain);

  const std::string joined = "linear_fused(Tensor, std::vector<Tensor>, std::vector<Tensor>)";
  t.add(joined, {{{2, 3, 4}}, {{3, 4}}, {{2, 4}}, {{1, 4}}}, [](Inputs in) {
    return linear_fused(in[0], {in[1], in[2], in[3]});
  });
  t.add(joined, {{{3, 4}}, {{4, 4}}, {{4, 4}}, {{4}}, {{4}}}, [](Inputs in) {
    return linear_fused(in[0], {in[1], in[2]}, {in[3], in[4]});
  });
  t.add(
      joined, {{{4}}, {{3, 4}}, {{2, 4}}, {{2}}},
      [](Inputs in) {
        return linear_fused(in[0], {in[1], in[2]}, {{}, in[3]});
      },
      "one bias");
  t.add(
      joined, {{{3, 4}}, {{4, 4}}},
      [](Inputs in) {
        return linear_fused(in[0], {in[1], in[1]});
      },
      "tied");
}

void reduction_rows(Table& t) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{4}, Shape{2, 1, 3}, Shape{3, 37}}) {
    t.add("sum(Tensor)", {{shape}}, [](Inputs in) { return sum(in[0]); });
    t.add("mean(Tensor)", {{shape}}, [](Inputs in) { return mean(in[0]); });
    t.add("max(Tensor)", {{shape, Range::distinct}}, [](Inputs in) { return max(in[0]); });
  }
  t.reduction("sum(Tensor, Dims, KeepDim)", Range::any, [](auto&... a) { return sum(a...); });
  t.reduction("mean(Tensor, Dims, KeepDim)", Range::any, [](auto&... a) { return mean(a...); });
  t.reduction("max(Tensor, Dims, KeepDim)", Range::distinct, [](auto&... a) { return max(a...); });
  const std::string var_name = "var(Tensor, Dims, KeepDim, Variance)";
  t.reduction(var_name, Range::any, [](auto&... a) { return var(a..., Variance::biased); });
  for (const Dims& dims : {Dims(-1), Dims{0, 2}, Dims{1, 2}})
    t.add(
        var_name, {{{2, 3, 4}}},
        [dims](Inputs in) { return var(in[0], dims, KeepDim::no, Variance::unbiased); },
        "unbiased over " + dims.text());
}

void shape_rows(Table& t) {
  const auto moved = [&t](const std::string& operation, const Shape& shape, const Function& f,
                          const std::string& extra) { t.add(operation, {{shape}}, f, extra); };
  for (const Shape& to : {Shape{6, 4}, Shape{-1}, Shape{2, 1, 12}, Shape{4, -1, 2}})
    moved(
        "reshape(Tensor, Shape)", {2, 3, 4}, [to](Inputs in) { return reshape(in[0], to); }, to.text());
  moved(
      "flatten(Tensor, int, int)", {2, 3, 4}, [](Inputs in) { return flatten(in[0]); }, "all");
  moved(
      "flatten(Tensor, int, int)", {2, 3, 4}, [](Inputs in) { return flatten(in[0], 1); }, "from 1");
  moved(
      "flatten(Tensor, int, int)", {}, [](Inputs in) { return flatten(in[0]); }, "a scalar");
  moved(
      "squeeze(Tensor, int)", {2, 1, 4}, [](Inputs in) { return squeeze(in[0], -2); }, "1");
  moved(
      "unsqueeze(Tensor, int)", {2, 4}, [](Inputs in) { return unsqueeze(in[0], 1); }, "1");
  moved(
      "unsqueeze(Tensor, int)", {4}, [](Inputs in) { return unsqueeze(in[0], -1); }, "-1");
  for (const Dims& order : {Dims{0, 1, 2, 3}, Dims{0, 2, 1, 3}, Dims{3, 2, 1, 0}, Dims{0, 1, 3, 2},
                            Dims{2, 3, 0, 1}, Dims{1, 2, 3, 0}, Dims{-1, 0, -2, 1}})
    moved(
        "permute(Tensor, Dims)", {2, 3, 1, 4}, [order](Inputs in) { return permute(in[0], order); },
        order.text());
  moved(
      "permute(Tensor, Dims)", {2, 3, 4},
      [](Inputs in) {
        return permute(in[0], {1, 2, 0});
      },
      "[1, 2, 0]");
  moved(
      "transpose(Tensor, int, int)", {18, 35}, [](Inputs in) { return transpose(in[0], 0, 1); }, "0 1");
  moved(
      "transpose(Tensor, int, int)", {2, 3, 4}, [](Inputs in) { return transpose(in[0], -1, 0); }, "-1 0");
  const std::string slice_name = "slice(Tensor, int, std::int64_t, std::int64_t)";
  moved(
      slice_name, {5}, [](Inputs in) { return slice(in[0], 0, 1, 4); }, "[1:4]");
  moved(
      slice_name, {2, 3, 4}, [](Inputs in) { return slice(in[0], 1, -2, 3); }, "[:, -2:3]");
  moved(
      slice_name, {2, 3, 4}, [](Inputs in) { return slice(in[0], -1, 0, 1); }, "[..., 0:1]");
  moved(
      slice_name, {2, 3}, [](Inputs in) { return slice(in[0], 1, 0, 2) + slice(in[0], 1, 1, 3); },
      "overlapping");
  for (const int dim : {0, 1, -1}) {
    const auto together = [dim](Inputs in) { return concat({in[0], in[1], in[0]}, dim); };
    t.add("concat(std::vector<Tensor>, int)", {{{2, 3, 4}}, {{2, 3, 4}}}, together,
          "dim " + std::to_string(dim));
    const auto beside = [dim](Inputs in) { return stack({in[0], in[1], in[0]}, dim); };
    t.add("stack(std::vector<Tensor>, int)", {{{2, 3, 4}}, {{2, 3, 4}}}, beside,
          "dim " + std::to_string(dim));
  }
  t.add("concat(std::vector<Tensor>, int)", {{{2, 1, 4}}, {{2, 3, 4}}, {{2, 0, 4}}}, [](Inputs in) {
    return concat({in[0], in[1], in[2]}, 1);
  });
  t.add("stack(std::vector<Tensor>, int)", {{{}}, {{}}}, [](Inputs in) { return stack({in[0], in[1]}, 0); });
  moved(
      "expand(Tensor, Shape)", {3, 1, 4},
      [](Inputs in) {
        return expand(in[0], {-1, 5, -1});
      },
      "[-1, 5, -1]");
  moved(
      "expand(Tensor, Shape)", {4},
      [](Inputs in) {
        return expand(in[0], {2, 3, 4});
      },
      "[2, 3, 4]");
  moved(
      "expand(Tensor, Shape)", {2, 1},
      [](Inputs in) {
        return expand(in[0], {3, 2, 4});
      },
      "[3, 2, 4]");
  moved(
      "expand(Tensor, Shape)", {}, [](Inputs in) { return expand(in[0], {4}); }, "[4]");
}

void choice_rows(Table& t) {
  for (const int dim : {-1, 0, 1}) {
    const std::string extra = "dim " + std::to_string(dim);
    t.add(
        "softmax(Tensor, int)", {{{2, 4, 3}}}, [dim](Inputs in) { return softmax(in[0], dim); }, extra);
    t.add(
        "softmax_composed(Tensor, int)", {{{2, 4, 3}}},
        [dim](Inputs in) { return softmax_composed(in[0], dim); }, extra);
    t.add(
        "log_softmax(Tensor, int)", {{{2, 4, 3}}}, [dim](Inputs in) { return log_softmax(in[0], dim); },
        extra);
  }
  for (const Shape& shape : {Shape{4}, Shape{3, 1}, Shape{3, 37}}) {
    t.add("softmax(Tensor, int)", {{shape}}, [](Inputs in) { return softmax(in[0]); });
    t.add("softmax_composed(Tensor, int)", {{shape}}, [](Inputs in) { return softmax_composed(in[0]); });
    t.add("log_softmax(Tensor, int)", {{shape}}, [](Inputs in) { return log_softmax(in[0]); });
  }
  const auto row_mask = [](Inputs in) { return Tensor::of({0, 1, 1, 0}, in[0].dtype()); };
  t.add("masked_fill(Tensor, Tensor, double)", {{{4}}},
        [=](Inputs in) { return masked_fill(in[0], row_mask(in), 3); });
  t.add(
      "masked_fill(Tensor, Tensor, double)", {{{2, 3, 4}}},
      [=](Inputs in) { return masked_fill(in[0], row_mask(in), -2); }, "masked by [4]");
  t.add(
      "masked_fill(Tensor, Tensor, double)", {{{3, 2}}},
      [](Inputs in) {
        return masked_fill(in[0], Tensor::of({1, 0, 1}, {3, 1}, in[0].dtype()), 1);
      },
      "by [3, 1]");
  t.add("where(Tensor, Tensor, Tensor)", {{{4}}, {{4}}},
        [=](Inputs in) { return where(row_mask(in), in[0], in[1]); });
  t.add("where(Tensor, Tensor, Tensor)", {{{2, 1}}, {{3, 1, 1}}},
        [=](Inputs in) { return where(row_mask(in), in[0], in[1]); });
}

void norm_rows(Table& t) {
  for (const Shape& x : {Shape{4}, Shape{2, 6}, Shape{2, 3, 5}, Shape{3, 37}, Shape{2, 1, 17}}) {
    const Shape c = {x.last()};
    t.add(
        "layer_norm(Tensor, Tensor, Tensor, double)", {{x}, {c}, {c}},
        [](Inputs in) { return layer_norm(in[0], in[1], in[2]); }, "", 1e-7);
    t.add(
        "layer_norm_composed(Tensor, Tensor, Tensor, double)", {{x}, {c}, {c}},
        [](Inputs in) { return layer_norm_composed(in[0], in[1], in[2], 1e-3); }, "eps 1e-3", 1e-7);
    t.add(
        "rms_norm(Tensor, Tensor, double)", {{x}, {c}}, [](Inputs in) { return rms_norm(in[0], in[1]); }, "",
        1e-7);
    t.add(
        "rms_norm_composed(Tensor, Tensor, double)", {{x}, {c}},
        [](Inputs in) { return rms_norm_composed(in[0], in[1], 1e-3); }, "eps 1e-3", 1e-7);
  }
  t.add("layer_norm(Tensor, Tensor, Tensor, double)", {{{2, 1}}, {{1}}, {{1}}},
        [](Inputs in) { return layer_norm(in[0], in[1], in[2]); });
}

void attention_rows(Table& t) {
  struct Form {
    Shape qkv;
    int heads;
    double drop_rate;
  };
  for (const Form& form : {Form{{1, 1, 6}, 1, 0}, Form{{2, 5, 12}, 2, 0}, Form{{1, 4, 12}, 4, 0},
                           Form{{1, 19, 6}, 1, 0}, Form{{2, 5, 12}, 2, 0.3}}) {
    const std::string extra = std::to_string(form.heads) + (form.heads == 1 ? " head" : " heads") +
                              (form.drop_rate > 0 ? " with dropout" : "");
    t.add(
        "causal_attention(Tensor, int, double)", {{form.qkv}},
        [form](Inputs in) { return causal_attention(in[0], form.heads, form.drop_rate); }, extra);
    t.add(
        "causal_attention_composed(Tensor, int, double)", {{form.qkv}},
        [form](Inputs in) { return causal_attention_composed(in[0], form.heads, form.drop_rate); }, extra);
  }
  for (const double drop_rate : {0.0, 0.3})  // longer than 128: the weights are recomputed
    t.add(
        "causal_attention(Tensor, int, double)", {{{1, 131, 6}}},
        [drop_rate](Inputs in) { return causal_attention(in[0], 1, drop_rate); },
        drop_rate > 0 ? "with dropout" : "");
}

void token_rows(Table& t) {
  t.add("embedding(Ids, Tensor)", {{{5, 4}}}, [](Inputs in) {
    return embedding(Ids::of({1, 1, 4, 0}), in[0]);
  });
  t.add("embedding(Ids, Tensor)", {{{3, 1}}}, [](Inputs in) {
    return embedding(Ids::of({{0, 2}, {2, 2}}), in[0]);
  });
  const std::string mean_name = "cross_entropy(Tensor, Ids, std::int32_t)";
  const std::string sum_name = "cross_entropy_by_count(Tensor, Ids, double, std::int32_t)";
  t.add(mean_name, {{{4}}}, [](Inputs in) { return cross_entropy(in[0], Ids({2}, Shape{})); });
  t.add(mean_name, {{{3, 5}}}, [](Inputs in) { return cross_entropy(in[0], Ids::of({0, 4, 2})); });
  t.add(
      mean_name, {{{2, 3, 4}}},
      [](Inputs in) {
        return cross_entropy(in[0], Ids::of({{0, 3, -100}, {1, -100, 2}}));
      },
      "some ignored");
  t.add(
      mean_name, {{{3, 37}}},
      [](Inputs in) {
        return cross_entropy(in[0], Ids::of({36, 0, 2}), 2);
      },
      "2 ignored");
  t.add(
      sum_name, {{{3, 5}}},
      [](Inputs in) {
        return cross_entropy_by_count(in[0], Ids::of({0, 4, -100}), 7);
      },
      "by 7");
}

void dropout_rows(Table& t) {
  for (const double rate : {0.0, 0.5})
    t.each(
        "dropout(Tensor, double)", Range::any, [rate](auto& x) { return dropout(x, rate); },
        "rate " + std::to_string(rate));
}

}  // namespace

Table table() {
  Table t;
  arithmetic_rows(t);
  pointwise_rows(t);
  matmul_rows(t);
  linear_rows(t);
  reduction_rows(t);
  shape_rows(t);
  choice_rows(t);
  norm_rows(t);
  attention_rows(t);
  token_rows(t);
  dropout_rows(t);
  return t;
}

}  // namespace op_table
