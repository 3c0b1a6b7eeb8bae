#!/bin/bash
# The checks that need no running program: format, vet, staticcheck, known
# vulnerabilities. All are made, whatever the first finds. usage: build/check.sh TAGS
set -uo pipefail
cd "$(dirname "$0")/.."
tags=$1
# Tests that drive programs, and what packing needs, are built by tags of theirs.
every=$tags,rig,clients,docs
failed=

check() { # NAME COMMAND...
	local name=$1 began=$SECONDS
	shift
	if "$@"; then
		echo "$name: fine ($((SECONDS - began)) s)"
	else
		echo "$name: NOT fine ($((SECONDS - began)) s)"
		failed+=" $name"
	fi
}

formatted() {
	local unformatted
	unformatted=$(gofmt -l $(git ls-files '*.go')) || return
	[ -z "$unformatted" ] || { printf 'gofmt would change:\n%s\n' "$unformatted"; return 1; }
}

# The programs that need no C library must build without one, everywhere.
types_for() { go run ./build/typecheck "$1" ./agent/... ./control/... ./internal/...; }

check gofmt formatted
check "go vet" go vet -tags "$every" ./...
for target in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do
	check "types for $target" types_for "$target"
done
check "go vet for windows" env GOOS=windows CGO_ENABLED=0 go vet ./agent/... ./internal/...
check staticcheck go tool staticcheck -tags "$every" ./...
check vulnerabilities build/vulnerabilities.sh "$tags"

[ -z "$failed" ] || { echo "Not fine:$failed"; exit 1; }
