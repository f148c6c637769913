#!/usr/bin/env python3
"""Makes the small mistakes of mutants.txt in operations and kernels, one at a time, and reports those the tests miss.

usage: mutate.py [--only TEXT] [--check] [--report] [--jobs N]

Works on a copy of the tree in build/mutation; the working tree is not changed. A mutant is caught when a test fails,
crashes or times out. Tests that start the program are left out because they test operations only indirectly, and tests
of files, configs and texts because they compute nothing. Kernels are built once, for AVX2, instead of once for each
instruction set.

Caught mutants are saved in build/mutation/results.jsonl and not run again, so an interrupted run can continue;
survivors are run again, since new tests may catch them. A run without --only writes report.md; --report writes it from
the saved results, without running anything.

Exit status: 0 when every survivor is explained, 1 when one is not, 2 when a mutant does not fit its file or does not
compile, or the unchanged tests fail.
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build" / "mutation"
RESULTS, TREE = WORK / "results.jsonl", WORK / "tree"
BUILD = TREE / "build" / "release"  # the same path as in a normal tree, so that ccache hits

# Not built: tests that start the program; tests of files, configs and texts.
LEFT_OUT = re.compile(r"tests/(mutation/|test_(cases|check_trace|checkpoint|config|data_|docs|interruption|own_layer|"
                      r"program|recording|registry|run_folder|safetensors|schedule|wrong_calls))")

# Run first, since they catch most mutants. The other tests run only for mutants that survive these.
FIRST = ["*test_ops.cpp", "*test_golden_operations.cpp", "*test_arithmetic.cpp", "*test_attention.cpp",
         "*test_functions.cpp", "*test_gemm.cpp", "*test_layer_norm.cpp", "*test_loss.cpp", "*test_matmul.cpp",
         "*test_pointwise.cpp", "*test_products.cpp", "*test_reduce.cpp", "*test_select.cpp", "*test_softmax.cpp",
         "*test_optimizer.cpp", "*test_clipping.cpp", "*test_random.cpp"]

# The release build with a linker that is twice as fast, and without -Werror, since a mistake may leave variables unused.
CONFIGURE = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DHANDGRAD_WARNINGS_AS_ERRORS=OFF", "-DHANDGRAD_INSTALL=OFF",
             "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=gold"]


class Mutant:
    """One entry of mutants.txt."""

    def __init__(self, file, what):
        self.file, self.what = file, what
        self.old, self.new = [], []
        self.which, self.of = 1, 1
        self.explanation = ""

    def mutated(self):
        """The file's text with the mistake; ValueError if the text to replace is not in the file."""
        text = (ROOT / self.file).read_text()
        old, new = "\n".join(self.old), "\n".join(self.new)
        if not old or old == new:
            raise ValueError("there is nothing to change")
        found = text.count(old)
        if found != self.of:
            raise ValueError(f"its text occurs {found} times, not {self.of}:\n{old}")
        start = -1
        for _ in range(self.which):
            start = text.index(old, start + 1)
        return text[:start] + new + text[start + len(old):]


def read_mutants(path):
    mutants = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        kind, rest = line[:2], line[2:]
        if not line or line.startswith("#"):
            continue
        if kind == "- ":
            mutants[-1].old.append(rest)
        elif line == "+" or kind == "+ ":
            mutants[-1].new.append(rest)
        elif kind == "= ":
            mutants[-1].explanation = (mutants[-1].explanation + " " + rest).strip()
        elif match := re.fullmatch(r"@ (\d+) of (\d+)", line):
            mutants[-1].which, mutants[-1].of = int(match[1]), int(match[2])
        elif match := re.fullmatch(r"(core/\S+): (.+)", line):
            mutants.append(Mutant(match[1], match[2]))
        else:
            sys.exit(f"{path.name}:{number}: not understood: {line}")
    return mutants


def fail(message):
    print(message, file=sys.stderr)
    sys.exit(2)


