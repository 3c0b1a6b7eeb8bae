#!/bin/sh
# Runs a program in a network of its own, where the system allows it.
#
#   test/desktop/apart.sh [--online] PROGRAM [ARGUMENT...]
#
# The window looks at every program of its owner that listens on this computer. Tests
# of other parts run at the same time and count who connects to them. And a browser breaks
# off what it asks for when the network changes, as it does beside containers.
#
# With --online browsers take this one for connected: it has a cable, both ends of it, which
# make no addresses by themselves, late.
#
# Displays have a folder of their own there: an X server knows by the network alone
# that a number is taken, and would take away the socket of one outside.
set -eu
begin='mount -t tmpfs -o mode=1777 tmpfs /tmp/.X11-unix && ip link set lo up'
if [ "$1" = --online ]; then
	begin="$begin && ip link add away type veth peer name there && ip link set away addrgenmode none && ip link set there addrgenmode none && ip address add 192.0.2.1/24 dev away && ip link set away up && ip link set there up"
	shift
fi
[ -d /tmp/.X11-unix ] || mkdir -m 1777 /tmp/.X11-unix 2>/dev/null || :
if [ "$(id -u)" = 0 ]; then
	if unshare --mount --net sh -c "$begin" 2>/dev/null; then
		exec unshare --mount --net sh -c "$begin"' && exec "$@"' sh "$@"
	fi
elif unshare --map-root-user --mount --net sh -c "$begin"' && unshare --map-user="$1" --map-group="$2" true' sh "$(id -u)" "$(id -g)" 2>/dev/null; then
	# Root of the namespace is who may make it, and nobody a program should be.
	exec unshare --map-root-user --mount --net sh -c "$begin"' && user=$1 group=$2 && shift 2 &&
		exec unshare --map-user="$user" --map-group="$group" "$@"' sh "$(id -u)" "$(id -g)" "$@"
fi
echo "apart.sh: no network of its own here; programs of other tests may be looked at" >&2
exec "$@"
