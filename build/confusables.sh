#!/bin/bash
# Makes agent/engine/confusables.txt of confusables.txt of UTS #39, which Unicode has
# at https://www.unicode.org/Public/security/ and Debian in the source of icu: what is
# drawn like another thing, and as what, without the remarks.
# usage: build/confusables.sh FILE
set -euo pipefail
cd "$(dirname "$0")/.."
{
	sed -n 's/^\xef\xbb\xbf//; /^# Date/p; /^# ©/p; /^# Version/p; /^# For terms/p' "$1"
	echo "# Made by build/confusables.sh; the licence is in LICENSE.unicode."
	sed -n 's/^\([0-9A-F]\{1,\}\) *;\t\([0-9A-F ]*[0-9A-F]\) *;.*/00\1 \2/; s/^0*\([0-9A-F]\{6\} \)/\1/p' "$1" | LC_ALL=C sort
} >agent/engine/confusables.txt
