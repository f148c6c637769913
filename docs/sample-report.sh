#!/bin/sh
# Makes docs/sample-report.html anew: the report of the toy, as ./dev run leaves it.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/runs"
ln -s "$PWD/configs" "$PWD/data" "$folder"
program=$PWD/${1:-build/release/handgrad}
cd "$folder"
HANDGRAD_CALLED_AS=./dev "$program" train configs/toy.json --out runs/toy --quiet
# The config names the text by its full path, which is nobody's business.
sed "s|$folder/|/home/reader/handgrad/|g" runs/toy/report.html >"$OLDPWD/docs/sample-report.html"
