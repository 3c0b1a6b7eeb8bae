#!/bin/bash
# Makes a release twice, of two copies of this tree in two places, the second with a build
# cache of its own, and compares every byte. usage: build/twice.sh VERSION LDFLAGS TAGS [PART...]
#
# PORCHLIGHT_ONE_CACHE=1 has both share the usual cache: quick, and a path or a time that
# gets into a file is still seen.
set -euo pipefail
cd "$(dirname "$0")/.."
places=$(mktemp -d)
trap 'chmod -R u+w "$places" && rm -rf "$places"' EXIT
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
unset KEY # what is signed says when
for place in here/one there/is/another; do
	mkdir -p "$places/$place"
	git ls-files -z | xargs -0 cp --parents --no-dereference --target-directory="$places/$place"
	[ ! -e frontend/dist/index.html ] || cp -R frontend/dist "$places/$place/frontend/"
	(
		cd "$places/$place"
		case " $* " in *" server "* | *" programs "* | *" windows "*) ;; *) (cd frontend && npm ci --no-audit --no-fund --loglevel=error && npm run build) ;; esac
		[ $place = here/one ] || [ -n "${PORCHLIGHT_ONE_CACHE:-}" ] || export GOCACHE=$places/cache TZ=Asia/Tokyo LC_ALL=C
		umask "$([ $place = here/one ] && echo 022 || echo 077)"
		build/release.sh "$@"
	)
done
diff -r "$places/here/one/out/release" "$places/there/is/another/out/release" && echo "both are the same, byte for byte"