def check(mutants):
    bad = []
    for mutant in mutants:
        try:
            mutant.mutated()
        except (ValueError, OSError) as error:
            bad.append(f"{mutant.file}: {mutant.what}: {error}")
    names = [(m.file, m.what) for m in mutants]
    bad += [f"{file}: {what}: listed twice" for file, what in set(names) if names.count((file, what)) > 1]
    if bad:
        fail("\n".join(bad))


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def copy_tree():
    """Makes TREE equal to the working tree; unchanged files keep their mtime, so that ninja does not rebuild them."""
    wanted = set()
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if not name or LEFT_OUT.match(name) or not (ROOT / name).is_file():
            continue
        wanted.add(name)
        data, target = (ROOT / name).read_bytes(), TREE / name
        if name == "core/kernels/kernels.cmake":
            data = one_instruction_set(data.decode()).encode()
        if not target.is_file() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    for folder, inner, files in os.walk(TREE):
        if folder == str(TREE) and "build" in inner:
            inner.remove("build")
        for path in (pathlib.Path(folder) / file for file in files):
            if str(path.relative_to(TREE)) not in wanted:
                path.unlink()


def one_instruction_set(text):
    """kernels.cmake with AVX2 as the baseline and no other set, which compiles in a third of the time."""
    if "avx2" not in pathlib.Path("/proc/cpuinfo").read_text():
        return text
    for old, new in (("\nhandgrad_kernels(baseline)\n", "\nhandgrad_kernels(baseline -mavx2 -mfma)\n"),
                     ("\nif(CMAKE_SYSTEM_PROCESSOR MATCHES", "\nif(FALSE AND CMAKE_SYSTEM_PROCESSOR MATCHES")):
        if text.count(old) != 1:
            fail(f"core/kernels/kernels.cmake: this occurs {text.count(old)} times, not once: {old.strip()}")
        text = text.replace(old, new)
    return text


def build(jobs):
    """Builds the tests; returns None or the compiler's output."""
    for command in (["cmake", "-S", TREE, "-B", BUILD, *CONFIGURE],
                    ["cmake", "--build", BUILD, "--target", "handgrad_tests", "--parallel", str(jobs)]):
        if command[1] == "-S" and (BUILD / "build.ninja").exists():
            continue  # ninja reconfigures on its own
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if result.returncode != 0:
            return result.stdout[-4000:]
    return None


def first_failure(output):
    """The name of the first test case in which doctest reports an error."""
    name = ""
    for line in output.splitlines():
        if line.startswith("TEST CASE:"):
            name = line[len("TEST CASE:"):].strip()
        elif "ERROR" in line and name:
            return name
    return name or "(the program ended early)"


def run_tests(timeout):
    """None if all tests pass, else the name of the first failing test."""
    files = ",".join(FIRST)
    for chosen in (f"--source-file={files}", f"--source-file-exclude={files}"):
        command = [BUILD / "tests" / "handgrad_tests", chosen, "--abort-after=1", "--no-intro", "--no-colors"]
        try:
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                    errors="replace", timeout=timeout, cwd=WORK, preexec_fn=limit_memory)
        except subprocess.TimeoutExpired:
            return "(the tests do not end)"
        if result.returncode != 0:
            return first_failure(result.stdout)
    return None


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def try_mutant(mutant, jobs, timeout):
    target = TREE / mutant.file
    original = target.read_text()
    target.write_text(mutant.mutated())
    try:
        error = build(jobs)
        if error is not None:
            raise ValueError("does not compile\n" + error)
        return run_tests(timeout)
    finally:
        target.write_text(original)


def key_of(mutant):
    return hashlib.sha256((mutant.file + mutant.mutated()).encode()).hexdigest()[:16]


