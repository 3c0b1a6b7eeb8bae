#!/bin/sh
# Prints what `git describe --tags --always --dirty` says as a version of Debian's, or
# as the numbers alone that Windows and macOS want. Debian's begins with a digit, and
# what is before a version sorts before it:
#
#                      debian             numbers
#   v1.2.3             1.2.3              1.2.3
#   v1.2.3-rc.1        1.2.3~rc.1         1.2.3
#   v1.2.3-4-gabc1234  1.2.3+4.gabc1234   1.2.3
#   abc1234            0+gabc1234         0.0.0    a clone without tags
#   unknown            0+gunknown         0.0.0    no clone at all
#
# usage: build/version.sh debian|numbers DESCRIBED
set -eu
case $2 in
v[0-9]* | [0-9]*.*) version=${2#v} ;;
*) version= ;;
esac
case $1 in
debian)
	printf '%s\n' "${version:-0+g$2}" | sed -E 's/-dirty$/+dirty/; s/-([0-9]+)-g([0-9a-f]+)/+\1.g\2/; s/-/~/; s/-/./g'
	;;
numbers)
	printf '%s\n' "${version:-0.0.0}" | sed 's/[^0-9.].*//'
	;;
*)
	echo "say debian or numbers, not '$1'" >&2
	exit 2
	;;
esac
