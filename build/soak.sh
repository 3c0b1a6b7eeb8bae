#!/bin/bash
# What takes too long for every run of the tests:
#
#   build/soak.sh fuzz   every fuzz target there is, FUZZTIME (30s) each
#   build/soak.sh ways   the same bytes into both ways in, ours and net/http's, for
#                        an hour, half of it each protocol (WAYSTIME)
#   build/soak.sh h2spec HTTP/2 conformance beside a bare net/http server (half a
#                        minute: part of make test, too)
#   build/soak.sh e2e    the end-to-end tests that do more when PORCHLIGHT_SOAK
#                        is set (after `make cli`)
#
# A part of it registers itself, by being a fuzz target or by asking for
# PORCHLIGHT_SOAK. `make soak` has the rest.
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:-fuzz}
failed=()

say() { printf '\n== %s\n' "$*"; }

# Packages with the given words in a test, as arguments for go.
packages_with() {
	git grep -lE --untracked "$1" -- '*_test.go' | xargs -r -n 1 dirname | sort -u | sed 's|^|./|'
}

# fuzzed TARGET TIME PACKAGE runs a fuzz target for that long. Before 1.27 Go's own race at
# the end of the time is told as a failure of these words alone (golang/go#75804); a real
# one names its input.
fuzzed() {
	local log ok=0
	log=$(mktemp)
	nice go test -run '^$' -fuzz "^$1\$" -fuzztime "$2" "$3" 2>&1 | tee "$log" || ok=1
	if [ $ok -ne 0 ] && grep -qx '    context deadline exceeded' "$log" && ! grep -q 'Failing input written to' "$log"; then
		say "$1 ran for its time, and no input failed"
		ok=0
	fi
	rm -f "$log"
	return $ok
}

fuzz() {
	local package target listed
	for package in $(packages_with '^func Fuzz[A-Za-z0-9_]*\(f \*testing\.F\)'); do
		listed=$(go test -list '^Fuzz' "$package") || { failed+=("$package"); continue; }
		for target in $(cat "$package"/*_test.go | sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(f \*testing\.F\).*/\1/p' | sort -u); do
			# One that is for another system is not listed here.
			case $'\n'$listed$'\n' in *$'\n'"$target"$'\n'*) ;; *) continue ;; esac
			say "$package $target, ${FUZZTIME:-30s}"
			fuzzed "$target" "${FUZZTIME:-30s}" "$package" || failed+=("$package $target")
		done
	done
}

# Go says how many inputs there were; a difference is kept as an input that every run of
# the tests tries again.
ways() {
	local target
	for target in FuzzWaysHTTP1 FuzzWaysHTTP2; do
		say "$target, ${WAYSTIME:-30m}"
		fuzzed "$target" "${WAYSTIME:-30m}" ./agent/proxy || failed+=("$target")
	done
}

h2spec() {
	say "h2spec"
	mkdir -p out
	go -C test/h2spec build -o ../../out/h2spec github.com/summerwind/h2spec/cmd/h2spec
	H2SPEC=$PWD/out/h2spec go test -count 1 -run '^TestH2Spec$' ./agent/proxy || failed+=(h2spec)
}

e2e() {
	local file
	for file in $(git grep -l --untracked PORCHLIGHT_SOAK -- 'test/e2e/*.test.mjs'); do
		say "$file"
		(cd test/e2e && PORCHLIGHT_SOAK=1 node --test --test-timeout=1200000 "$(basename "$file")") || failed+=("$file")
	done
}

case $part in
fuzz | ways | h2spec | e2e) "$part" ;;
*) echo "soak: say fuzz, ways, h2spec or e2e, not '$part'" >&2; exit 2 ;;
esac
if [ ${#failed[@]} -gt 0 ]; then
	printf '\nFailed:\n'
	printf '  %s\n' "${failed[@]}"
	exit 1
fi
printf '\nNothing gave way.\n'
