#!/bin/bash
# A Debian 13 with its Wine, in which programs for Windows are tried: a debootstrap root,
# made once and kept outside this checkout. Nothing but that root is changed. It needs root,
# for mounts in a namespace of their own and for chroot.
#
# usage: build/wine.sh setup              make the root, unless it is there
#        build/wine.sh exec FILE ARGS...  run a program in a prefix that PREFIX names
#        build/wine.sh end                end what runs in that prefix
#
# PORCHLIGHT_WINDOWS_ROOT is the root (default ~/.cache/porchlight/windows), PREFIX a
# directory in it (default /home/maya/tests), copied from a fresh one where it is missing.
# `go test -exec "build/wine.sh exec"` runs tests built with GOOS=windows.
set -euo pipefail
checkout=$(cd "$(dirname "$0")/.." && pwd)
root=${PORCHLIGHT_WINDOWS_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/porchlight/windows}
prefix=${PREFIX:-/home/maya/tests}
fail() { echo "wine: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "run this as root: it mounts and changes its root"

# A command as maya in the root, in a mount namespace that ends with it.
inside() { # DIRECTORY COMMAND...
	unshare --mount --propagation private bash -c '
		set -e
		root=$1 checkout=$2 dir=$3
		shift 3
		mount -t proc proc "$root/proc"
		mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
		mkdir -p "$root/src"
		mount --bind "$checkout" "$root/src"
		exec chroot --userspec=maya:maya "$root" /usr/bin/env -i -C "$dir" HOME=/home/maya USER=maya PATH=/usr/bin:/bin LC_ALL=C.UTF-8 \
			WINEDEBUG=-all WINEDLLOVERRIDES="mscoree=;mshtml=;winemenubuilder.exe=" WINEPREFIX="'"$prefix"'" "$@"' - "$root" "$checkout" "$@"
}

setup() {
	[ ! -e "$root/home/maya/fresh/system.reg" ] || return 0
	command -v debootstrap >/dev/null || fail "debootstrap is missing. Run build/setup.sh package"
	echo "Making a Debian 13 with wine and wine64 in $root" >&2
	rm -rf --one-file-system "$root"
	mkdir -p "$(dirname "$root")"
	local mirror f
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sed -n 1p)
	debootstrap --variant=minbase --include=ca-certificates trixie "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 || { tail -5 "$root.log" >&2; fail "debootstrap"; }
	for f in /etc/resolv.conf /etc/apt/apt.conf.d /etc/ssl/certs/ca-certificates.crt; do
		[ ! -e "$f" ] || cp -aL "$f" "$root$(dirname "$f")/"
	done
	mkdir -p "$root/dev/shm"
	local in=(chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8)
	"${in[@]}" apt-get -qq update >>"$root.log" 2>&1
	"${in[@]}" apt-get -qq install -y --no-install-recommends wine wine64 >>"$root.log" 2>&1 || { tail -5 "$root.log" >&2; fail "apt-get install wine"; }
	"${in[@]}" apt-get clean
	"${in[@]}" useradd -m maya
	prefix=/home/maya/fresh inside /home/maya wineboot -i >>"$root.log" 2>&1
	prefix=/home/maya/fresh inside /home/maya wineserver -w
}

case ${1:-} in
setup) setup ;;
exec)
	shift
	[ -e "$root/home/maya/fresh/system.reg" ] || fail "there is no Wine in $root. Run build/wine.sh setup"
	if [ ! -e "$root$prefix/system.reg" ]; then
		cp -a "$root/home/maya/fresh/." "$root$prefix.new"
		mv "$root$prefix.new" "$root$prefix"
	fi
	program=$1
	shift
	case $program in
	/*.exe) # built on this machine
		if [ -e "$program" ]; then
			copy=/tmp/$(basename "$program" .exe)-$$.exe
			install -m 755 "$program" "$root$copy"
			trap 'rm -f "$root$copy"' EXIT
			program=$copy
		fi
		;;
	esac
	dir=/home/maya
	case $PWD/ in "$checkout"/*) dir=/src${PWD#"$checkout"} ;; esac
	inside "$dir" wine "$program" "$@"
	;;
end) inside /home/maya wineserver -k || true ;;
*) fail "say setup, exec or end" ;;
esac
