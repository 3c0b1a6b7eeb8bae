#!/bin/bash
# The interface, row by row: runs the tests that are named after its rows and
# prints each row with the tests that show it. Fails where a row has none, or one
# that does not pass. With the word alone every test of a row is run by itself
# afterwards, so that none leans on what another left. usage: build/spec.sh [alone]
set -euo pipefail
cd "$(dirname "$0")/.."

rows=()
for part in P:14 S:3 E:9 X:9 M:14 O:18 V:3; do
	for n in $(seq "${part#*:}"); do rows+=("${part%:*}$n"); done
done

packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./agent/... ./control/...)
# What does not build, or ends early, prints no row: the exit status says so.
status=0
out=$(go test -count=1 -timeout 10m -run '^TestSpec|^Test[A-Z][0-9]+_' -v $packages 2>&1) || status=$?

awk -v rows="${rows[*]}" '
	$1 == "---" && ($2 == "PASS:" || $2 == "FAIL:" || $2 == "SKIP:") && $3 ~ /^(TestSpec[A-Za-z]*\/|Test)[A-Z][0-9]+_[^\/]*$/ {
		name = $3
		sub(/^(TestSpec[A-Za-z]*\/|Test)/, "", name)
		said = name
		while (match(name, /^[A-Z][0-9]+_/)) {          # M10_M11_revoke shows both rows
			row = substr(name, 1, RLENGTH - 1)
			name = substr(name, RLENGTH + 1)
			tests[row] = tests[row] (tests[row] ? ", " : "") said
			if ($2 != "PASS:") bad[row] = 1
		}
	}
	END {
		n = split(rows, all, " ")
		for (i = 1; i <= n; i++) {
			row = all[i]
			verdict = !tests[row] ? "MISSING" : bad[row] ? "FAIL" : "pass"
			if (verdict != "pass") wrong = 1
			printf "%-4s %-8s %s\n", row, verdict, tests[row]
		}
		exit wrong
	}' <<<"$out" || status=1
if [ "$status" != 0 ]; then
	grep -E '^(--- FAIL|FAIL|panic:)|^ +--- FAIL' <<<"$out" || tail -n 20 <<<"$out"
fi

# alone runs each test of a row in a process of its own.
alone() {
	local package binary row pattern
	for package in $packages; do
		binary=$(mktemp)
		go test -c -o "$binary" "$package"
		for row in $(awk -v package="$package" '
			$1 == "---" && $3 ~ /^(TestSpec[A-Za-z]*\/|Test)[A-Z][0-9]+_[^\/]*$/ { names[++n] = $3 }
			$1 == "ok" || $1 == "FAIL" { for (i = 1; $2 == package && i <= n; i++) print names[i]; if ($2 ~ /\//) n = 0 }' <<<"$out"); do
			pattern="^${row/\//\$/^}\$"
			if ! (cd "$(go list -f '{{.Dir}}' "$package")" && "$binary" -test.timeout 2m -test.run "$pattern") >/dev/null 2>&1; then
				echo "$package $row does not pass alone"
				status=1
			fi
		done
		rm -f "$binary"
	done
}
if [ "${1:-}" = alone ]; then alone; fi
exit "$status"
