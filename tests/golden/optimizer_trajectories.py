"""Prints the rows of `kTrajectories` in tests/test_optimizer.cpp.

Each row is the result of ten steps of a PyTorch optimizer that minimizes (value - target)^2 * steepness / 2, for a
matrix [1, 3] and a vector [3], the vector without weight decay.

  python3 tests/golden/optimizer_trajectories.py
"""
import torch

START = [0.5, -0.3, 2.0]
TARGET = [1.0, -1.0, 0.0]
STEEPNESS = [1.0, 4.0, 0.25]

RULES = {
    "sgd": (torch.optim.SGD, dict(lr=0.1)),
    "sgd momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.1)),
    "sgd dampening": (torch.optim.SGD, dict(lr=0.1, momentum=0.8, dampening=0.3)),
    "sgd nesterov": (torch.optim.SGD, dict(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": (torch.optim.Adam, dict(lr=0.05, betas=(0.8, 0.95), weight_decay=0.1)),
    "adamw": (torch.optim.AdamW, dict(lr=0.05, betas=(0.9, 0.95), eps=1e-3, weight_decay=0.1)),
}

for name, (rule, options) in RULES.items():
    matrix = torch.nn.Parameter(torch.tensor([START], dtype=torch.float64))
    vector = torch.nn.Parameter(torch.tensor(START, dtype=torch.float64))
    optimizer = rule([{"params": [matrix]}, {"params": [vector], "weight_decay": 0.0}], **options)
    target = torch.tensor(TARGET, dtype=torch.float64)
    steepness = torch.tensor(STEEPNESS, dtype=torch.float64)
    for _ in range(10):
        optimizer.zero_grad()
        sum(((p - target) ** 2 * steepness / 2).sum() for p in (matrix, vector)).backward()
        optimizer.step()
    values = matrix.detach().flatten().tolist() + vector.detach().tolist()
    print(f'    {{"{name}", {{' + ", ".join(f"{v:.17g}" for v in values) + "}},")
