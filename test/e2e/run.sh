#!/bin/bash
# End-to-end tests: the programs in bin/ (or $PORCHLIGHT_PROGRAMS), Chromium, Node-RED, Radicale.
set -euo pipefail
cd "$(dirname "$0")"
missing=
for program in /usr/bin/chromium certutil radicale go node npm python3 php; do
	command -v "$program" >/dev/null || missing+=" $program"
done
if [ -n "$missing" ]; then
	echo "run.sh: missing:$missing; install them with: build/setup.sh test" >&2
	exit 2
fi
export PORCHLIGHT_PROGRAMS="${PORCHLIGHT_PROGRAMS:-$PWD/../../bin}"
for program in porchlight porchlight-control; do
	if [ ! -x "$PORCHLIGHT_PROGRAMS/$program" ]; then
		echo "run.sh: $PORCHLIGHT_PROGRAMS/$program is not there; build it with: make cli" >&2
		exit 2
	fi
done
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch node_modules/.package-lock.json
fi
npm test
