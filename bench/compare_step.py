#!/usr/bin/env python3
"""Compares the time of a training step of handgrad with another program's, as a ratio.

The two programs alternate, and the result is the median of the ratios within pairs: the speed of a shared machine
changes from minute to minute, but both runs of a pair see the same conditions.

  bench/compare_step.py --config char --threads 2
  bench/compare_step.py --config char --peer "python3 other_step.py --config char --threads 2"

The peer is a command whose last line is JSON with the key "ms"; the default is bench/torch_step.py.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--config", default="char", help="a name in configs/bench, or a path")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--pairs", type=int, default=5)
parser.add_argument("--program", default=str(ROOT / "build/release/handgrad"), help="the handgrad program")
parser.add_argument("--peer", help="command of the other program")
options = parser.parse_args()

config = pathlib.Path(options.config)
if config.suffix != ".json":
    config = ROOT / "configs/bench" / f"{options.config}.json"
ours = [options.program, "bench", "step", str(config), "--threads", str(options.threads), "--json"]
torch_step = [sys.executable, str(ROOT / "bench/torch_step.py"), "--config", config.stem]
peer = shlex.split(options.peer) if options.peer else torch_step + ["--threads", str(options.threads)]


def milliseconds(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])["ms"]


print(f"{config.stem}, {options.threads} threads, milliseconds a step\n\n  handgrad      peer   ratio")
ratios = []
for pair in range(options.pairs):
    # Alternate which one runs first, so that neither always runs on a hotter CPU.
    first, second = (ours, peer) if pair % 2 == 0 else (peer, ours)
    times = {id(command): milliseconds(command) for command in (first, second)}
    a, b = times[id(ours)], times[id(peer)]
    ratios.append(a / b)
    print(f"{a:10.3f}{b:10.3f}{a / b:8.3f}", flush=True)
print(f"\nmedian of {len(ratios)} ratios: {statistics.median(ratios):.3f}")
