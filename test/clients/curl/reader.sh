#!/usr/bin/env bash
# Opens an app on somebody's computer in their name:
#
#   AUTH_URL=https://control.example CLIENT_ID=… CLIENT_SECRET=… \
#   REDIRECT_URI=http://127.0.0.1:8914/callback bash reader.sh notes
set -eu -o pipefail

# field prints one text of an answer, or nothing.
field() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p' <<<"$answer"; }

# ask posts a form to the token endpoint. What is secret goes in by standard input:
# other users of this computer can read a command's arguments.
ask() {
	answer=$({
		printf 'user = "%s:%s"\n' "$CLIENT_ID" "$CLIENT_SECRET"
		printf 'data-urlencode = "%s"\n' "$@"
	} | curl -sS -K - "$AUTH_URL/oauth/token")
}

# random prints 32 bytes in base64url.
random() { openssl rand 32 | base64url; }
base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }

# ask_person has the person allow this program in their browser. Nothing listens at
# REDIRECT_URI here: they copy the address that the browser ends at.
ask_person() {
	local state verifier challenge callback code
	state=$(random) verifier=$(random)
	challenge=$(printf %s "$verifier" | openssl dgst -sha256 -binary | base64url)
	echo "Open $AUTH_URL/oauth/authorize?response_type=code&scope=connect&client_id=$CLIENT_ID&redirect_uri=$REDIRECT_URI&state=$state&code_challenge=$challenge&code_challenge_method=S256"
	echo "Then paste the address that the browser ends at:"
	read -r callback
	case "$callback&" in *[?\&]state="$state"\&*) ;; *) echo "not the answer to this question" >&2 && exit 1 ;; esac
	code=$(sed -n 's/.*[?&]code=\([^&]*\).*/\1/p' <<<"$callback")
	[ -n "$code" ] || { echo "refused: $callback" >&2; exit 1; }
	ask grant_type=authorization_code "code=$code" "redirect_uri=$REDIRECT_URI" "code_verifier=$verifier"
}

# reader.token holds the refresh token between two runs. It is a secret.
umask 077
answer=
[ ! -e reader.token ] || ask grant_type=refresh_token "refresh_token=$(cat reader.token)"
# The person is asked (again) when nothing was kept, when it was used or is too old,
# and when they revoked it. Any other failure is worth another try.
case $(field error) in
invalid_grant | access_denied) ask_person ;;
"") [ -n "$answer" ] || ask_person ;;
esac
[ -n "$(field access_token)" ] || { echo "refused: $answer" >&2; exit 1; }
# The refresh token is good once: keep the new one before anything else.
field refresh_token >reader.token
printf 'header = "Authorization: Bearer %s"\n' "$(field access_token)" |
	curl -sS -K - -w '\n%{http_code}\n' "https://$1.$(field host)/"
