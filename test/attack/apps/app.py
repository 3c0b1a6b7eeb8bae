# An app on Python's http.server that writes down what it is asked, one line of
# JSON each. http.server leaves chunks to the app.
import http.server, json, os, signal, sys

log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class App(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_one(self):
        body, trailers = b"", []
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            while (line := self.rfile.readline()) not in (b"\r\n", b"\n", b""):
                trailers.append([part.strip() for part in line.decode("latin-1").partition(":")[::2]])
        else:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if len(body) < length:
                self.close_connection = True
                return  # half a request
        seen = {"method": self.command, "target": self.path, "fields": [list(f) for f in self.headers.items()], "trailers": trailers, "body": body.hex()}
        os.write(log, json.dumps(seen).encode() + b"\n")
        answer = ("seen " + self.path + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = do_PATCH = handle_one

    def log_message(self, *args):
        pass


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), App)
print(server.server_address[1], flush=True)
server.serve_forever()
