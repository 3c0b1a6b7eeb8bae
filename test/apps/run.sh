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
. ../ready.sh
export PORCHLIGHT_APPS=${1:-}
setup=apps packages="../e2e quick ."
commands="/usr/bin/chromium certutil nginx apache2 openssl git go node npm"
if [ "$PORCHLIGHT_APPS" = quick ]; then
	setup=test packages="../e2e quick"
else
	commands+=" rclone radicale mariadbd php icecast2 mpv"
fi
PATH=$PATH:/usr/sbin has_commands $setup $commands
has_programs
for package in $packages; do has_packages "$package"; done
table=../../out/apps.txt
rm -f "$table"
status=0
node --test --test-timeout=900000 apps.test.mjs || status=$?
[ ! -e "$table" ] || cat "$table"
exit $status
