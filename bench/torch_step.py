"""The training step of configs/bench/*.json in PyTorch: forward, cross-entropy, backward, AdamW.

The same model (pre-norm blocks, learned positions, q, k and v without bias, explicit causal softmax, tanh GELU, an
untied output head without bias, no dropout) with the same sizes, in idiomatic PyTorch. Prints one line of JSON with the
median time of a step.

  python3 bench/torch_step.py --config char --threads 2

The speed depends on the BLAS that torch finds: use the machine's best one (LD_LIBRARY_PATH), and set OPENBLAS_CORETYPE
for an old OpenBLAS. Otherwise the comparison favors handgrad.
"""
import argparse
import json
import os
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--config", choices=["toy", "char"], default="char")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--samples", type=int, default=15)
options = parser.parse_args()
os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(options.threads)
torch.manual_seed(123)

SIZES = {
    "toy": dict(vocab=65, context=16, width=32, heads=4, layers=1, batch=8),
    "char": dict(vocab=65, context=64, width=128, heads=4, layers=4, batch=12),
}
S = argparse.Namespace(**SIZES[options.config])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(S.width), nn.LayerNorm(S.width)
        self.query, self.key, self.value = (nn.Linear(S.width, S.width, bias=False) for _ in range(3))
        self.projection = nn.Linear(S.width, S.width)
        self.expand, self.contract = nn.Linear(S.width, 4 * S.width), nn.Linear(4 * S.width, S.width)
        self.register_buffer("future", torch.ones(S.context, S.context).triu(1).bool())

    def attend(self, x):
        rows, tokens, width = x.shape

        def heads(y):
            return y.view(rows, tokens, S.heads, width // S.heads).transpose(1, 2)

        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        scores = (query @ key.transpose(2, 3)).masked_fill_(self.future, -torch.inf)
        weights = torch.softmax(scores / (width // S.heads) ** 0.5, dim=-1)
        return self.projection((weights @ value).transpose(1, 2).reshape(rows, tokens, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.contract(F.gelu(self.expand(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(S.vocab, S.width), nn.Embedding(S.context, S.width)
        self.blocks = nn.Sequential(*(Block() for _ in range(S.layers)))
        self.norm, self.head = nn.LayerNorm(S.width), nn.Linear(S.width, S.vocab, bias=False)

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=0.1)
inputs = torch.randint(S.vocab, (S.batch, S.context))
targets = torch.randint(S.vocab, (S.batch, S.context))


def step():
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).backward()
    optimizer.step()


def milliseconds(steps):
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start) / steps * 1e3


milliseconds(10)
steps = max(1, round(20 / milliseconds(10)))
samples = [milliseconds(steps) for _ in range(options.samples)]
print(json.dumps({"config": options.config, "threads": options.threads, "ms": statistics.median(samples),
                  "ms_min": min(samples), "ms_max": max(samples), "torch": torch.__version__}))
