# Opens an app on somebody's computer in their name:
#
#   AUTH_URL=https://control.example CLIENT_ID=… CLIENT_SECRET=… \
#   REDIRECT_URI=http://127.0.0.1:8914/callback python3 reader.py notes
import os
import secrets
import sys
from base64 import urlsafe_b64encode
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

from oauthlib.oauth2 import OAuth2Error
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

# TOKEN_FILE holds the refresh token between two runs. It is a secret.
TOKEN_FILE = "reader.token"

auth_url, redirect_uri = os.environ["AUTH_URL"], os.environ["REDIRECT_URI"]
credentials = HTTPBasicAuth(os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"])
session = OAuth2Session(os.environ["CLIENT_ID"], redirect_uri=redirect_uri, scope="connect")


def refresh():
    """Trade the kept refresh token for a new pair; None when the person has to be
    asked (again): nothing was kept, it was used or is too old, or they revoked it.
    Any other failure is worth another try."""
    try:
        with open(TOKEN_FILE) as file:
            kept = file.read()
        return session.refresh_token(auth_url + "/oauth/token", refresh_token=kept, auth=credentials)
    except FileNotFoundError:
        return None
    except OAuth2Error as error:
        if error.error in ("invalid_grant", "access_denied"):
            return None
        raise


def ask_person():
    """Have the person allow this program in their browser."""
    verifier = secrets.token_urlsafe(32)
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    address, state = session.authorization_url(
        auth_url + "/oauth/authorize", code_challenge=challenge, code_challenge_method="S256"
    )
    answer = wait_for_answer(state, address)
    if "error" in answer:
        sys.exit(answer["error"][0])  # access_denied: they said no
    return session.fetch_token(
        auth_url + "/oauth/token", code=answer["code"][0], code_verifier=verifier, auth=credentials
    )


def wait_for_answer(state, address):
    """Serve the redirect URI, show the address, and wait until the browser has come back."""
    redirect, answers = urlsplit(redirect_uri), []

    class Callback(BaseHTTPRequestHandler):
        def do_GET(self):
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            ours = url.path == redirect.path and query.get("state") == [state]
            self.send_response(200 if ours else 404)
            self.end_headers()
            if ours:
                self.wfile.write(b"You can close this window.\n")
                answers.append(query)

        def log_message(self, *args):
            pass  # the code in the address is a secret

    with HTTPServer((redirect.hostname, redirect.port), Callback) as server:
        print("Open", address, flush=True)  # only now: a browser can be quick
        while not answers:
            server.handle_request()
    return answers[0]


token = refresh() or ask_person()
# The refresh token is good once: keep the new one before anything else.
with open(os.open(TOKEN_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
    file.write(token["refresh_token"])
answer = session.get("https://" + sys.argv[1] + "." + token["host"])
print(answer.status_code)
print(answer.text)
