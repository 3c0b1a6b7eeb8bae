import secrets

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session

from drive import Refused, client, drive


class Library:
    def __init__(self):
        self.session = OAuth2Session(
            client["clientId"],
            client["clientSecret"],
            token_endpoint_auth_method="client_secret_" + {"basic": "basic", "form": "post"}[client["authentication"]],
            scope="connect",
            redirect_uri=client["redirectUri"],
            code_challenge_method="S256",
        )
        self.verifier = secrets.token_urlsafe(32)
        # The library's errors do not say which status they came with.
        self.session.register_compliance_hook("access_token_response", self.seen)
        self.session.register_compliance_hook("refresh_token_response", self.seen)

    def seen(self, response):
        self.status = response.status_code
        return response

    def begin(self):
        url, self.state = self.session.create_authorization_url(
            client["authUrl"] + "/oauth/authorize", code_verifier=self.verifier
        )
        return {"url": url}

    def finish(self, callback):
        return self.tokens(
            self.session.fetch_token,
            client["authUrl"] + "/oauth/token",
            authorization_response=callback,
            state=self.state,
            code_verifier=self.verifier,
        )

    def call(self, url):
        response = self.session.get(url)
        return {"status": response.status_code, "body": response.text}

    def refresh(self, refreshToken):
        return self.tokens(self.session.refresh_token, client["authUrl"] + "/oauth/token", refresh_token=refreshToken)

    def tokens(self, ask, *args, **kwargs):
        try:
            return {"tokens": ask(*args, **kwargs)}
        except AuthlibBaseError as error:
            raise Refused(error.error, self.status) from error


drive(Library())
