#!/bin/sh
# Installs a release of Porchlight, or brings an installed one to it.
#
#   curl -fsSO https://control.example/install/install.sh
#   sh install.sh https://control.example/install
#
# It says what it does before it does it. The first time it trusts the server it is told, or the
# key that you name; the key is kept, and later releases have to be signed by that one.
# Nothing runs as another user but the package manager, and that only with --package.
set -eu

usage() {
	cat <<'END'
usage: sh install.sh ADDRESS [options]     ADDRESS holds the files of a release

  --server       porchlight-control, the server, in the place of porchlight
  --to DIR       where the program goes (else ~/.local/bin)
  --package      the package of this system in the place of the program (asks sudo)
  --key KEY      the release's public key, as its publisher told you
  --data DIR     the data directory, where it is not the usual one
  --config FILE  with --server: its configuration, where it has one
  --downgrade    take an older version, if your data fits it
  --unsigned     take a release that nobody signed
END
}
say() { printf '%s\n' "$*"; }
fail() { printf 'install: %s\n' "$*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || fail "$1 is missing: $2"; }

# What is asked for ------------------------------------------------------------

address='' program=porchlight to='' package='' key='' data='' config='' downgrade='' unsigned=''
while [ $# -gt 0 ]; do
	case $1 in
	--to | --key | --data | --config)
		[ $# -gt 1 ] || fail "$1 needs a value"
		case $1 in --to) to=$2 ;; --key) key=$2 ;; --data) data=$2 ;; --config) config=$2 ;; esac
		shift
		;;
	--server) program=porchlight-control ;;
	--package) package=yes ;;
	--downgrade) downgrade=yes ;;
	--unsigned) unsigned=yes ;;
	-h | --help) usage; exit 0 ;;
	-*) usage >&2; exit 2 ;;
	*) [ -z "$address" ] || { usage >&2; exit 2; }; address=${1%/} ;;
	esac
	shift
done
case $address in
*@*) fail "the address must not have a name or a password in it" ;;
https://*) protocol='=https' ;;
http://127.0.0.1:* | http://localhost:*) protocol='=http,https' ;; # of this computer
'') usage >&2; exit 2 ;;
*) fail "the address has to begin with https://" ;;
esac
need curl "install it first"
need sha256sum "install coreutils first"
case $(uname -s) in Linux) os=linux ;; Darwin) os=darwin ;; *) fail "this is for Linux and macOS" ;; esac
case $os-$(uname -m) in
darwin-*) kind=universal ;;
*-x86_64) kind=amd64 ;;
*-aarch64 | *-arm64) kind=arm64 ;;
*-armv7* | *-armv8l) kind=armv7 ;;
*) fail "there is no program for $(uname -m)" ;;
esac
: "${HOME:?is not set}"
to=${to:-$HOME/.local/bin}
[ -z "$package" ] || to=/usr/bin
installed=$to/$program
kept=${XDG_CONFIG_HOME:-$HOME/.config}/porchlight/release.pub # the installed key
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

fetch() { # NAME MOST
	curl -fsS --retry 3 --proto "$protocol" --max-redirs 0 --max-time 1800 --max-filesize "$2" -o "$scratch/$1" "$address/$1" ||
		fail "$address/$1 could not be fetched"
	# Where its length is not said beforehand, curl counts nothing.
	[ "$(wc -c <"$scratch/$1")" -le "$2" ] || fail "$address/$1 is too large"
}

# Whose release it is ----------------------------------------------------------

# The 32 bytes of a key, in base64, of what update notices name it by or of minisign's.
bare() {
	printf '%s' "$1" | base64 -d 2>/dev/null >"$scratch/key" || fail "that is no key"
	case $(wc -c <"$scratch/key" | tr -d ' ') in
	32 | 42) tail -c 32 "$scratch/key" | base64 ;;
	*) fail "that is no key" ;;
	esac
}
second() { sed -n 2p "$1"; }

# Ed25519 by openssl: 16 letters make a key what it reads.
signed() { # FILE SIGNATURE KEY
	{ echo "-----BEGIN PUBLIC KEY-----"; echo "MCowBQYDK2VwAyEA$3"; echo "-----END PUBLIC KEY-----"; } >"$scratch/pem"
	openssl pkeyutl -verify -pubin -inkey "$scratch/pem" -rawin -in "$1" -sigfile "$2" >/dev/null 2>&1
}

