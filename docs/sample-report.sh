#!/bin/sh
# Makes docs/sample-report.html anew: the report of the toy, as ./dev run leaves it.
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
# The config names the text by its full path; here by the one in the repository, which is the same everywhere.
sed "s|$folder/||g" runs/toy/report.html >"$out"
