#!/bin/sh
# Prints the Debian version of what `git describe --tags --always --dirty` says.
# It begins with a digit, and what is before a version sorts before it:
#
#   v1.2.3             1.2.3
#   v1.2.3-rc.1        1.2.3~rc.1
#   v1.2.3-4-gabc1234  1.2.3+4.gabc1234
#   abc1234            0+gabc1234, a clone without tags
#   unknown            0+gunknown, no clone at all
#
# usage: build/debversion.sh DESCRIBED
set -eu
case $1 in
v[0-9]* | [0-9]*.*) printf '%s\n' "${1#v}" ;;
*) printf '0+g%s\n' "$1" ;;
esac | sed -E 's/-dirty$/+dirty/; s/-([0-9]+)-g([0-9a-f]+)/+\1.g\2/; s/-/~/; s/-/./g'
