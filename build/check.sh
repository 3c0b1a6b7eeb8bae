#!/bin/bash
# The checks that need no running program: format, vet, staticcheck, known
# vulnerabilities. usage: build/check.sh TAGS
set -euo pipefail
cd "$(dirname "$0")/.."
tags=$1
# Tests that drive programs, and what packing needs, are built by tags of theirs.
every=$tags,rig,clients,docs

unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { printf 'gofmt would change:\n%s\n' "$unformatted"; exit 1; }

go vet -tags "$every" ./...
# The programs that need no C library must build without one, everywhere.
for target in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do
	CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} go vet ./agent/... ./control/...
done

go tool staticcheck -tags "$every" ./...

# The vulnerability database is on the internet; a machine without it says so.
if out=$(go tool govulncheck -tags "$tags" ./... 2>&1); then
	echo "govulncheck: nothing known"
elif grep -qE 'dial tcp|no such host|lookup|Forbidden|refused|timeout|TLS handshake|certificate' <<<"$out"; then
	echo "govulncheck: skipped, its database cannot be reached from here"
else
	printf '%s\n' "$out"
	exit 1
fi