say "Porchlight from $address"
fetch SHA256SUMS 100000
version=''
if [ -n "$unsigned" ]; then
	[ ! -e "$kept" ] || fail "releases here are signed by the key in $kept, and this one would not be. Remove that file if you mean it"
	say "Nobody signed this release: you trust $address, and everybody who can change what it serves."
else
	need openssl "it checks signatures (or say --unsigned, and trust the server alone)"
	openssl pkeyutl -help 2>&1 | grep -q rawin || fail "openssl here is too old for these signatures: install OpenSSL 3"
	fetch SHA256SUMS.minisig 2000
	if [ -e "$kept" ]; then
		public=$(bare "$(second "$kept")")
		[ -z "$key" ] || [ "$(bare "$key")" = "$public" ] || fail "that is not the key in $kept, which signed what is installed"
		say "It has to be signed by the key you installed before ($kept)."
	elif [ -n "$key" ]; then
		public=$(bare "$key")
		say "It has to be signed by the key you named."
	else
		fetch porchlight.pub 1000
		public=$(bare "$(second "$scratch/porchlight.pub")")
		say "This first time you trust $address. Compare the key's fingerprint with what its publisher says elsewhere:"
	fi
	say "  $(printf '%s' "$public" | base64 -d | sha256sum | cut -c 1-64)"
	second "$scratch/SHA256SUMS.minisig" | base64 -d 2>/dev/null | tail -c 64 >"$scratch/signature" || true
	comment=$(sed -n 's/^trusted comment: //p' "$scratch/SHA256SUMS.minisig")
	sed -n 4p "$scratch/SHA256SUMS.minisig" | base64 -d 2>/dev/null >"$scratch/global" || true
	{ cat "$scratch/signature"; printf '%s' "$comment"; } >"$scratch/commented"
	signed "$scratch/SHA256SUMS" "$scratch/signature" "$public" && signed "$scratch/commented" "$scratch/global" "$public" ||
		fail "this release is not signed by that key. Nothing was changed"
	version=${comment#porchlight }
fi

# What is there, and what it becomes ---------------------------------------------

case $package in
'') pattern="${program}_[^ ]*_${os}_$kind" ;;
*)
	if command -v dpkg >/dev/null; then
		pattern="${program}_[^ ]*_$kind\\.deb"
	elif command -v rpm >/dev/null; then
		pattern="$program-[0-9][^ ]*\\.$(uname -m)\\.rpm"
	else
		fail "--package is for systems with dpkg or rpm"
	fi
	;;
esac
name=$(sed -n "s/^[0-9a-f]\\{64\\}  \\($pattern\\)\$/\\1/p" "$scratch/SHA256SUMS")
case $name in
'' | *'
'*) fail "this release has no file for this computer ($pattern)" ;;
esac
spoken() { "$1" --version 2>/dev/null | sed 's/.* //' | head -n 1; }
was=''
[ ! -x "$installed" ] || was=$(spoken "$installed")
older() { # whether $1 is an earlier version than $2; what stands before a version comes before it
	a=$(printf %s "${1%%+*}" | tr - '~') b=$(printf %s "${2%%+*}" | tr - '~')
	[ "$a" != "$b" ] && [ "$(printf '%s\n' "$a" "$b" | sort -V | head -n 1)" = "$a" ]
}
fetch "$name" 300000000
(cd "$scratch" && grep "  $name\$" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) || fail "$name is not the file that was signed. Nothing was changed"

new=$scratch/$name
case $package in
'') ;;
*)
	mkdir "$scratch/unpacked"
	case $name in
	*.deb) dpkg-deb -x "$new" "$scratch/unpacked" ;;
	*.rpm) (cd "$scratch/unpacked" && rpm2cpio "$new" | cpio -id --quiet) ;;
	esac
	new=$scratch/unpacked/usr/bin/$program
	;;
esac
chmod 755 "$new"
becomes=$(spoken "$new")
[ -n "$becomes" ] || fail "$name does not run here. Nothing was changed"
[ -z "$version" ] || [ "$version" = "$becomes" ] || fail "$name says that it is $becomes, and was signed as $version. Nothing was changed"

