# shellcheck shell=bash
# A clean Debian to install packages in, for the scripts beside this one: enter RELEASE makes
# it, in $root, and takes it away at the end. chroot and mounts need root (or sudo). Roots are
# kept outside of this clone, as they were made, and used again.

[ "$(id -u)" = 0 ] || exec sudo --preserve-env=http_proxy,https_proxy,no_proxy,PORCHLIGHT_ROOTS,PORCHLIGHT_SHOTS "$0" "$@"

say() { printf '%s\n' "== $*"; }

# The newest package of this tree that is called so.
newest() {
	local found
	found=$(ls -t out/"$1"_*_"$(dpkg --print-architecture)".deb 2>/dev/null | head -n 1)
	[ -n "$found" ] || { echo "There are no packages in out/. Run make package." >&2; exit 1; }
	echo "$found"
}

enter() { # RELEASE
	command -v debootstrap >/dev/null || { echo "debootstrap is missing. Run build/setup.sh package." >&2; exit 1; }
	local roots=${PORCHLIGHT_ROOTS:-/var/tmp/porchlight-roots} mirror f
	base=$roots/$1 root=$roots/$1.$$
	if [ ! -e "$base/etc/debian_version" ]; then
		say "making a clean Debian ($1)"
		rm -rf "$base.new"
		mkdir -p "$roots"
		# From the mirror of this machine; from Debian's own where it has none of Debian's.
		mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sed -n 1p)
		debootstrap --variant=minbase --include=ca-certificates "$1" "$base.new" ${mirror:+"$mirror"} >/dev/null
		rm -rf "$base.new/var/cache/apt/archives"/*.deb
		mv "$base.new" "$base"
	fi
	mounts=()
	trap leave EXIT
	cp -a "$base" "$root"
	# What apt needs to reach the mirror from here.
	for f in /etc/resolv.conf /etc/apt/apt.conf.d /etc/ssl/certs/ca-certificates.crt; do
		[ ! -e "$f" ] || cp -aL "$f" "$root$(dirname "$f")/"
	done
	mount -t proc proc "$root/proc" && mounts+=(/proc)
	mkdir -p "$root/dev/shm" "$root/dev/pts"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" && mounts+=(/dev/shm)
	mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" && mounts+=(/dev/pts)
	ln -sf pts/ptmx "$root/dev/ptmx"
	in_root apt-get -qq update >/dev/null
}

leave() {
	local code=$? p i
	# Processes of the root are ended before it goes.
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/root" 2>/dev/null)" = "$root" ] && kill -9 "${p#/proc/}" 2>/dev/null || true
	done
	for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do umount -l "$root${mounts[i]}" || true; done
	rm -rf --one-file-system "$root"
	[ $code = 0 ] && say "all well on Debian $(cat "$base/etc/debian_version")" || say "FAILED"
	exit $code
}

in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
install() {
	in_root apt-get -qq install -y --no-install-recommends --allow-downgrades "$@" >/dev/null 2>"$root/tmp/apt.log" || { cat "$root/tmp/apt.log" >&2; exit 1; }
}
# maya is the new user; she is made by her name alone.
as_maya() {
	in_root id maya >/dev/null 2>&1 || { in_root useradd -m maya && as_maya 'mkdir -m 700 /tmp/maya-run'; }
	in_root /bin/su maya -s /bin/bash -c "cd; export PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR=/tmp/maya-run LC_ALL=C.UTF-8; $1"
}
left_behind() { # what a purge left of the packages
	in_root find /usr /etc /var/lib -iname '*porchlight*' -not -path '/usr/local/*' -not -path '/var/lib/dpkg/*' -not -path '/var/cache/*' -not -path '*/deb-systemd-helper*'
}
