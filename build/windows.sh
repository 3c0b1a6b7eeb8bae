#!/bin/bash
# Cross-builds Porchlight for Windows, with icon, manifest and version, and
# packs installers where makensis is: of the menu-bar app, and of the agent alone.
# usage: [OUT=DIR] [LABEL=...] build/windows.sh VERSION LDFLAGS [agent [ARCH]]
#
# The agent and its installer run under Wine (make test-windows); nothing of it has been
# tried on Windows.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 ldflags=$2 only=${3:-} arches=${4:-amd64 arm64}

pack() { # NAME ARCH [-DAGENT]
	if command -v makensis >/dev/null; then
		touch -d "@$(build/version.sh time)" "out/windows-$2"/*.exe # it packs the times, too
		makensis -V2 -DVERSION="$version" -DARCH="$2" -DBIN="$PWD/out/windows-$2" -DOUT="$(realpath "${OUT:-out}")/$1-${LABEL:-$version}-$2-setup.exe" "${@:3}" build/windows/installer.nsi
	else
		echo "makensis is not installed, so no installer was packed for $2 (Debian: nsis)" >&2
	fi
}

export GOOS=windows CGO_ENABLED=0
for arch in $arches; do
	out=out/windows-$arch
	mkdir -p "$out"
	export GOARCH=$arch
	go build -trimpath -buildvcs=false -ldflags "$ldflags" -o "$out/" ./agent/cmd/porchlight
	# The same program, which Windows gives no window of text: it starts at login.
	go build -trimpath -buildvcs=false -ldflags "$ldflags -H windowsgui" -o "$out/porchlight-agent.exe" ./agent/cmd/porchlight
	pack porchlight-agent "$arch" -DAGENT
done
[ "$only" != agent ] || exit 0
unset GOOS GOARCH CGO_ENABLED

# Windows wants four numbers.
numbers=$(build/version.sh numbers "$version")
while [ "$(tr -cd . <<<"$numbers" | wc -c)" -lt 3 ]; do numbers=$numbers.0; done

# go build takes up resources from .syso files beside main.go, by their names.
trap 'rm -f porchlight_windows_*.syso' EXIT
go tool -modfile=build/tools/go.mod go-winres make --in build/windows/winres.json --arch amd64,arm64 \
	--out porchlight --product-version "$numbers" --file-version "$numbers"

export GOOS=windows CGO_ENABLED=0
for arch in $arches; do
	GOARCH=$arch go build -trimpath -buildvcs=false -ldflags "$ldflags" -o "out/windows-$arch/" ./control/cmd/porchlight-control
	GOARCH=$arch go build -trimpath -tags desktop,production -ldflags "$ldflags -H windowsgui" -o "out/windows-$arch/porchlight-desktop.exe" .
	pack porchlight "$arch"
done
