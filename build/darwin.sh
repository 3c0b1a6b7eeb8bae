#!/bin/bash
# Builds Porchlight.app, for both kinds of Mac, on a Mac with Xcode's command
# line tools. usage: build/darwin.sh VERSION LDFLAGS
#
# SIGN names a signing identity; without it the bundle is signed ad hoc, and
# opens only on this Mac. This script has never been run: no Mac was at hand.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1 ldflags=$2

if [ "$(uname -s)" != Darwin ]; then
	echo "Porchlight.app is built on a Mac: its menu bar is Cocoa's. Run 'make darwin' there." >&2
	exit 1
fi

app=out/Porchlight.app
rm -rf "$app"
mkdir -p "$app/Contents/MacOS" "$app/Contents/Resources" out/darwin
numbers=$(build/version.sh numbers "$version")
sed "s/@VERSION@/$numbers/" build/darwin/Info.plist >"$app/Contents/Info.plist"
plutil -lint "$app/Contents/Info.plist" build/darwin/entitlements.plist
cp assets/app/icon.icns "$app/Contents/Resources/icon.icns"

export MACOSX_DEPLOYMENT_TARGET=12.0
for arch in amd64 arm64; do
	GOOS=darwin GOARCH=$arch CGO_ENABLED=1 CGO_LDFLAGS="-framework UniformTypeIdentifiers" \
		go build -trimpath -tags desktop,production -ldflags "$ldflags" -o out/darwin/porchlight-desktop-$arch .
	GOOS=darwin GOARCH=$arch CGO_ENABLED=0 \
		go build -trimpath -ldflags "$ldflags" -o out/darwin/porchlight-$arch ./agent/cmd/porchlight
done
for program in porchlight-desktop porchlight; do
	lipo -create -output "$app/Contents/MacOS/$program" out/darwin/$program-amd64 out/darwin/$program-arm64
done
codesign --force --options runtime --entitlements build/darwin/entitlements.plist \
	--sign "${SIGN:--}" "$app/Contents/MacOS/porchlight" "$app"
codesign --verify --strict --verbose=2 "$app"
ditto -c -k --keepParent "$app" "out/Porchlight-$version.zip"
echo "out/Porchlight-$version.zip"
