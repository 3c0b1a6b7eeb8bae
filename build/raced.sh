#!/bin/bash
# Runs tests of whole programs on those in bin/race, which have the race detector
# in them, and fails when one of them met a data race, whatever the tests say.
#
#   build/raced.sh COMMAND...
set -euo pipefail
cd "$(dirname "$0")/.."
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
status=0
PORCHLIGHT_PROGRAMS=$PWD/bin/race GORACE="log_path=$reports/race" "$@" || status=$?
for report in "$reports"/*; do
	[ -e "$report" ] || continue
	cat "$report" >&2
	status=1
done
exit "$status"
