// Operations against PyTorch: its own sample inputs, values and gradients in float64. The numbers come from
// tests/golden/operations.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "handgrad/core/ops.h"
#include "handgrad/io/safetensors.h"
#include "paths.h"

using namespace handgrad;
using nlohmann::json;

namespace {

/// The inputs of a case; `arrays` holds token ids and targets.
struct Inputs {
  std::vector<Tensor> tensors;
  std::vector<Array> arrays;

  Ids ids(std::size_t i) const { return Ids::from(arrays[i]); }
};

Shape shape_of(const json& list) {
  const auto sizes = list.get<std::vector<std::int64_t>>();
  return Shape(sizes.data(), sizes.size());
}

Dims dims_of(const json& list) { return Dims(shape_of(list)); }

json all_dims(const Tensor& x) {
  json list = json::array();
  for (int i = 0; i < x.rank(); ++i) list.push_back(i);
  return list;
}

using Operation = std::function<Tensor(const Inputs& in, const json& args)>;
using Reduce = Tensor (*)(const Tensor&, const Dims&, KeepDim);

Operation unary(Tensor (*f)(const Tensor&)) {
  return [f](const Inputs& in, const json&) { return f(in.tensors[0]); };
}

Operation binary(Tensor (*f)(const Tensor&, const Tensor&), Tensor (*with_number)(const Tensor&, double)) {
  return [f, with_number](const Inputs& in, const json& args) {
    return args.contains("scalar") ? with_number(in.tensors[0], args["scalar"].get<double>())
                                   : f(in.tensors[0], in.tensors[1]);
  };
}

Operation reduction(Tensor (*all)(const Tensor&), Reduce some) {
  return [all, some](const Inputs& in, const json& args) {
    const KeepDim keep = args["keepdim"].get<bool>() ? KeepDim::yes : KeepDim::no;
    return args["dims"].is_null() ? all(in.tensors[0]) : some(in.tensors[0], dims_of(args["dims"]), keep);
  };
}

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> table = {
      {"neg", unary(neg)},
      {"sqrt", unary(sqrt)},
      {"rsqrt", unary(rsqrt)},
      {"exp", unary(exp)},
      {"log", unary(log)},
      {"tanh", unary(tanh)},
      {"sigmoid", unary(sigmoid)},
      {"relu", unary(relu)},
      {"silu", unary(silu)},
      {"add", binary(add, add)},
      {"sub", binary(sub, sub)},
      {"mul", binary(mul, mul)},
      {"div", binary(div, div)},
      {"pow", binary(pow, pow)},
      {"sum", reduction(sum, sum)},
      {"mean", reduction(mean, mean)},
      {"amax", reduction(max, max)},
      {"gelu",
       [](const Inputs& in, const json& args) {
         return gelu(in.tensors[0], args["tanh"].get<bool>() ? GeluForm::tanh : GeluForm::exact);
       }},
      {"var",
       [](const Inputs& in, const json& args) {
         const json& given = args["dims"];
         const Dims dims = dims_of(given.is_null() ? all_dims(in.tensors[0]) : given);
         return var(in.tensors[0], dims, args["keepdim"].get<bool>() ? KeepDim::yes : KeepDim::no,
                    args.value("unbiased", true) ? Variance::unbiased : Variance::biased);
       }},
      {"matmul", [](const Inputs& in, const json&) { return matmul(in.tensors[0], in.tensors[1]); }},
      {"linear",
       [](const Inputs& in, const json&) {
         return linear(in.tensors[0], in.tensors[1], in.tensors.size() > 2 ? in.tensors[2] : Tensor());
       }},
      {"reshape",
       [](const Inputs& in, const json& args) { return reshape(in.tensors[0], shape_of(args["shape"])); }},
      {"expand",
       [](const Inputs& in, const json& args) { return expand(in.tensors[0], shape_of(args["shape"])); }},
      {"permute",
       [](const Inputs& in, const json& args) { return permute(in.tensors[0], dims_of(args["order"])); }},
      {"transpose",
       [](const Inputs& in, const json& args) {
         return transpose(in.tensors[0], args["order"][0].get<int>(), args["order"][1].get<int>());
       }},
      {"squeeze",
       [](const Inputs& in, const json& args) { return squeeze(in.tensors[0], args["dim"].get<int>()); }},
      {"unsqueeze",
       [](const Inputs& in, const json& args) {
         const int dim =
             args["dim"].get<int>();  // PyTorch counts negative ones from behind the new dimension
         return unsqueeze(in.tensors[0], dim < 0 ? dim + in.tensors[0].rank() + 1 : dim);
       }},
      {"cat", [](const Inputs& in, const json& args) { return concat(in.tensors, args["dim"].get<int>()); }},
      {"stack", [](const Inputs& in, const json& args) { return stack(in.tensors, args["dim"].get<int>()); }},
      {"softmax",
       [](const Inputs& in, const json& args) { return softmax(in.tensors[0], args["dim"].get<int>()); }},
      {"log_softmax",
       [](const Inputs& in, const json& args) { return log_softmax(in.tensors[0], args["dim"].get<int>()); }},
      {"masked_fill",
       [](const Inputs& in, const json& args) {
         return masked_fill(in.tensors[0], in.tensors[1], args["value"].get<double>());
       }},
      {"where",
       [](const Inputs& in, const json&) { return where(in.tensors[0], in.tensors[1], in.tensors[2]); }},
      {"layer_norm",
       [](const Inputs& in, const json& args) {
         return layer_norm(in.tensors[0], in.tensors[1], in.tensors[2], args["eps"].get<double>());
       }},
      {"embedding", [](const Inputs& in, const json&) { return embedding(in.ids(0), in.tensors[1]); }},
      {"cross_entropy",
       [](const Inputs& in, const json& args) {
         return cross_entropy(in.tensors[0], in.ids(1), args["ignore_index"].get<std::int32_t>());
       }},
  };
  return table;
}

