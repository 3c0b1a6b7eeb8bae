#!/bin/sh
# Prints how often the idle menu bar wakes up, and what it keeps in memory: voluntary
# context switches of all its threads over a while, with one app that is on and nobody
# there. It judges nothing: a busy machine counts more.
#
#   build/wakeups.sh [SECONDS]
#
# Needs Xvfb and dbus-daemon, and bin/ built (make desktop cli).
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
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
export HOME="$dir/home" XDG_RUNTIME_DIR="$dir/run"

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
bin/porchlight approve notes >/dev/null

switches() { cat /proc/"$app"/task/*/status | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'; }
sleep 10 # the start is over
before=$(switches)
[ -z "${WAKEUPS_TRACE:-}" ] || { timeout "$seconds" strace -f -r -o "$WAKEUPS_TRACE" -p "$app" || true; }
[ -n "${WAKEUPS_TRACE:-}" ] || sleep "$seconds"
after=$(switches)
awk -v n=$((after - before)) -v s="$seconds" 'BEGIN { printf "wake-ups of the idle menu bar: %d in %d s, %.1f a second\n", n, s, n / s }'
[ -z "${WAKEUPS_LOG:-}" ] || cp "$dir/log" "$WAKEUPS_LOG"
awk '/^Private_Dirty/ { printf "private memory, no window yet: %.1f MiB\n", $2 / 1024 }' /proc/"$app"/smaps_rollup