def write_report(mutants, outcome):
    changed = [line for line in git("status", "--porcelain").splitlines() if not line.endswith("mutation/report.md")]
    run = [m for m in mutants if key_of(m) in outcome]
    survivors = [m for m in run if outcome[key_of(m)] is None]
    caught = len(run) - len(survivors)
    lines = ["# Mutants", "",
             "Written by `tests/mutation/mutate.py`, which makes each mistake of `mutants.txt` by itself and runs the "
             "tests.", "", f"Revision {git('rev-parse', '--short', 'HEAD').strip()}{' with changes' if changed else ''}: "
             f"{len(run)} mutants, {caught} caught ({100 * caught / max(len(run), 1):.1f}%), {len(survivors)} "
             f"survived, {len([m for m in survivors if not m.explanation])} of them without an explanation."]
    if len(run) < len(mutants):
        lines += ["", f"Not complete: {len(mutants) - len(run)} mutants of the list have not been run."]
    lines += ["", "| file | mistake | caught by |", "| --- | --- | --- |"]
    for m in run:
        by = outcome[key_of(m)] or "**SURVIVED**: " + (m.explanation or "not explained")
        lines.append("| " + " | ".join(text.replace("|", "\\|") for text in (m.file, m.what, by)) + " |")
    (HERE / "report.md").write_text("\n".join(lines) + "\n")


def remembered():
    """Results of earlier runs: for each mutant's key, the test that caught it, or None."""
    if not RESULTS.exists():
        return {}
    return {r["key"]: r["caught_by"] for r in map(json.loads, RESULTS.read_text().splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="TEXT", help="mutants whose file or description contains this; no report")
    parser.add_argument("--check", action="store_true", help="only check that every mutant's text is in the sources")
    parser.add_argument("--report", action="store_true", help="only write report.md from the saved results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="for the build")
    options = parser.parse_args()

    mutants = read_mutants(HERE / "mutants.txt")
    check(mutants)
    print(f"{len(mutants)} mutants fit the sources", flush=True)
    outcome = remembered()
    if options.check or options.report:
        if options.report:
            write_report(mutants, outcome)
        return 0

    copy_tree()
    error = build(options.jobs)
    if error is not None:
        fail("the unchanged tree does not build\n" + error)
    start = time.monotonic()
    failed = run_tests(None)
    if failed is not None:
        fail(f"the unchanged tests fail: {failed}")
    clean = time.monotonic() - start
    timeout = 60 + 5 * clean
    print(f"the unchanged tests pass in {clean:.0f} s", flush=True)

    chosen = [m for m in mutants if not options.only or options.only in f"{m.file}: {m.what}"]
    random.Random(0).shuffle(chosen)  # the first results cover all files
    broken = []
    for number, mutant in enumerate(chosen, 1):
        key = key_of(mutant)
        if outcome.get(key) is not None:
            continue
        start = time.monotonic()
        try:
            outcome[key] = try_mutant(mutant, options.jobs, timeout)
        except ValueError as error:
            broken.append(mutant)
            print(f"{number}/{len(chosen)} {mutant.file}: {mutant.what}: {error}", flush=True)
            continue
        with RESULTS.open("a") as file:
            file.write(json.dumps({"key": key, "file": mutant.file, "what": mutant.what,
                                   "caught_by": outcome[key]}) + "\n")
        print(f"{number}/{len(chosen)} {mutant.file}: {mutant.what}: {outcome[key] or 'SURVIVED'} "
              f"({time.monotonic() - start:.0f} s)", flush=True)
    if not options.only:
        write_report(mutants, outcome)
    run = [m for m in chosen if m not in broken]
    survivors = [m for m in run if outcome[key_of(m)] is None]
    print(f"{len(run)} mutants, {len(survivors)} survived")
    for m in run:
        if m.explanation and outcome[key_of(m)] is not None:
            print(f"explained as a survivor, but caught: {m.file}: {m.what}")
    if broken:
        fail(f"{len(broken)} do not compile")
    return 1 if [m for m in survivors if not m.explanation] else 0


if __name__ == "__main__":
    sys.exit(main())
