#!/bin/bash
# Puts this version beside an earlier one, in one run: the proxy (test/bench) and
# the Go benchmarks that both have, taking turns. The earlier version is built in
# a worktree of its own, which is removed again.
#
#   build/against.sh COMMIT [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$1 rounds=${2:-5}
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/before" 2>/dev/null || true; rm -rf "$dir"' EXIT
git worktree add -q --detach "$dir/before" "$commit"
packages="agent/access agent/localapi agent/proxy agent/procinfo control/kv control/relay control/web"

compile() { # TREE NAME
	cd "$1"
	go build -o "$dir/bench-$2" ./test/bench
	for p in $packages; do go test -c -o "$dir/$2-${p//\//-}.test" "./$p"; done
}
measure() { # TREE NAME PACKAGE
	cd "$1/$3"
	"$dir/$2-${3//\//-}.test" -test.run '^$' -test.bench . -test.benchtime 300ms -test.timeout 10m |
		awk -v name="$2" '/^Benchmark/ && $4 == "ns/op" { print name, $1, $3 }' >>"$dir/figures"
}
(compile "$dir/before" before)
(compile "$PWD" now)
"$dir/bench-now" -before "$dir/bench-before" -contenders Porchlight -rounds "$rounds"
for round in $(seq "$rounds"); do
	for p in $packages; do
		(measure "$dir/before" before "$p")
		(measure "$PWD" now "$p")
	done
	echo "round $round of $rounds" >&2
done
# The least disturbed round of each benchmark, in ns an operation, and new ÷ old.
sort -k2,2 -k1,1 -k3,3n "$dir/figures" | awk '
	{ key = $2 " " $1; if (!(key in least)) least[key] = $3; names[$2] = 1 }
	END {
		for (name in names)
			if (least[name " before"] && least[name " now"])
				printf "%-60s %12.0f %12.0f  %.2f\n", name, least[name " before"], least[name " now"], least[name " now"] / least[name " before"]
	}' | sort
