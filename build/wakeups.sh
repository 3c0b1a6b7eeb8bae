#!/bin/sh
# Prints how often Porchlight wakes up while nobody does anything, and what it keeps in
# memory, in one table: voluntary context switches a second of all threads, over a while
# each, and private memory. First the menu bar with one app that is on, before its window
# was opened and after it was closed, and then an agent that runs alone, connected to a
# control plane on this computer, with nobody there, with 100 idle visitors, and with one
# more who has a stream open. It judges nothing: on a busy machine the Go runtime wakes up
# some times for each once.
#
#   build/wakeups.sh [SECONDS [flags of porchlight agent]]
#
# Needs Xvfb, openbox, xdotool and dbus-daemon, and bin/ built (make desktop cli).
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
dir=$(mktemp -d)
pids=""
end() {
	for pid in $pids; do kill "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 1' INT TERM
mkdir -m 700 "$dir/run" "$dir/home"
unset PORCHLIGHT_DATA PORCHLIGHT_API WAYLAND_DISPLAY DBUS_SESSION_BUS_ADDRESS
export GOPATH="$(go env GOPATH)" GOCACHE="$(go env GOCACHE)"
export HOME="$dir/home" NO_AT_BRIDGE=1 XDG_RUNTIME_DIR="$dir/run"

Xvfb -displayfd 3 -screen 0 1280x800x24 3>"$dir/display" >/dev/null 2>&1 &
pids="$pids $!"
cat >"$dir/bus.conf" <<BUS
<busconfig><type>session</type><listen>unix:path=$dir/bus</listen>
<policy context="default"><allow send_destination="*"/><allow own="*"/><allow receive_sender="*"/></policy></busconfig>
BUS
dbus-daemon --config-file="$dir/bus.conf" --nofork >/dev/null 2>&1 &
pids="$pids $!"
python3 -m http.server -b 127.0.0.1 18999 -d "$dir/home" >/dev/null 2>&1 &
pids="$pids $!"
until [ -s "$dir/display" ] && [ -S "$dir/bus" ]; do sleep 0.1; done
export DISPLAY=":$(cat "$dir/display")" DBUS_SESSION_BUS_ADDRESS="unix:path=$dir/bus"
openbox >/dev/null 2>&1 &
pids="$pids $!"

bin/porchlight-desktop --hidden --secret-file --data "$dir/data" --api 127.0.0.1:18765 --https 127.0.0.1:18443 >"$dir/log" 2>&1 &
app=$!
pids="$app $pids"
export PORCHLIGHT_DATA="$dir/data"
tries=0
until bin/porchlight publish notes --label Notes --port 18999 >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 60 ] || { cat "$dir/log" >&2; exit 1; }
	sleep 0.5
done
bin/porchlight approve notes >/dev/null 2>&1

row() { # "WHAT", after the start is over
	sleep 10
	strace=""
	if [ -n "${WAKEUPS_TRACE:-}" ]; then timeout "$seconds" strace -f -ttt -o "$WAKEUPS_TRACE" -p "$app" & strace=$!; fi
	n=$(switches)
	[ -z "$strace" ] || wait "$strace" || true
	sync # or a program that was just built counts, dirty in the page cache
	awk -v what="$1" -v n="$n" -v s="$seconds" '/^Private_Dirty/ { printf "%-34s %7.1f %12.1f\n", what, n / s, $2 / 1024 }' /proc/"$app"/smaps_rollup
}
switches() { # looks at each thread once a second: one that ends takes its count with it
	i=0
	while [ "$i" -le "$seconds" ]; do
		for t in /proc/"$app"/task/*; do
			awk -v t="${t##*/}" -v i="$i" '/^voluntary_ctxt_switches/ { print t, i, $2 }' "$t/status" 2>/dev/null || true
		done
		i=$((i + 1))
		sleep 1
	done | awk '!($1 in last) { last[$1] = $2 ? 0 : $3 } { n += $3 - last[$1]; last[$1] = $3 } END { print n }'
}
windows() { xdotool search --onlyvisible --name '^Porchlight$' 2>/dev/null || true; }

printf '%-34s %7s %12s\n' "idle for $seconds s" "wakes/s" "private MiB"
row "menu bar, no window yet"
bin/porchlight-desktop --data "$dir/data" # the second start has the first one show its window
until [ -n "$(windows)" ]; do sleep 0.2; done
sleep 5
xdotool windowactivate --sync "$(windows | tail -1)" key --clearmodifiers alt+F4
until [ -z "$(windows)" ]; do sleep 0.2; done
row "menu bar, window closed"
[ -z "${WAKEUPS_LOG:-}" ] || cp "$dir/log" "$WAKEUPS_LOG"
go run ./test/idle "$seconds" "$@"
