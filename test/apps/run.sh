#!/bin/bash
# The apps of docs/recipes.md behind the programs in bin/ (or $PORCHLIGHT_PROGRAMS):
# what people have, used by its own clients and by Chromium.
#
#   test/apps/run.sh            all of them (build/setup.sh apps has what they need)
#   test/apps/run.sh quick      those of `make test` (build/setup.sh test)
#   test/apps/run.sh HEADING,…  those of these sections
#
# Ends with a table of the options each of them was given and what came of it, kept in out/apps.txt.
set -euo pipefail
cd "$(dirname "$0")"
export PORCHLIGHT_APPS=${1:-}
setup=apps packages="../e2e quick ."
commands="/usr/bin/chromium certutil nginx apache2 openssl git go node npm"
if [ "$PORCHLIGHT_APPS" = quick ]; then
	setup=test packages="../e2e quick"
else
	commands+=" rclone radicale mariadbd php"
fi
missing=
for command in $commands; do
	PATH=$PATH:/usr/sbin command -v "$command" >/dev/null || missing+=" $command"
done
if [ -n "$missing" ]; then
	echo "run.sh: missing:$missing; install them with: build/setup.sh $setup" >&2
	exit 2
fi
export PORCHLIGHT_PROGRAMS="${PORCHLIGHT_PROGRAMS:-$PWD/../../bin}"
for program in porchlight porchlight-control; do
	if [ ! -x "$PORCHLIGHT_PROGRAMS/$program" ]; then
		echo "run.sh: $PORCHLIGHT_PROGRAMS/$program is not there; build it with: make cli" >&2
		exit 2
	fi
done
for package in $packages; do
	(
		cd "$package"
		if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
			npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
			touch node_modules/.package-lock.json
		fi
	)
done
table=../../out/apps.txt
rm -f "$table"
status=0
node --test --test-timeout=900000 apps.test.mjs || status=$?
[ ! -e "$table" ] || cat "$table"
exit $status
