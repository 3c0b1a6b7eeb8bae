#!/bin/bash
# The promises of docs/interface.md: runs the tests that are named after them and
# prints each promise with the tests that show it. Fails where a promise has no
# test, or one that does not pass. When none is missing, test/promises.txt is
# written anew: a line "id package test" for each. With the word alone every test
# of the list is run by itself afterwards, so that none leans on what another left.
# usage: build/spec.sh [alone]
set -euo pipefail
cd "$(dirname "$0")/.."
promises=docs/interface.md
list=test/promises.txt

packages=$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./agent/... ./control/...)
# What does not build, or ends early, shows no promise: the exit status says so.
status=0
out=$(go test -count=1 -timeout 10m -run '^TestSpec|^Test[A-Z][0-9]+_' -v $packages 2>&1) || status=$?

# What the menu bar shows needs a desktop and is run by make test-desktop; here it
# counts by its name.
out+=$'\n'$(sed -nE 's/^func (Test([A-Z][0-9]+_)+[A-Za-z0-9]+)\(.*/--- desktop: \1/p' test/desktop/*_test.go)
out+=$'\n'"ok $(go list -m)/test/desktop"

# shown prints a line "id package test verdict" for every test that is named after
# a promise. A package is named by the line that ends its tests.
shown() {
	awk -v module="$(go list -m)/" '
	$1 == "---" && $3 ~ /^(TestSpec[A-Za-z]*\/|Test)[A-Z][0-9]+_[^\/]*$/ { test[++n] = $3; verdict[n] = $2 }
	($1 == "ok" || $1 == "FAIL") && index($2, module) == 1 {
		for (i = 1; i <= n; i++) {
			name = test[i]
			sub(/^(TestSpec[A-Za-z]*\/|Test)/, "", name)
			while (match(name, /^[A-Z][0-9]+_/)) {      # M10_M11_revoke shows both
				print substr(name, 1, RLENGTH - 1), substr($2, length(module) + 1), test[i], verdict[i]
				name = substr(name, RLENGTH + 1)
			}
		}
		n = 0
	}' <<<"$out" | LC_ALL=C sort
}

# The table goes to the terminal, the list to a file beside the old one.
trap 'rm -f "$list.new"' EXIT
wrong=0
awk -v list="$list.new" '
	NR == FNR {
		tests[$1] = tests[$1] "\n              " $2 " " $3
		lines[$1] = lines[$1] $1 " " $2 " " $3 "\n"
		if ($4 != "PASS:" && $4 != "desktop:") bad[$1] = 1
		if ($4 == "PASS:") ran[$1] = 1
		next
	}
	match($0, /^- \*\*[A-Z][0-9]+\*\* /) {
		id = substr($0, 5, RLENGTH - 7)
		verdict = !tests[id] ? "MISSING" : bad[id] ? "FAIL" : ran[id] ? "pass" : "desktop"
		if (!tests[id] || bad[id]) wrong = 1
		printf "%-4s %-8s %s%s\n", id, verdict, substr($0, RLENGTH + 1), tests[id]
		printf "%s", lines[id] >list
		missing += !tests[id]
	}
	END { exit missing ? 2 : wrong }' <(shown) "$promises" || wrong=$?
if [ "$wrong" != 2 ]; then mv "$list.new" "$list"; fi
if [ "$wrong" != 0 ]; then status=1; fi
if [ "$status" != 0 ]; then
	grep -E '^(--- FAIL|FAIL|panic:)|^ +--- FAIL' <<<"$out" || tail -n 20 <<<"$out"
fi

# alone runs each test of the list in a process of its own.
alone() {
	local package binary test
	for package in $(cut -d' ' -f2 "$list" | grep -v ^test/desktop | sort -u); do
		binary=$(mktemp)
		go test -c -o "$binary" "./$package"
		for test in $(awk -v package="$package" '$2 == package { print $3 }' "$list" | sort -u); do
			if ! (cd "$package" && "$binary" -test.timeout 2m -test.run "^${test/\//\$/^}\$") >/dev/null 2>&1; then
				echo "$package $test does not pass alone"
				status=1
			fi
		done
		rm -f "$binary"
	done
}
if [ "${1:-}" = alone ]; then alone; fi
exit "$status"
