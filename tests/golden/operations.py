"""Writes operations.safetensors: PyTorch's own sample inputs for the operations that handgrad has, with their values and
gradients in float64.

The metadata key "cases" is a JSON list of {"op", "case", "args"}; the arrays of a case are CASE.in0, CASE.in1, ...,
CASE.out, CASE.upstream, and CASE.grad0 ... for the inputs that have a gradient.

  python3 tests/golden/operations.py
"""
import json
import os
import random
import sys
import types

import torch

import safetensors_file

# PyTorch's samples are in its test code, which imports a package that this script does not need.
stub = types.ModuleType("expecttest")
stub.TestCase, stub.ACCEPT = object, False
sys.modules["expecttest"] = stub
# Its cross-entropy samples use random.sample on a set, which Python 3.11 no longer allows.
draw = random.sample
random.sample = lambda population, k: draw(sorted(population), k)
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

FEW_NUMBERS, MOST_NUMBERS, ENOUGH_CASES, MOST_CASES = 64, 400, 2, 6


def dims_of(x, dim):
    if dim is None:
        return None
    return list(dim) if isinstance(dim, (tuple, list)) else [dim]


def plain(sample):
    return [sample.input, *sample.args], {}


def binary(sample):
    other = sample.args[0]
    if sample.kwargs:
        return None
    if isinstance(other, torch.Tensor):
        return [sample.input, other], {}
    return ([sample.input], {"scalar": other}) if isinstance(other, (int, float)) else None


def reduction(names):
    def take(sample):
        options = dict(zip(names, sample.args)) | sample.kwargs
        if any(key not in ("dim", "keepdim", "unbiased") for key in options):
            return None
        dims = dims_of(sample.input, options.pop("dim", None))
        if sample.input.dim() == 0 or dims == []:
            return None
        return [sample.input], {"dims": dims, "keepdim": False} | options

    return take


def shape_args(name):
    def take(sample):
        if name == "order" and sample.input.dim() == 0:
            return None
        args = sample.args[0] if len(sample.args) == 1 and isinstance(sample.args[0], (tuple, list)) else sample.args
        return [sample.input], {name: [int(a) for a in args]}

    return take


def joined(sample):
    dim = sample.kwargs.get("dim", sample.args[0] if sample.args else 0)
    return (list(sample.input), {"dim": dim}) if isinstance(dim, int) else None


def squeeze(sample):  # a dimension of another size is an error in handgrad, and nothing in PyTorch
    taken = over_dim(sample)
    return taken if taken and sample.input.shape[taken[1]["dim"]] == 1 else None


def over_dim(sample):
    dim = sample.args[0] if sample.args else sample.kwargs.get("dim")
    if sample.input.dim() == 0:
        return None
    return ([sample.input], {"dim": dim}) if isinstance(dim, int) and "dtype" not in sample.kwargs else None


def gelu(sample):
    return [sample.input], {"tanh": sample.kwargs.get("approximate") == "tanh"}


def masked_fill(sample):
    mask, value = sample.args
    if isinstance(value, torch.Tensor) or mask.dim() > sample.input.dim():
        return None
    return [sample.input, mask.double()], {"value": float(value)}


def where(sample):  # PyTorch's order is input, condition, other
    condition, other = sample.args
    if not isinstance(other, torch.Tensor):
        return None
    return [condition.double(), sample.input, other], {}


def layer_norm(sample):
    shape, weight, bias = (list(sample.args) + [None, None])[:3]
    if weight is None or bias is None or len(shape) != 1:
        return None
    return [sample.input, weight, bias], {"eps": sample.kwargs.get("eps", 1e-5)}


def embedding(sample):
    if any(sample.kwargs.get(key) for key in ("padding_idx", "max_norm", "scale_grad_by_freq", "sparse")):
        return None
    if sample.kwargs.get("padding_idx") is not None:
        return None
    return [sample.args[0].int(), sample.input], {}


