#!/bin/bash
# The benchmarks: builds what is compared with and what is measured, waits until the
# machine is quiet again, and measures.
#
#   build/bench.sh PART [profile]      PART: all, agent, relay, tunnel, control, sign-in,
#                                      desktop, growth
#
# Rows go to out/bench/results.json, and on a quiet machine the tables and plots of
# docs/measured/bench.md are written. With profile, each process of ours leaves a profile
# of its processor time in out/bench/profiles instead, of one round. The part desktop has
# none: it starts the programs as people have them.
set -euo pipefail
cd "$(dirname "$0")/.."
part=${1:-all}
if [ "$part ${2:-}" = "desktop profile" ]; then
	echo "the part desktop starts the programs as people have them, and these leave no profile" >&2
	exit 2
fi
out=$PWD/out/bench
mkdir -p "$out"
case $part in
all | agent)
	go -C test/bench/caddy build -o "$out/caddy" github.com/caddyserver/caddy/v2/cmd/caddy
	;;&
all | relay | tunnel)
	go -C test/bench/frp build -o "$out/" github.com/fatedier/frp/cmd/frps github.com/fatedier/frp/cmd/frpc
	go -C test/bench/chisel build -o "$out/chisel" github.com/jpillora/chisel
	;;&
all | desktop) make --no-print-directory desktop cli ;;&
all | sign-in)
	make --no-print-directory cli
	build/before.sh "$out/before" c3b4a6fe
	;;
esac
go build -o "$out/bench" ./test/bench
if [ "${2:-}" = profile ]; then
	mkdir -p "$out/profiles"
	"$out/bench" -part "$part" -tools "$out" -rounds 1 -span 3s -profile "$out/profiles"
	ls "$out/profiles"
	exit
fi
"$out/bench" -part "$part" -tools "$out" -wait 3m -out "$out/results.json" -docs docs/measured/bench.md
