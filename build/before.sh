#!/bin/bash
# Builds the command lines of earlier versions, from this clone's history: agent and server
# of each, in a folder named after its commit.
#
#   build/before.sh DIRECTORY COMMIT...
set -euo pipefail
cd "$(dirname "$0")/.."
to=$(realpath -m "$1")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
for commit in "${@:2}"; do
	git cat-file -e "$commit^{commit}" 2>/dev/null || {
		echo "$commit is not in this clone, so its programs cannot be built: git fetch --unshallow" >&2
		exit 1
	}
	mkdir -p "$tree/$commit" "$to/$commit"
	git archive "$commit" | tar -x -C "$tree/$commit"
	(cd "$tree/$commit" && CGO_ENABLED=0 go build -o "$to/$commit/" ./agent/cmd/porchlight ./control/cmd/porchlight-control)
done
