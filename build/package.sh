#!/bin/bash
# Makes the Debian packages of this machine's architecture, into out/, and looks
# them over.
# usage: build/package.sh VERSION LDFLAGS TAGS
set -euo pipefail
cd "$(dirname "$0")/.."

# A Debian version begins with a digit: v1.2.3-4-gabc becomes 1.2.3+4.gabc, and
# a checkout without a tag 0+g1234567.
version=${1#v} ldflags=$2 tags=$3
case $version in
[0-9]*.*) version=$(sed 's/-\([0-9]*\)-g/+\1.g/; s/-dirty/+dirty/' <<<"$version") ;;
*) version=0+g$(sed 's/-dirty/+dirty/' <<<"$version") ;;
esac

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
CGO_ENABLED=0 go build -trimpath -buildmode=pie -ldflags "$ldflags" -o "$stage/bin/" ./agent/cmd/porchlight ./control/cmd/porchlight-control
go build -trimpath -buildmode=pie -tags "$tags" -ldflags "$ldflags -extldflags=-Wl,-z,relro,-z,now" -o "$stage/bin/porchlight-desktop" .

for program in porchlight porchlight-control; do
	case $program in
	porchlight) source=./agent/cmd/porchlight ;;
	*) source=./control/cmd/porchlight-control ;;
	esac
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
		printf '%s (%s) stable; urgency=medium\n\n  * See the history of the source.\n\n' "$program" "$version"
		printf ' -- The Porchlight authors <porchlight@porchlight.invalid>  %s\n' "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
	} | gzip -9n >"$stage/changelog.$program.gz"
done
sed "s/@VERSION@/$version/; s/@DATE@/$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)/" \
	build/linux/app.porchlight.desktop.metainfo.xml >"$stage/app.porchlight.desktop.metainfo.xml"
appstreamcli validate --no-net --explain "$stage/app.porchlight.desktop.metainfo.xml"
desktop-file-validate build/linux/porchlight.desktop
gzip -9nc build/linux/porchlight-desktop.1 >"$stage/man/porchlight/porchlight-desktop.1.gz"

mkdir -p out
for config in nfpm nfpm-control; do
	go tool -modfile=build/tools/go.mod nfpm package --config "build/linux/$config.yaml" --packager deb --target out/
done

# lintian says that it should not run as root; CI is root.
lintian --allow-root --fail-on error,warning "out/porchlight_${VERSION}"*.deb "out/porchlight-control_${VERSION}"*.deb
