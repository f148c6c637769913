// layer_norm in the book's lines, to paste into PyTorch.
#include <fmt/format.h>

#include <algorithm>

#include "handgrad/train/explain/layer_norm.h"
#include "handgrad/train/explain/words.h"

namespace handgrad::train::explain {
namespace {

/// What every row gives, rows parted by a slash.
std::string expected(const std::vector<LayerNormPass>& passes, Row LayerNormPass::*member) {
  std::string text;
  for (const LayerNormPass& pass : passes) text += (text.empty() ? "" : " / ") + signed_row(pass.*member);
  return text;
}
std::string expected(const std::vector<LayerNormPass>& passes, double LayerNormPass::*member) {
  std::string text;
  for (const LayerNormPass& pass : passes) text += (text.empty() ? "" : " / ") + number_text(pass.*member);
  return text;
}

/// "torch.ones(4" for the numbers that a norm starts with, else "torch.tensor([...]".
std::string python_start(const Row& row, double start, const char* name) {
  if (std::all_of(row.begin(), row.end(), [&](double v) { return v == start; }))
    return fmt::format("torch.{}({}", name, row.size());
  return "torch.tensor(" + python_list(row);
}

}  // namespace

std::string python(const LayerNormQuestion& q, const LayerNormAnswer& a) {
  const auto& passes = a.with_eps;
  const std::string type = fmt::format("dtype=torch.{}", name_of(q.dtype));
  std::string code = "import torch\ntorch.set_printoptions(precision=8)\n";
  code += fmt::format("x = torch.tensor({}, {}, requires_grad=True)\n", python_rows(q.rows), type);
  code += fmt::format("scale = {}, {}, requires_grad=True)\n", python_start(q.scale, 1, "ones"), type);
  code += fmt::format("shift = {}, {}, requires_grad=True)\n", python_start(q.shift, 0, "zeros"), type);
  code += python_line("mean = x.mean(dim=-1, keepdim=True)", expected(passes, &LayerNormPass::mean));
  code += python_line("var = x.var(dim=-1, keepdim=True, unbiased=False)",
                      expected(passes, &LayerNormPass::variance));
  code += python_line(fmt::format("norm_x = (x - mean) / torch.sqrt(var + {})", q.eps),
                      expected(passes, &LayerNormPass::normalized));
  code += python_line("y = scale * norm_x + shift", expected(passes, &LayerNormPass::output));
  code += fmt::format("y.backward(torch.tensor({}, {}))\n", python_rows(q.upstream), type);
  code += python_line("print(scale.grad)", signed_row(a.d_scale));
  code += python_line("print(shift.grad)", signed_row(a.d_shift));
  code += python_line("print(x.grad)", expected(passes, &LayerNormPass::d_x));
  return code;
}

}  // namespace handgrad::train::explain
