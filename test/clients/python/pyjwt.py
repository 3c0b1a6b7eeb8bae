"""Verifies access tokens as a server would that is handed them."""

import jwt
import requests

from drive import client, drive


class Verifier:
    def verify(self, token, audience):
        key = requests.get(client["authUrl"] + "/auth/pubkey").json()["publicKey"]
        claims = jwt.decode(token, key, algorithms=["EdDSA"], issuer="service-control", audience=audience)
        keys = jwt.PyJWKSet.from_dict(requests.get(client["authUrl"] + "/auth/jwks.json").json())
        own = keys[jwt.get_unverified_header(token)["kid"]].key
        jwt.decode(token, own, algorithms=["EdDSA"], issuer="service-control", audience=audience)
        return {"claims": claims, "header": jwt.get_unverified_header(token)}


drive(Verifier())
