#!/bin/bash
# The load model (test/load/README.md): builds it and the server, and measures.
#
#   build/load.sh PART [quick]      PART: all, or one of those that it names
#
# Rows go to out/load/results.json, and on a quiet machine the tables of
# docs/measured/load.md are written, and what docs/operating.md takes from them,
# unless it was the quick form.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/out/load
mkdir -p "$out"
go build -o "$out/load" ./test/load
flags=(-part "${1:-all}" -programs bin -out "$out/results.json" -docs docs/measured/load.md)
if [ "${2:-}" = quick ]; then
	flags+=(-quick)
else
	flags+=(-wait 3m)
fi
exec "$out/load" "${flags[@]}"
