"""Writes gpt_*.safetensors: a small GPT in PyTorch, written as in the book, its numbers in float64.

Each file contains the weights (param.NAME), a batch (inputs, targets), and the results of one forward and backward pass
(loss, logits, grad.NAME, act.PATH) under the names of `handgrad trace`; also, for each optimizer, the losses of ten steps
and the weights after them (OPTIMIZER.losses, OPTIMIZER.NAME) in float64, and the losses in float32.

  python3 tests/golden/gpt.py
"""
import copy
import os

import torch
from torch import nn

import safetensors_file

V, CONTEXT, T, C, HEADS, LAYERS, ROWS = 11, 8, 6, 8, 2, 2, 3

OPTIMIZERS = {
    "sgd": lambda groups: torch.optim.SGD(groups, lr=0.1, momentum=0.9),
    "adam": lambda groups: torch.optim.Adam(groups, lr=1e-2, betas=(0.9, 0.95), eps=1e-8),
    "adamw": lambda groups: torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), eps=1e-8),
}
DECAY = {"sgd": 0.0, "adam": 0.0, "adamw": 0.1}


class LayerNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.eps = 1e-5
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True, unbiased=False)
        deviation = torch.sqrt(variance + self.eps)
        normalized = (x - mean) / deviation
        self.lines = {"mean": mean, "variance": variance, "deviation": deviation, "normalized": normalized}
        return self.scale * normalized + self.shift


class GELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))


class Attention(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.W_query = nn.Linear(C, C, bias=bias)
        self.W_key = nn.Linear(C, C, bias=bias)
        self.W_value = nn.Linear(C, C, bias=bias)
        self.out_proj = nn.Linear(C, C)

    def forward(self, x):
        rows, tokens, _ = x.shape
        q, k, v = (
            w(x).view(rows, tokens, HEADS, C // HEADS).transpose(1, 2) for w in (self.W_query, self.W_key, self.W_value)
        )
        scores = q @ k.transpose(2, 3) / (C // HEADS) ** 0.5
        mask = torch.triu(torch.ones(tokens, tokens, dtype=torch.bool), diagonal=1)
        weights = torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).reshape(rows, tokens, C))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(C, 4 * C), GELU(), nn.Linear(4 * C, C))

    def forward(self, x):
        return self.layers(x)


class Block(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.norm1, self.att, self.norm2, self.ff = LayerNorm(C), Attention(bias), LayerNorm(C), FeedForward()

    def forward(self, x):
        x = x + self.att(self.norm1(x))
        return x + self.ff(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, bias, tied):
        super().__init__()
        self.tok_emb = nn.Embedding(V, C)
        self.pos_emb = nn.Embedding(CONTEXT, C)
        self.trf_blocks = nn.Sequential(*(Block(bias) for _ in range(LAYERS)))
        self.final_norm = LayerNorm(C)
        self.out_head = nn.Linear(C, V, bias=False)
        if tied:
            self.out_head.weight = self.tok_emb.weight

    def forward(self, ids):
        x = self.tok_emb(ids) + self.pos_emb(torch.arange(ids.shape[1]))
        return self.out_head(self.final_norm(self.trf_blocks(x)))


def loss_of(model, inputs, targets):
    return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def train(model, name, inputs, targets):
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = OPTIMIZERS[name](
        [{"params": decayed, "weight_decay": DECAY[name]}, {"params": others, "weight_decay": 0.0}]
    )
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = loss_of(model, inputs, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def numbers(bias, tied):
    torch.manual_seed(2266)
    model = GPT(bias, tied).double()
    with torch.no_grad():
        for parameter in model.parameters():  # vectors of ones and zeros would hide mistakes
            if parameter.dim() == 1:
                parameter.add_(torch.empty_like(parameter).uniform_(-0.5, 0.5))
            else:
                parameter.mul_(0.5)
    inputs, targets = torch.randint(V, (ROWS, T)), torch.randint(V, (ROWS, T))
    arrays = {"inputs": inputs.int(), "targets": targets.int()}
    start = copy.deepcopy(model)

    acts = {}
    for path, module in model.named_modules():
        if path:
            module.register_forward_hook(lambda m, i, y, path=path: acts.update({path: y.detach()}))
    logits = model(inputs)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    arrays |= {"loss": loss.detach().reshape(1), "logits": logits.detach()}
    for name, parameter in model.named_parameters():
        arrays |= {f"param.{name}": parameter.detach(), f"grad.{name}": parameter.grad}
    for path, y in acts.items():
        arrays[f"act.{path}"] = y
        module = model.get_submodule(path)
        if isinstance(module, LayerNorm):
            arrays |= {f"act.{path}.{line}": value.detach() for line, value in module.lines.items()}

    for name in OPTIMIZERS:
        trained = copy.deepcopy(start)
        arrays[f"{name}.losses"] = torch.tensor(train(trained, name, inputs, targets), dtype=torch.float64)
        arrays |= {f"{name}.{n}": p.detach() for n, p in trained.named_parameters()}
        single = copy.deepcopy(start).float()
        arrays[f"{name}.losses32"] = torch.tensor(train(single, name, inputs, targets))
    return {name: array.contiguous().numpy() for name, array in arrays.items()}


folder = os.path.dirname(os.path.abspath(__file__))
for file, bias, tied in (("gpt_plain", False, False), ("gpt_qkv_bias", True, False), ("gpt_tied", True, True)):
    safetensors_file.write(os.path.join(folder, file + ".safetensors"), numbers(bias, tied))