def cross_entropy(sample):
    target = sample.args[0]
    allowed = {"ignore_index", "reduction"}
    if target.is_floating_point() or sample.input.dim() != 2 or set(sample.kwargs) - allowed:
        return None
    if sample.kwargs.get("reduction", "mean") != "mean":
        return None
    return [sample.input, target.int()], {"ignore_index": sample.kwargs.get("ignore_index", -100)}


def size_of(sample):
    return sample.input.numel() if isinstance(sample.input, torch.Tensor) else sum(t.numel() for t in sample.input)


TAKEN = {
    **{name: plain for name in ("neg", "sqrt", "rsqrt", "exp", "log", "tanh", "sigmoid", "matmul")},
    **{f"nn.functional.{name}": plain for name in ("relu", "silu", "linear")},
    **{name: binary for name in ("add", "sub", "mul", "div", "pow")},
    "sum": reduction(("dim", "keepdim")),
    "mean": reduction(("dim", "keepdim")),
    "var": reduction(("dim", "unbiased", "keepdim")),
    "amax": reduction(("dim", "keepdim")),
    "reshape": shape_args("shape"),
    "expand": shape_args("shape"),
    "permute": shape_args("order"),
    "transpose": shape_args("order"),
    "squeeze": squeeze,
    "unsqueeze": over_dim,
    "cat": joined,
    "stack": joined,
    "softmax": over_dim,
    "log_softmax": over_dim,
    "nn.functional.gelu": gelu,
    "masked_fill": masked_fill,
    "where": where,
    "nn.functional.layer_norm": layer_norm,
    "nn.functional.embedding": embedding,
    "nn.functional.cross_entropy": cross_entropy,
}

torch.manual_seed(2266)
random.seed(2266)
arrays, cases, seen = {}, [], set()
for info in op_db:
    take = TAKEN.get(info.name)
    if take is None or info.variant_test_name not in ("", "no_rounding_mode"):
        continue
    count = 0
    samples = list(info.sample_inputs("cpu", torch.float64, requires_grad=True))
    # Prefer the largest of the small samples; if there are none, take the smallest of the others.
    small = sorted((s for s in samples if size_of(s) <= FEW_NUMBERS), key=size_of, reverse=True)
    for sample in small + sorted((s for s in samples if size_of(s) > FEW_NUMBERS), key=size_of):
        taken = take(sample)
        if taken is None or count == MOST_CASES:
            continue
        inputs, args = taken
        y = info(sample.input, *sample.args, **sample.kwargs)
        numbers = max(t.numel() for t in [y, *inputs])
        if y.numel() == 0 or not y.requires_grad:
            continue
        if numbers > (FEW_NUMBERS if count >= ENOUGH_CASES else MOST_NUMBERS):
            continue
        key = (info.name, str([tuple(t.shape) for t in inputs]), str(args))
        if key in seen:
            continue
        seen.add(key)
        upstream = (torch.rand_like(y) + 0.5) * (torch.randint_like(y, 2) * 2 - 1)
        leaves = [t for t in inputs if t.requires_grad]
        grads = iter(torch.autograd.grad(y, leaves, upstream, allow_unused=True))
        op = info.name.removeprefix("nn.functional.")
        case = f"{op}.{count}"
        count += 1
        for i, t in enumerate(inputs):
            arrays[f"{case}.in{i}"] = t.detach().contiguous().numpy()
            if t.requires_grad and (g := next(grads)) is not None:
                arrays[f"{case}.grad{i}"] = g.contiguous().numpy()
        arrays[f"{case}.out"] = y.detach().contiguous().numpy()
        arrays[f"{case}.upstream"] = upstream.detach().contiguous().numpy()
        cases.append({"op": op, "case": case, "args": args})

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "operations.safetensors")
safetensors_file.write(path, arrays, {"cases": json.dumps(cases)})
print(f"{len(cases)} cases of {len({c['op'] for c in cases})} operations")
print("without a case:", sorted(set(k.removeprefix("nn.functional.") for k in TAKEN) - {c["op"] for c in cases}))
