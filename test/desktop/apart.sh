#!/bin/sh
# Runs a program in a network of its own, where the system allows it.
#
#   test/desktop/apart.sh PROGRAM [ARGUMENT...]
#
# The window looks at every program of its owner that listens on this computer. Tests
# of other parts run at the same time and count who connects to them.
set -eu
if [ "$(id -u)" = 0 ]; then
	if unshare --net ip link set lo up 2>/dev/null; then
		exec unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$@"
	fi
elif unshare --map-root-user --net unshare --map-user="$(id -u)" --map-group="$(id -g)" ip addr >/dev/null 2>&1; then
	# Root of the namespace is who may make it, and nobody a program should be.
	exec unshare --map-root-user --net sh -c 'ip link set lo up && user=$1 group=$2 && shift 2 &&
		exec unshare --map-user="$user" --map-group="$group" "$@"' sh "$(id -u)" "$(id -g)" "$@"
fi
echo "apart.sh: no network of its own here; programs of other tests may be looked at" >&2
exec "$@"
