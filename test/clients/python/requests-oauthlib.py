import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256

from oauthlib.oauth2 import OAuth2Error
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

from drive import Refused, client, drive


class Library:
    def __init__(self):
        self.session = OAuth2Session(client["clientId"], redirect_uri=client["redirectUri"], scope="connect")
        # The library's errors have statuses of their own, not those that came.
        self.session.register_compliance_hook("access_token_response", self.seen)
        self.session.register_compliance_hook("refresh_token_response", self.seen)
        # This version knows no PKCE; it passes on what it is given.
        self.verifier = secrets.token_urlsafe(32)
        if client["authentication"] == "basic":
            self.credentials = {"auth": HTTPBasicAuth(client["clientId"], client["clientSecret"])}
        else:
            self.credentials = {"include_client_id": True, "client_secret": client["clientSecret"]}

    def seen(self, response):
        self.status = response.status_code
        return response

    def begin(self):
        challenge = urlsafe_b64encode(sha256(self.verifier.encode("ascii")).digest()).rstrip(b"=").decode("ascii")
        url, self.state = self.session.authorization_url(
            client["authUrl"] + "/oauth/authorize", code_challenge=challenge, code_challenge_method="S256"
        )
        return {"url": url}

    def finish(self, callback):
        return self.tokens(
            self.session.fetch_token,
            client["authUrl"] + "/oauth/token",
            # The callback is on this computer, where the library would want TLS.
            authorization_response=callback.replace("http://", "https://", 1),
            code_verifier=self.verifier,
            **self.credentials,
        )

    def call(self, url):
        response = self.session.get(url)
        return {"status": response.status_code, "body": response.text}

    def refresh(self, refreshToken):
        credentials = dict(self.credentials)
        if credentials.pop("include_client_id", False):
            credentials["client_id"] = client["clientId"]
        return self.tokens(
            self.session.refresh_token, client["authUrl"] + "/oauth/token", refresh_token=refreshToken, **credentials
        )

    def tokens(self, ask, *args, **kwargs):
        try:
            return {"tokens": ask(*args, **kwargs)}
        except OAuth2Error as error:
            raise Refused(error.error, self.status) from error


drive(Library())
