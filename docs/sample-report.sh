#!/bin/sh
# Regenerates docs/sample-report.html: the toy's report, as ./dev run writes it.
# sample-report.sh [PROGRAM [OUT]]
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
program=$(realpath "${1:-$root/build/release/handgrad}")
out=$(realpath -m "${2:-$root/docs/sample-report.html}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -R "$root/configs" "$root/data" "$folder"
cd "$folder"
HANDGRAD_CALLED_AS=./dev "$program" train configs/toy.json --out runs/toy --quiet
# The config has the text's absolute path; replace it by the path in the repository, which is the same everywhere.
sed "s|$folder/||g" runs/toy/report.html >"$out"
