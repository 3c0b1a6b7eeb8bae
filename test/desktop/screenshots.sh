#!/bin/sh
# Makes the pictures of the documentation from the real program (see doc.go), and more
# of them for people to look at, into out/pictures.
#
#   test/desktop/screenshots.sh [DIRECTORY]     default: docs/pictures
#
# The program runs as an owner called maya with every port free, in a mount and
# a network namespace of its own, where porch.example leads to a server of its own.
# Packages: those of run.sh, and ffmpeg fonts-inter iproute2 python3.
set -eu
cd "$(dirname "$0")/../.."
if [ "${1:-}" = --inside ]; then
	# Nobody outside sees this mount or this network.
	over() { # FILE: what is read takes its place
		own=$(mktemp)
		cat >"$own"
		chmod 644 "$own"
		mount --bind "$own" "$1"
		rm "$own"
	}
	sed "s/^$2:/maya:/" /etc/passwd | over /etc/passwd
	{
		cat /etc/hosts
		printf '127.0.0.1 %s.porch.example\n' control maya notes.maya photos.maya home.maya paperless.maya
	} | over /etc/hosts
	ip link set lo up
	mount -t tmpfs -o mode=1777 tmpfs /tmp/.X11-unix # see apart.sh
	cd test/desktop
	exec "$3" -test.run "${PORCHLIGHT_ONLY:-^(TestPictures|TestOwnersStory)\$}" -test.v -test.timeout 20m
fi

PORCHLIGHT_DESKTOP="${PORCHLIGHT_DESKTOP:-$PWD/bin/porchlight-desktop}"
PORCHLIGHT_PICTURES="${1:-$PWD/docs/pictures}"
mkdir -p "$PORCHLIGHT_PICTURES"
PORCHLIGHT_PICTURES=$(cd "$PORCHLIGHT_PICTURES" && pwd)
PORCHLIGHT_GALLERY="$PWD/out/pictures"
mkdir -p "$PORCHLIGHT_GALLERY"
export PORCHLIGHT_DESKTOP PORCHLIGHT_PICTURES PORCHLIGHT_GALLERY
if [ ! -x "$PORCHLIGHT_DESKTOP" ]; then
	echo "screenshots.sh: $PORCHLIGHT_DESKTOP is not there; build it with: make desktop" >&2
	exit 2
fi
if ! fc-list : family | grep -q '^Inter'; then
	echo "screenshots.sh: the typeface Inter is missing; install it with: build/setup.sh test" >&2
	exit 2
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The story's apps are a part of it, and the pictures show what they are called.
go test -c -tags rig -o "$scratch/demo-apps" ./test/desktop
# Root of the namespace is enough where we are not root already.
as=
[ "$(id -u)" = 0 ] || as=--map-root-user
unshare $as --mount --net "$PWD/test/desktop/screenshots.sh" --inside root "$scratch/demo-apps"
