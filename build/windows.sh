#!/bin/bash
# Cross-builds Porchlight for Windows, with icon, manifest and version, and
# packs an installer where makensis is. usage: build/windows.sh VERSION LDFLAGS
#
# Built here, never run here: nothing of it has been tried on Windows.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 ldflags=$2

# Windows wants four numbers.
numbers=$(build/version.sh numbers "$version")
while [ "$(tr -cd . <<<"$numbers" | wc -c)" -lt 3 ]; do numbers=$numbers.0; done

# go build takes up resources from .syso files beside main.go, by their names.
trap 'rm -f porchlight_windows_*.syso' EXIT
go tool -modfile=build/tools/go.mod go-winres make --in build/windows/winres.json --arch amd64,arm64 \
	--out porchlight --product-version "$numbers" --file-version "$numbers"

for arch in amd64 arm64; do
	out=out/windows-$arch
	mkdir -p "$out"
	export GOOS=windows GOARCH=$arch CGO_ENABLED=0
	go build -trimpath -tags desktop,production -ldflags "$ldflags -H windowsgui" -o "$out/porchlight-desktop.exe" .
	go build -trimpath -ldflags "$ldflags" -o "$out/" ./agent/cmd/porchlight ./control/cmd/porchlight-control
	if command -v makensis >/dev/null; then
		makensis -V2 -DVERSION="$version" -DARCH=$arch -DBIN="$PWD/$out" -DOUT="$PWD/out/porchlight-$version-$arch-setup.exe" build/windows/installer.nsi
	else
		echo "makensis is not installed, so no installer was packed for $arch (Debian: nsis)" >&2
	fi
done
