#!/bin/bash
# Makes the Debian packages of this machine's architecture, into out/, and looks
# them over; or the server's alone, for which Go and dpkg suffice.
# usage: build/package.sh VERSION LDFLAGS TAGS [server]
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(build/version.sh debian "$1") ldflags=$2 tags=$3
programs=(porchlight porchlight-control)
[ "${4:-}" != server ] || programs=(porchlight-control)
export VERSION=$version ARCH
ARCH=$(dpkg --print-architecture)
stage=out/stage # the nfpm files name it, too
rm -rf "$stage"
trap 'rm -rf "$stage"' EXIT
umask 022

# Everything of the same commit is byte for byte the same.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

# As Debian wants programs: at an address of their own each time (PIE), and with
# the tables of the linker closed before they run.
mkdir -p "$stage/bin"
for program in "${programs[@]}"; do
	case $program in
	porchlight) source=./agent/cmd/porchlight ;;
	*) source=./control/cmd/porchlight-control ;;
	esac
	CGO_ENABLED=0 go build -trimpath -buildmode=pie -ldflags "$ldflags" -o "$stage/bin/" "$source"
	# Not the home of whoever builds; and the brackets that say what a switch is
	# when it is left out are noise in a manual.
	CGO_ENABLED=0 go build -tags docs -o "$stage/$program-docs" "$source"
	HOME='~' XDG_DATA_HOME= XDG_CONFIG_HOME= "$stage/$program-docs" man "$stage/man/$program"
	rm "$stage/$program-docs"
	sed -i 's/\[=false\]//; s/\[=true\]//' "$stage/man/$program"/*
	gzip -9n "$stage/man/$program"/*
	mkdir -p "$stage/completions"
	for shell in bash zsh fish; do
		"$stage/bin/$program" completion $shell >"$stage/completions/$program.$shell"
	done
	{
		cat build/linux/copyright
		# What is linked in, as a paragraph of Debian's format. The Apache License is at its end.
		"$stage/bin/$program" licenses | sed '/^ \{20,\}Apache License$/,$d; s/^/ /; s/^ *$/ ./'
	} >"$stage/copyright.$program"
	{
		printf '%s (%s) stable; urgency=medium\n\n  * See CHANGELOG.md of the source.\n\n' "$program" "$version"
		printf ' -- The Porchlight authors <porchlight@porchlight.invalid>  %s\n' "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
	} | gzip -9n >"$stage/changelog.$program.gz"
done

if [ "${programs[0]}" = porchlight ]; then
	go build -trimpath -buildmode=pie -tags "$tags" -ldflags "$ldflags -extldflags=-Wl,-z,relro,-z,now" -o "$stage/bin/porchlight-desktop" .
	sed "s/@VERSION@/$version/; s/@DATE@/$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)/" \
		build/linux/app.porchlight.desktop.metainfo.xml >"$stage/app.porchlight.desktop.metainfo.xml"
	appstreamcli validate --no-net --explain "$stage/app.porchlight.desktop.metainfo.xml"
	desktop-file-validate build/linux/porchlight.desktop
	gzip -9nc build/linux/porchlight-desktop.1 >"$stage/man/porchlight/porchlight-desktop.1.gz"
fi

mkdir -p out
debs=()
for program in "${programs[@]}"; do
	config=nfpm${program#porchlight}
	go tool -modfile=build/tools/go.mod nfpm package --config "build/linux/$config.yaml" --packager deb --target out/
	debs+=("out/${program}_${version}_$ARCH.deb")
done

# lintian says that it should not run as root; CI is root.
[ "${4:-}" = server ] || lintian --allow-root --fail-on error,warning "${debs[@]}"
echo "made: ${debs[*]}"
