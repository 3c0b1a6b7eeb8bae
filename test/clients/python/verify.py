"""An app that believes who is there by X-Service-Token alone, as docs/writing-an-app.md has
it. ADDRESS is its own, https://NAME.HOST; it listens on PORT."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt

address = os.environ["ADDRESS"]
issuer = "https://" + address.split(".", 1)[1]
keys = jwt.PyJWKClient(address + "/.porchlight/jwks.json")  # looks again for a key that it does not know


def who(token):
    if jwt.get_unverified_header(token).get("typ") != "porchlight-id+jwt":
        raise jwt.InvalidTokenError("it is a token for something else")
    key = keys.get_signing_key_from_jwt(token).key
    return jwt.decode(token, key, algorithms=["EdDSA"], issuer=issuer, audience=address, options={"require": ["exp", "iss", "aud", "sub"]})


class App(BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            claims = who(self.headers.get("X-Service-Token", ""))
            status, text = 200, f"{claims['sub']} {claims['email']} {claims['role']}"
        except jwt.PyJWTError as err:
            status, text = 403, str(err)
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), App).serve_forever()
