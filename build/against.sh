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
packages="agent/access agent/localapi agent/proxy agent/procinfo control/kv control/web"

compile() { # TREE NAME
	cd "$1"
	go build -o "$dir/bench-$2" ./test/bench
	for p in $packages; do go test -c -o "$dir/$2-${p//\//-}.test" "./$p"; done
}
measure() { # TREE NAME PACKAGE
	cd "$1/$3"
	"$dir/$2-${3//\//-}.test" -test.run '^$' -test.bench . -test.benchtime 300ms -test.timeout 10m |
		awk -v name="$2" '/^Benchmark/ {
			for (i = 3; i < NF; i += 2)
				if ($(i + 1) == "ns/op") print name, $1 ":" $(i + 1), $i
		}' >>"$dir/figures"
}
(compile "$dir/before" before)
(compile "$PWD" now)
for part in agent relay; do "$dir/bench-now" -part "$part" -before "$dir/bench-before" -contenders Porchlight -rounds "$rounds"; done
for round in $(seq "$rounds"); do
	for p in $packages; do
		(measure "$dir/before" before "$p")
		(measure "$PWD" now "$p")
	done
	echo "round $round of $rounds" >&2
done
# The least disturbed round of each benchmark, and new ÷ old.
awk '
	{
		key = $2 " " $1; names[$2] = 1
		if (!(key in best) || $3 < best[key]) best[key] = $3
	}
	END {
		for (name in names)
			if (best[name " before"] && best[name " now"])
				printf "%-70s %12.5g %12.5g  %.2f\n", name, best[name " before"], best[name " now"], best[name " now"] / best[name " before"]
	}' "$dir/figures" | sort