void check_close(const Array& got, const Array& expected, const std::string& what) {
  CAPTURE(what);
  REQUIRE(got.shape() == expected.shape());
  const auto a = got.values(), b = expected.values();
  double largest = 0;
  for (const double x : b) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    CHECK((same || std::abs(a[i] - b[i]) <= 1e-12 * std::max(largest, 1.0)));
  }
}

Inputs inputs_of(const io::SafetensorsReader& file, const std::string& name) {
  Inputs in;
  for (int i = 0; const auto* entry = file.find(name + ".in" + std::to_string(i)); ++i) {
    in.arrays.push_back(file.read(*entry));
    const bool is_number = in.arrays.back().dtype() == DType::float64;
    in.tensors.push_back(is_number ? Tensor::constant(in.arrays.back().copy()) : Tensor());
    if (file.find(name + ".grad" + std::to_string(i)) != nullptr) in.tensors.back().requires_grad();
  }
  return in;
}

}  // namespace

TEST_CASE("PyTorch's sample inputs: values and gradients of every operation that both have") {
  const io::SafetensorsReader file(HANDGRAD_SOURCE_DIR "/tests/golden/operations.safetensors");
  const json cases = json::parse(file.metadata().at("cases"));
  std::set<std::string> seen;
  for (const json& each : cases) {
    const std::string op = each["op"], name = each["case"];
    CAPTURE(name);
    CAPTURE(each["args"].dump());
    const auto found = operations().find(op);
    REQUIRE(found != operations().end());
    seen.insert(op);
    const Inputs in = inputs_of(file, name);
    const Tensor y = found->second(in, each["args"]);
    check_close(y.array(), file.read(name + ".out"), "value");
    y.backward(file.read(name + ".upstream"));
    for (std::size_t i = 0; i < in.tensors.size(); ++i)
      if (const auto* grad = file.find(name + ".grad" + std::to_string(i)))
        check_close(in.tensors[i].grad(), file.read(*grad), "gradient of input " + std::to_string(i));
  }
  CHECK(seen.size() == operations().size());
  CHECK(cases.size() > 120);
}
