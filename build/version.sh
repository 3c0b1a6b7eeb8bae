#!/bin/sh
# Prints the version of this tree, which is that in VERSION, with the commit where that is
# not the one of the tag; or its time in seconds, which is the commit's; or a version as
# Debian writes it, or as the numbers alone that Windows and macOS want. What is before a
# version sorts before it in Debian:
#
#                         debian                numbers
#   1.2.3-rc.1            1.2.3~rc.1            1.2.3
#   1.2.3                 1.2.3                 1.2.3
#   1.2.3+gabc1234.dirty  1.2.3+gabc1234.dirty  1.2.3
#
# usage: build/version.sh [time | debian|numbers VERSION]
set -eu
case ${1:-} in
'')
	cd "$(dirname "$0")/.."
	version=$(cat VERSION)
	commit=$(git describe --always --dirty --exclude '*' 2>/dev/null || true) # none without a clone
	tag=$(git describe --exact-match --match "v$version" --dirty 2>/dev/null || true)
	[ "$tag" != "v$version" ] || commit=
	printf '%s\n' "$version${commit:++g$(printf %s "$commit" | tr - .)}"
	;;
time)
	cd "$(dirname "$0")/.."
	# What git archive makes of a commit gives every file its time.
	at=${SOURCE_DATE_EPOCH:-}
	if [ -z "$at" ] && [ -e .git ]; then
		at=$(git log -1 --format=%ct)
	fi
	printf '%s\n' "${at:-$(date -r VERSION +%s)}"
	;;
debian)
	printf '%s\n' "$2" | sed 's/-/~/; s/-/./g'
	;;
numbers)
	printf '%s\n' "$2" | sed 's/[^0-9.].*//'
	;;
*)
	echo "say time, debian or numbers, not '$1'" >&2
	exit 2
	;;
esac
