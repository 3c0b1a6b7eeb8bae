#!/bin/bash
# End-to-end tests: the programs in bin/ (or $PORCHLIGHT_PROGRAMS), Chromium, Node-RED, Radicale.
set -euo pipefail
cd "$(dirname "$0")"
. ../ready.sh
has_commands test /usr/bin/chromium certutil radicale go node npm python3 php
has_programs
has_packages .
go build -o /dev/null ../mailserver/cmd # what it takes is fetched before there is no network
exec ../desktop/apart.sh --online npm test -- *.test.mjs
