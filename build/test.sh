#!/bin/bash
# Runs the parts of `make test`, all of them whatever the first ones find, and
# sums up at the end.
#
#   build/test.sh PART...      a part is a target of the Makefile
set -uo pipefail
cd "$(dirname "$0")/.."
passed=0 failed=0 table=
for part in "$@"; do
	began=$SECONDS
	echo "== make $part"
	if make --no-print-directory "$part"; then
		passed=$((passed + 1)) how=passed
	else
		failed=$((failed + 1)) how=FAILED
	fi
	table+=$(printf '%-16s %s  %d s' "$part" "$how" $((SECONDS - began)))$'\n'
done
printf '\n%s%d passed, %d failed\n' "$table" "$passed" "$failed"
[ "$failed" = 0 ]
