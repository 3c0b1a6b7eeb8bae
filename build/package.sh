#!/bin/bash
# Makes the packages of this machine's architecture, for Debian's relatives and Fedora's,
# into OUT (else out/), and looks Debian's over where lintian is. The server's needs
# nothing of a desktop, nor of the machine: ARCHES names others. LABEL stands in their
# names in the place of the version.
# usage: [OUT=DIR] [LABEL=...] [ARCHES='amd64 arm64'] build/package.sh VERSION LDFLAGS TAGS [server|desktop]
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(build/version.sh debian "$1") ldflags=$2 tags=$3
case ${4:-} in
'') programs=(porchlight porchlight-control) ;;
desktop) programs=(porchlight) ;;
server) programs=(porchlight-control) ;;
*) echo "say server or desktop, not '$4'" >&2; exit 2 ;;
esac
label=${LABEL:-$version} out=${OUT:-out}
export VERSION=$version ARCH
native=$(go env GOARCH)
stage=out/stage # the nfpm files name it, too
rm -rf "$stage"
trap 'rm -rf "$stage"' EXIT
umask 022

# Everything of the same commit is byte for byte the same.
SOURCE_DATE_EPOCH=$(build/version.sh time)
export SOURCE_DATE_EPOCH

of() { [ "$1" = porchlight ] && echo ./agent/cmd/porchlight || echo ./control/cmd/porchlight-control; }
mkdir -p "$stage/bin"
for program in "${programs[@]}"; do
	# Not the home of whoever builds; and the brackets that say what a switch is
	# when it is left out are noise in a manual.
	CGO_ENABLED=0 go build -buildvcs=false -tags docs -o "$stage/$program-docs" "$(of "$program")"
	HOME='~' XDG_DATA_HOME='' XDG_CONFIG_HOME='' "$stage/$program-docs" man "$stage/man/$program"
	sed -i 's/\[=false\]//; s/\[=true\]//' "$stage/man/$program"/*
	gzip -9n "$stage/man/$program"/*
	mkdir -p "$stage/completions"
	for shell in bash zsh fish; do
		"$stage/$program-docs" completion $shell >"$stage/completions/$program.$shell"
	done
	{
		cat build/linux/copyright
		# What is linked in, as a paragraph of Debian's format. The Apache License is at its end.
		"$stage/$program-docs" licenses | sed '/^ \{20,\}Apache License$/,$d; s/^/ /; s/^ *$/ ./'
	} >"$stage/copyright.$program"
	{
		printf '%s (%s) stable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n\n' "$program" "$version"
		printf ' -- The Porchlight authors <porchlight@porchlight.invalid>  %s\n' "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
	} | gzip -9n >"$stage/changelog.$program.gz"
done

# As Debian wants programs, here and below: at an address of their own each time (PIE), and
# with the tables of the linker closed before they run.
if [ "${programs[0]}" = porchlight ]; then
	go build -trimpath -buildvcs=false -buildmode=pie -tags "$tags" -ldflags "$ldflags -extldflags=-Wl,-z,relro,-z,now" -o "$stage/bin/porchlight-desktop" .
	sed "s/@VERSION@/$version/; s/@DATE@/$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)/" \
		build/linux/app.porchlight.desktop.metainfo.xml >"$stage/app.porchlight.desktop.metainfo.xml"
	appstreamcli validate --no-net --explain "$stage/app.porchlight.desktop.metainfo.xml"
	desktop-file-validate build/linux/porchlight.desktop
	gzip -9nc build/linux/porchlight-desktop.1 >"$stage/man/porchlight/porchlight-desktop.1.gz"
fi

# Everybody may read what is installed, whoever alone may read this clone.
cp -R --parents build/linux build/monitoring assets/app docs/operating.md "$stage"
chmod -R u=rwX,go=rX "$stage"

# Whoever unpacks it sees the time of the commit, whenever the files were written here.
mkdir -p "$out"
debs=() made=()
pack() { # PROGRAM, for ARCH
	local fedora=$ARCH deb rpm package
	case $ARCH in # as Fedora calls them; nfpm knows that within packages
	amd64) fedora=x86_64 ;;
	arm64) fedora=aarch64 ;;
	esac
	GOARCH=$ARCH CGO_ENABLED=0 go build -trimpath -buildvcs=false -buildmode=pie -ldflags "$ldflags" -o "$stage/bin/$1" "$(of "$1")"
	deb=$out/$1_${label}_$ARCH.deb rpm=$out/$1-$label-1.$fedora.rpm
	for package in "$deb" "$rpm"; do
		go tool -modfile=build/tools/go.mod nfpm package --config "build/linux/nfpm${1#porchlight}.yaml" --packager "${package##*.}" --target "$package"
	done
	debs+=("$deb") made+=("$deb" "$rpm")
}
for program in "${programs[@]}"; do
	arches=$native
	[ "$program" = porchlight ] || arches=${ARCHES:-$native}
	for ARCH in $arches; do pack "$program"; done
done

# lintian says that it should not run as root; CI is root.
if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on error,warning "${debs[@]}"
else
	echo "lintian is not installed, so nobody looked the packages over" >&2
fi
if [ "${programs[0]}" = porchlight ]; then
	build/flatpak/check.sh "${debs[0]}"
fi
echo "made: ${made[*]}"
