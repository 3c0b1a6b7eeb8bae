#!/bin/sh
# Holds the programs in bin/ (or $PORCHLIGHT_PROGRAMS) against real OAuth client libraries (see doc.go).
#
#   test/clients/run.sh [go test flags]
#
# Ends with a table of what each library did, kept in out/clients.txt, and with the blocks
# of the documents that nobody typed, each with the reason, kept in out/not-typed.txt.
# Debian packages: python3-requests-oauthlib python3-authlib python3-jwt
# python3-cryptography openjdk-17-jdk-headless openssh-server rsync postgresql.
set -eu
cd "$(dirname "$0")"
. ../ready.sh
has_commands test chromium node php ssh /usr/sbin/sshd rsync psql
has_packages node
has_programs
if ! /usr/bin/python3 -c 'import authlib, jwt, requests_oauthlib' 2>/dev/null; then
	not_ready "Python's OAuth libraries are missing; install them with: build/setup.sh test"
fi
cd ../..
mkdir -p out
export PORCHLIGHT_TABLE="$PWD/out/clients.txt"
export PORCHLIGHT_NOT_TYPED="$PWD/out/not-typed.txt"
rm -f "$PORCHLIGHT_TABLE" "$PORCHLIGHT_NOT_TYPED"
status=0
go test -tags clients -count=1 -timeout 15m "$@" ./test/clients || status=$?
for list in "$PORCHLIGHT_TABLE" "$PORCHLIGHT_NOT_TYPED"; do
	[ ! -e "$list" ] || cat "$list"
done
exit $status
