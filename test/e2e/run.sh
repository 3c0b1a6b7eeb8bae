#!/bin/bash
# End-to-end tests: the programs in bin/ (or $PORCHLIGHT_PROGRAMS), Chromium, Node-RED, Radicale.
set -euo pipefail
cd "$(dirname "$0")"
. ../ready.sh
has_commands test /usr/bin/chromium certutil radicale go node npm python3 php
has_programs
has_packages .
tests=(*.test.mjs)
# What starts no agent is the same whatever reads visitors' requests: see build/otherway.sh.
[ -z "${PORCHLIGHT_HTTP:-}" ] || mapfile -t tests < <(grep -lE 'startPorchlight|wayIn' "${tests[@]}")
npm test -- "${tests[@]}"
