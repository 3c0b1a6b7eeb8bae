#!/bin/bash
# Builds the command line and agent of an earlier version, from this clone's history.
#
#   build/before.sh COMMIT DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$1 to=$(realpath -m "$2")
git cat-file -e "$commit^{commit}" 2>/dev/null || {
	echo "$commit is not in this clone, so its agent cannot be built: git fetch --unshallow" >&2
	exit 1
}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git archive "$commit" | tar -x -C "$tree"
mkdir -p "$to"
cd "$tree"
CGO_ENABLED=0 go build -o "$to/" ./agent/cmd/porchlight
