#!/bin/bash
# Has the rpm of a clean Debian install Fedora's packages of out/, upgrade the server's to
# that of out/later, and remove them, and looks at what their scripts ask of systemd and at
# what is left. It says that rpm takes them and what the scripts do; it is not Fedora, and
# nothing here knows what Fedora calls what they depend on.
#
# usage: test/package/rpm.sh [bookworm|trixie]    after make package, and package-server into out/later
set -euo pipefail
cd "$(dirname "$0")/../.."

. test/package/root.sh
found() { # the newest package that is called so
	local found
	found=$(ls -t "$1"-[0-9]*."$(uname -m)".rpm 2>/dev/null | head -n 1)
	[ -n "$found" ] || { echo "There is no package $1. Run make test-package." >&2; exit 1; }
	echo "$found"
}
main=$(found out/porchlight) server=$(found out/porchlight-control) later=$(found out/later/porchlight-control)
enter "${1:-bookworm}"
cp "$main" "$root/tmp/porchlight.rpm"
cp "$server" "$root/tmp/server.rpm"
cp "$later" "$root/tmp/later.rpm"
install rpm systemd

# Debian 12's rpm wants to be told that it is meant, and each Debian's keeps its list in the
# home otherwise. It knows no package. What a script did wrong it says, and goes on. Its
# plugins would give scripts mounts of their own, which needs more than a chroot.
meant=$(in_root rpm --help | grep -o -e --force-debian || true)
rpm() {
	in_root rpm ${meant:+"$meant"} --noplugins --dbpath=/var/lib/rpm "$@" >"$root/tmp/said" 2>&1 || { cat "$root/tmp/said" >&2; return 1; }
	! grep -E 'scriptlet|warning|error' "$root/tmp/said" || exit 1
}
wrong() { echo "$*" >&2; exit 1; }
# What systemctl is asked is written down, with the program that would be started. It disables,
# which is done to files, and fails at all else: no script may mind that.
systemctl=$(in_root sh -c 'command -v systemctl')
mv "$root$systemctl" "$root/usr/bin/systemctl-itself"
cat >"$root$systemctl" <<'END'
#!/bin/sh
echo "$* $(porchlight-control version | sed 's/.* //')" >>/tmp/asked
[ "$1" = disable ] && exec systemctl-itself --root=/ disable porchlight-control.service
exit 1
END
chmod 755 "$root$systemctl"
asked() { # WHAT..., line by line, and nothing else
	[ "$(cat "$root/tmp/asked" 2>/dev/null)" = "$(printf '%s\n' "$@")" ] || wrong "systemd was asked: $(cat "$root/tmp/asked" 2>/dev/null)"
	rm -f "$root/tmp/asked"
}
said() { in_root porchlight-control version | sed 's/.* //'; }

say "installing"
mkdir -p "$root/run/systemd/system" # as where systemd runs
rpm -i --nodeps /tmp/porchlight.rpm /tmp/server.rpm
asked ''
rpm -V --nodeps porchlight porchlight-control
as_maya 'porchlight --version'
first=$(said)
in_root systemd-analyze verify --man=no /usr/lib/systemd/system/porchlight-control.service

say "an upgrade restarts the service, once the new program is there, and changes nothing else"
enabled=$root/etc/systemd/system/multi-user.target.wants/porchlight-control.service
in_root systemctl-itself --root=/ -q enable porchlight-control.service
echo 'url: https://porchlight.example' >"$root/etc/porchlight/control.yaml"
echo hush >"$root/etc/porchlight/secrets/mail"
rpm -U --nodeps /tmp/later.rpm
second=$(said)
[ "$first" != "$second" ] || wrong "both are $first"
asked "daemon-reload $second" "try-restart porchlight-control.service $second"
[ -L "$enabled" ] || wrong "it is not enabled any more"
rpm -V --nodeps porchlight-control

say "removing"
rpm -e porchlight-control
asked "disable --now porchlight-control.service $second" 'daemon-reload ' # the program is gone by then
[ ! -L "$enabled" ] || wrong "it is still enabled"
grep -q hush "$root/etc/porchlight/secrets/mail" && grep -q example "$root/etc/porchlight/control.yaml" || wrong "what the operator wrote is gone"
rm -r "$root/etc/porchlight"
rpm -e porchlight
left=$(left_behind)
[ -z "$left" ] || wrong "left behind: $left"

say "where no systemd runs, as in an image, nothing is asked"
rmdir "$root/run/systemd/system"
rpm -i --nodeps /tmp/server.rpm
rpm -U --nodeps /tmp/later.rpm
rpm -e porchlight-control
asked ''
left=$(left_behind)
[ -z "$left" ] || wrong "left behind: $left"
