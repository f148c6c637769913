#!/usr/bin/env python3
"""Compares the configs' JSON Schema with the loader: both must accept and reject the same configs.

usage: check_schema.py PROGRAM CONFIG...
"""
import json
import re
import subprocess
import sys

import jsonschema

program, configs = sys.argv[1], sys.argv[2:]

# A key, a value, and whether it is allowed in the first config (the toy).
CASES = [
    ("seed", 0, True),
    ("seed", -1, False),
    ("seed", "1", False),
    ("model.n_layers", 3, True),
    ("model.n_layers", 2.0, True),
    ("model.n_layers", 0, False),
    ("model.n_layers", 1.5, False),
    ("model.n_layers", True, False),
    ("model.n_layers", None, False),
    ("model.n_lay", 1, False),
    ("model.type", "gtp", False),
    ("model.drop_rate", 0.1, True),
    ("model.drop_rate", 1, False),
    ("model.drop_rate", -0.1, False),
    ("model.qkv_bias", True, True),
    ("model.qkv_bias", "true", False),
    ("model.init", "gpt2", True),
    ("model.init", "gpt3", False),
    ("model.norm", {}, True),
    ("model.norm", {"type": "rms_norm", "eps": 1e-6}, True),
    ("model.norm", {"type": "none"}, True),
    ("model.norm", {"type": "none", "eps": 1e-6}, False),
    ("model.norm", {"type": "layer_norm", "epss": 1e-6}, False),
    ("model.norm", {"eps": -1}, False),
    ("model.norm", "none", False),
    ("model.ff.hidden", 64, True),
    ("model.ff.hidden", 0, False),
    ("model.ff.activation", "silu", True),
    ("model.ff.activation", "swish", False),
    ("data.val_fraction", 1, False),
    ("data.sampling", "sequential", True),
    ("data.sampling", "shuffled", False),
    ("data.stride", 4, True),
    ("data", {"type": "random", "vocab_size": 9}, True),
    ("data", {"type": "random"}, False),
    ("data", {"type": "text"}, False),
    ("data", {"type": "random", "vocab_size": 9, "path": "a.txt"}, False),
    ("optimizer", {"type": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True}, True),
    ("optimizer", {"type": "sgd", "betas": [0.9, 0.99]}, False),
    ("optimizer", {"type": "adam", "momentum": 0.9}, False),
    ("optimizer.betas", [0.9], False),
    ("optimizer.betas", [0.9, 1.0], False),
    ("optimizer.betas", 0.9, False),
    ("schedule", {"type": "linear", "decay_steps": 10}, True),
    ("schedule", {"type": "linear", "warmup_steps": -1}, False),
    ("train.steps", 0, False),
    ("train", {"steps": 3, "epochs": 2}, False),
    ("train", {"epochs": 2}, True),
    ("train", {}, False),
    ("train.freeze", ["*.shift"], True),
    ("train.freeze", "*.shift", False),
    ("train.freeze", [1], False),
    ("train.dtype", "float64", True),
    ("train.dtype", "bfloat16", False),
    ("inspect.every", 0, False),
    ("inspects", {}, False),
]


def without_comments(text):
    return re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*', lambda found: found.group(1) or "", text)


def with_value(config, key, value):
    copy = json.loads(json.dumps(config))
    *path, last = key.split(".")
    place = copy
    for name in path:
        place = place.setdefault(name, {})
    place[last] = value
    return copy


schema = json.loads(subprocess.run([program, "config", "schema"], check=True, capture_output=True).stdout)
jsonschema.Draft7Validator.check_schema(schema)
validator = jsonschema.Draft7Validator(schema)

failed = 0
for path in configs:
    with open(path, encoding="utf-8") as file:
        errors = list(validator.iter_errors(json.loads(without_comments(file.read()))))
    for error in errors:
        print(f"{path}: rejected by the schema: {error.json_path}: {error.message}")
    failed += bool(errors)

with open(configs[0], encoding="utf-8") as file:
    toy = json.loads(without_comments(file.read()))
for key, value, allowed in CASES:
    by_schema = validator.is_valid(with_value(toy, key, value))
    command = [program, "config", "show", configs[0], "--set", f"{key}={json.dumps(value)}"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    by_loader = {0: True, 2: False}.get(run.returncode)
    if by_schema != allowed or by_loader != allowed:
        print(f"{key}={json.dumps(value)}: should be {allowed}, schema {by_schema}, loader {by_loader}\n{run.stderr}")
        failed += 1

print(f"{len(configs)} configs and {len(CASES)} changes of one key: {failed} wrong")
sys.exit(failed > 0)