at() { # where the data is, as arguments
	[ -z "$config" ] || set -- "$@" --config "$config"
	[ -z "$data" ] || set -- "$@" --data "$data"
	"$@"
}
keep() { # the key, for later releases
	[ -z "$unsigned" ] && [ ! -e "$kept" ] || return 0
	(umask 077 && mkdir -p "${kept%/*}")
	printf 'untrusted comment: the key that signs releases of Porchlight here\n%s\n' "$public" >"$kept"
}
if [ "$was" = "$becomes" ] && [ -z "$package" ] && cmp -s "$new" "$installed"; then
	keep
	say "$program $becomes is installed already."
	exit
fi
back=''
if [ -n "$was" ] && older "$becomes" "$was"; then
	[ -n "$downgrade" ] || fail "$becomes is older than $was, which is installed. If you mean it, say --downgrade"
	back=yes
fi
say "This puts $program $becomes into $installed${was:+, in the place of $was}."

# The service, if one runs, ends what is under way and starts again at the end.
service=''
case $program in
porchlight) unit='systemctl --user' ;;
*) unit=systemctl; [ "$(id -u)" = 0 ] || unit='sudo systemctl' ;;
esac
if [ -n "$was" ] && [ "$program$package" != porchlight-control ] && command -v systemctl >/dev/null && systemctl ${unit##*systemctl} is-active --quiet "$program" 2>/dev/null; then
	service=yes
fi
resume() {
	[ -z "$service" ] || { say "Starting $program again."; $unit start "$program"; }
}

# What the new program cannot use it says here, before anything is changed.
fits() {
	[ -n "$was" ] && { [ $program = porchlight ] || [ -n "$data$config" ]; } || return 0
	checked=0
	at "$new" upgrade --check >"$scratch/said" 2>&1 || checked=$?
	[ $checked = 0 ] || [ $checked = 3 ] # 3 is that there is no store yet
}
refuse() {
	cat "$scratch/said" >&2
	fail "so $becomes was not installed. Nothing was changed"
}
alone='' # one that runs may be all that is in the way
if ! fits; then
	[ -n "$service" ] || refuse
	[ $program = porchlight-control ] || grep -q 'is using this data directory' "$scratch/said" || refuse
	alone=yes
fi
if [ -n "$was" ] && [ $program = porchlight-control ]; then
	if [ -n "$data$config" ]; then
		copy=$(pwd)/porchlight-before-$becomes-$(date +%Y%m%d%H%M%S).backup
		say "A backup first, into $copy."
		at "$installed" backup "$copy" || fail "there is no backup, so nothing was changed"
	else
		say "No backup is made: you named neither --data nor --config."
		[ -z "$back" ] || fail "to go back to an older version, name one of them"
	fi
fi
if [ -n "$service" ]; then
	trap 'resume; rm -rf "$scratch"' EXIT
	say "Stopping $program: what is under way may finish."
	$unit stop "$program"
	[ -z "$alone" ] || fits || refuse
elif [ $program = porchlight ] && grep -q 'until you start it again' "$scratch/said" 2>/dev/null; then
	say "It runs, and goes on as $was until you start it again."
fi

# The change -----------------------------------------------------------------------

if [ -n "$package" ]; then
	root=sudo
	[ "$(id -u)" != 0 ] || root=
	case $name in
	*.deb) $root apt-get install -y ${back:+--allow-downgrades} "$scratch/$name" ;;
	*.rpm) $root dnf "$([ -z "$back" ] && echo install || echo downgrade)" -y "$scratch/$name" ;;
	esac
else
	mkdir -p "$to"
	# Whole, or not at all: beside it first, then in its place.
	beside=$to/.$program.new.$$
	cp "$new" "$beside" && chmod 755 "$beside" && mv -f "$beside" "$installed" || {
		rm -f "$beside"
		fail "$installed could not be written. What was there is there still"
	}
fi
keep
say "Installed: $program $becomes."
case ":$PATH:" in *":$to:"*) ;; *) say "It is not on your path yet: add $to to it." ;; esac
case $program$was in
porchlight) say "Next: $installed agent --local" ;;
porchlight-control) say "Next: $installed serve --help" ;;
esac
