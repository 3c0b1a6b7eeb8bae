#!/bin/bash
# Runs tests with the other of the two ways in: with what reads visitors' requests
# when `porchlight agent --http` is not left as it is (after `make race`).
#
#   build/otherway.sh COMMAND...
set -euo pipefail
cd "$(dirname "$0")/.."
usual=$(bin/race/porchlight agent --help | sed -nE 's/^ +--http .*\(default "(.*)"\)$/\1/p')
case $usual in
own) other=go ;;
go) other=own ;;
*) echo "otherway: the flag --http has the default '$usual', which is neither own nor go" >&2; exit 1 ;;
esac
echo "Visitors' requests are read by --http $other."
PORCHLIGHT_HTTP=$other exec "$@"
