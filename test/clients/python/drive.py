"""The part of a driver that is not the library: reads orders, one JSON object a
line, and answers each with one (drivers_test.go says which there are)."""

import json
import os
import sys
import traceback

client = json.loads(os.environ["OAUTH_CLIENT"])


class Refused(Exception):
    """The server's OAuth error as the library reports it."""

    def __init__(self, code, status):
        super().__init__(code)
        self.answer = {"refused": {"code": code, "status": status}}


def drive(library):
    """Carries out orders until there are no more."""
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = getattr(library, order.pop("do"))(**order)
        except Refused as refused:
            answer = refused.answer
        except Exception:
            answer = {"failed": traceback.format_exc()}
        print(json.dumps(answer), flush=True)
