#!/bin/bash
# End-to-end tests: bin/porchlight, Chromium, Node-RED, Radicale.
set -euo pipefail
cd "$(dirname "$0")"
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch node_modules/.package-lock.json
fi
npm test
