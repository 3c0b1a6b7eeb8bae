#!/bin/bash
# Installs the Debian packages of out/ on a clean Debian, uses them as a new
# user, takes them away again, and looks at what is left. The clean system is a
# debootstrap root below out/; chroot and mounts need root (or sudo).
#
# usage: test/package/run.sh [bookworm|trixie]    after make package
set -euo pipefail
cd "$(dirname "$0")/../.."

[ "$(id -u)" = 0 ] || exec sudo --preserve-env=http_proxy,https_proxy,no_proxy "$0" "$@"

release=${1:-bookworm}
debs=$(ls -t out/porchlight_*.deb out/porchlight-control_*.deb 2>/dev/null || true)
main=$(grep -m1 'porchlight_' <<<"$debs") server=$(grep -m1 'porchlight-control_' <<<"$debs")
[ -n "$main" ] && [ -n "$server" ] || { echo "There are no packages in out/. Run make package." >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "debootstrap is missing. Run build/setup.sh package." >&2; exit 1; }

root=$PWD/out/clean-$release
say() { printf '%s\n' "== $*"; }

# A root that was made before is used again; what was installed in it is not.
base=$root.base
if [ ! -e "$base/etc/debian_version" ]; then
	say "making a clean Debian ($release)"
	rm -rf "$base.new"
	# From the mirror of this machine; from Debian's own where it has none of Debian's.
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sed -n 1p)
	debootstrap --variant=minbase --include=ca-certificates "$release" "$base.new" ${mirror:+"$mirror"} >/dev/null
	rm -rf "$base.new/var/cache/apt/archives"/*.deb
	mv "$base.new" "$base"
fi
rm -rf --one-file-system "$root"
cp -a "$base" "$root"
# What apt needs to reach the mirror from here.
for f in /etc/resolv.conf /etc/apt/apt.conf.d /etc/ssl/certs/ca-certificates.crt; do
	[ ! -e "$f" ] || cp -aL "$f" "$root$(dirname "$f")/"
done

mounts=()
tidy() {
	code=$?
	# Processes of the root are ended before it goes.
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/root" 2>/dev/null)" = "$root" ] && kill -9 "${p#/proc/}" 2>/dev/null || true
	done
	for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do umount -l "$root${mounts[i]}" || true; done
	rm -rf --one-file-system "$root"
	[ $code = 0 ] && say "all well on Debian $(cat "$base/etc/debian_version")" || say "FAILED"
	exit $code
}
trap tidy EXIT
mount -t proc proc "$root/proc" && mounts+=(/proc)
mkdir -p "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" && mounts+=(/dev/shm)
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" && mounts+=(/dev/pts)
ln -sf pts/ptmx "$root/dev/ptmx"

in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
as_maya() { in_root /bin/su maya -s /bin/bash -c "cd; export PATH=/usr/bin:/bin XDG_RUNTIME_DIR=/tmp/maya-run LC_ALL=C.UTF-8; $1"; }

say "installing"
cp "$main" "$root/tmp/porchlight.deb"
cp "$server" "$root/tmp/porchlight-control.deb"
in_root apt-get -qq update >/dev/null
in_root apt-get -qq install -y --no-install-recommends /tmp/porchlight.deb /tmp/porchlight-control.deb >/dev/null 2>"$root/tmp/apt.log" || { cat "$root/tmp/apt.log" >&2; exit 1; }
# For this test only: an app to publish, a visitor, a screen.
in_root apt-get -qq install -y --no-install-recommends python3 curl xvfb xauth dbus desktop-file-utils man-db systemd >/dev/null 2>&1
in_root useradd -m maya
as_maya 'mkdir -m 700 /tmp/maya-run'

say "what was installed"
as_maya 'porchlight --version && porchlight-desktop --version && porchlight-control version'
in_root desktop-file-validate /usr/share/applications/porchlight.desktop
in_root XDG_RUNTIME_DIR=/tmp systemd-analyze verify --man=no --user /usr/lib/systemd/user/porchlight.service
in_root systemd-analyze verify --man=no /usr/lib/systemd/system/porchlight-control.service
as_maya 'man -w porchlight porchlight-publish porchlight-desktop porchlight-control >/dev/null'
as_maya 'bash -n /usr/share/bash-completion/completions/porchlight'

say "the agent publishes an app, and a visitor opens it"
as_maya '
set -eu
data=$HOME/.local/share/porchlight
mkdir -p www && echo "hello from maya" >www/index.html
python3 -m http.server --bind 127.0.0.1 --directory www 18000 >/dev/null 2>&1 & app=$!
porchlight agent --local --api 127.0.0.1:0 --https 127.0.0.1:18443 >agent.log 2>&1 & agent=$!
for i in $(seq 100); do porchlight status >/dev/null 2>&1 && break; kill -0 $agent || { cat agent.log; exit 1; }; sleep 0.1; done
porchlight publish notes --label Notes --port 18000
porchlight approve notes
link=$(porchlight open notes --print)
curl -sS --fail --cacert $data/ca/root.pem -c jar -b jar -L "$link" | grep -q "hello from maya"
kill $agent; wait $agent; kill $app
'

say "the menu-bar app starts, and answers"
as_maya '
set -eu
setsid xvfb-run -a dbus-run-session -- porchlight-desktop --secret-file --hidden --api 127.0.0.1:0 --https 127.0.0.1:18443 >desktop.log 2>&1 & desktop=$!
for i in $(seq 100); do porchlight apps --json 2>/dev/null | grep -q notes && break; kill -0 $desktop || break; sleep 0.1; done
porchlight apps --json | grep -q notes || { cat desktop.log; exit 1; }
kill -- -$desktop # the screen and the session bus with it
wait $desktop || true # how xvfb-run ends says nothing
'

say "removing"
in_root apt-get -qq purge -y porchlight porchlight-control >/dev/null
left=$(in_root find /usr /etc /var/lib -iname '*porchlight*' -not -path '/var/lib/dpkg/*' -not -path '/var/cache/*' -not -path '*/deb-systemd-helper*')
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
as_maya 'test -s .local/share/porchlight/agent.db' # the owner's own stays
