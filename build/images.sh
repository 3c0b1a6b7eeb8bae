#!/bin/bash
# Makes the images of the server and of the agent, into out/images, for amd64 and arm64.
# usage: build/images.sh VERSION LDFLAGS
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1//+/-} ldflags=$2 # a tag has no +
at=$(build/version.sh time)
out=$PWD/out/images
rm -rf "$out"
trap 'rm -rf "$out/programs"' EXIT
for arch in amd64 arm64; do
	mkdir -p "$out/programs/$arch"
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -ldflags "$ldflags" -o "$out/programs/$arch/" \
		./agent/cmd/porchlight ./control/cmd/porchlight-control
done
go run -C build/images . "$out/programs" "$out" "$version" "$at"
