#!/bin/bash
# Makes a release of this tree into out/release: programs and packages, what is linked into
# them, what changed, and the checksums of all, signed where KEY names a file that
# `go run ./build/release key` made. Without one every name says -unsigned. All but the
# signatures is byte for byte the same wherever it is made (make test-release).
#
# usage: [KEY=FILE] [TARGETS=...] build/release.sh VERSION LDFLAGS TAGS [PART...]
#   PART   programs, server, desktop (their packages), windows (the agent's installer); all of
#          them when none is named
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 ldflags=$2 tags=$3
shift 3
[ $# -gt 0 ] || set -- programs server desktop windows
export VERSION=$version LABEL=$version
if [ -z "${KEY:-}" ]; then
	LABEL=$version-unsigned
elif [ ! -r "$KEY" ]; then
	echo "KEY is $KEY, which cannot be read. Nothing was made." >&2
	exit 1
fi
targets=${TARGETS:-linux/amd64 linux/arm64 linux/arm/7 windows/amd64 windows/arm64 darwin/amd64 darwin/arm64}
SOURCE_DATE_EPOCH=$(build/version.sh time)
export SOURCE_DATE_EPOCH OUT=out/release
stage=out/stage-release
rm -rf "$OUT" "$stage"
mkdir -p "$OUT" "$stage"
trap 'rm -rf "$stage"' EXIT
umask 022

# What is linked into a program, as CycloneDX has it.
parts() { # FILE NAME
	go tool -modfile=build/tools/go.mod cyclonedx-gomod bin -json -noserial -notimestamp -std \
		-version "v$version" -output "$OUT/$2.cdx.json" "$1" 2>"$stage/parts.log" || { cat "$stage/parts.log" >&2; exit 1; }
}

programs() {
	local target os arch arm name program
	for target in $targets; do
		IFS=/ read -r os arch arm <<<"$target"
		name=${os}_$arch${arm:+v$arm}
		echo "building for $target"
		GOOS=$os GOARCH=$arch GOARM=$arm CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$ldflags" \
			-o "$stage/$name/" ./agent/cmd/porchlight ./control/cmd/porchlight-control
		for program in porchlight porchlight-control; do
			case $target in
			linux/amd64 | windows/amd64 | darwin/arm64)
				parts "$stage/$name/$program$([ $os != windows ] || echo .exe)" "${program}_${LABEL}_$os"
				;;
			esac
			case $os in
			darwin) ;; # both kinds of Mac are joined below
			windows) mv "$stage/$name/$program.exe" "$OUT/${program}_${LABEL}_$name.exe" ;;
			*) mv "$stage/$name/$program" "$OUT/${program}_${LABEL}_$name" ;;
			esac
		done
	done
	[ -d "$stage/darwin_amd64" ] && [ -d "$stage/darwin_arm64" ] || return 0
	for program in porchlight porchlight-control; do
		go run ./build/release join "$OUT/${program}_${LABEL}_darwin_universal" "$stage"/darwin_{amd64,arm64}/$program
	done
}

for part; do
	case $part in
	programs) programs ;;
	server) ARCHES='amd64 arm64' build/package.sh "$version" "$ldflags" '' server ;;
	desktop)
		build/package.sh "$version" "$ldflags" "$tags" desktop
		dpkg-deb --fsys-tarfile "$OUT/porchlight_${LABEL}"_*.deb | tar -xO ./usr/bin/porchlight-desktop >"$stage/porchlight-desktop"
		parts "$stage/porchlight-desktop" "porchlight-desktop_${LABEL}_linux"
		(cd frontend && npm sbom --sbom-format cyclonedx --package-lock-only) | # the page is built with it
			node -e 'const b = JSON.parse(require("fs").readFileSync(0)); delete b.serialNumber; delete b.metadata.timestamp; console.log(JSON.stringify(b, null, 2))' \
				>"$OUT/porchlight-desktop_${LABEL}_page.cdx.json"
		;;
	windows) build/windows.sh "$version" "$ldflags" agent amd64 ;; # the one that ran under Wine
	*) echo "say programs, server, desktop or windows, not '$part'" >&2; exit 2 ;;
	esac
done

cp build/install.sh "$OUT/"
# What CHANGELOG.md says of the number.
awk -v number="${version%%+*}" '/^## / { on = $2 == number; next } on' CHANGELOG.md | sed '1{/^$/d}' >"$OUT/notes_$LABEL.md"
[ -s "$OUT/notes_$LABEL.md" ] || { echo "CHANGELOG.md says nothing of ${version%%+*}" >&2; exit 1; }
(cd "$OUT" && LC_ALL=C sha256sum -- *) >"$stage/SHA256SUMS"
mv "$stage/SHA256SUMS" "$OUT/"
if [ -n "${KEY:-}" ]; then
	go run ./build/release seal "$KEY" "$version" "$OUT"
else
	echo "not signed: name the key's file as KEY=FILE" >&2
fi
echo "made: $OUT"
