#!/usr/bin/env python3
"""A server that accepts profiles as Pyroscope does, or fails in the way that a file selects.

Usage: push_server.py FOLDER [PORT [CERTIFICATE KEY]]
FOLDER/port       the port, on 127.0.0.1, once it listens
FOLDER/mode       how the server answers the next requests (200 if there is no such file):
                  "STATUS [HEADER: VALUE]", "hang", "endless", "close"; "once " before it limits it to one request
FOLDER/requests   a line for each request: seconds, mode, path and query, Authorization, X-Scope-OrgID, bytes
FOLDER/N.pprof.gz the accepted profiles, in order; FOLDER/N.query the query of each
"""
import http.server
import os
import pathlib
import ssl
import sys
import threading
import time

folder = pathlib.Path(sys.argv[1])
port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
lock = threading.Lock()


def take_mode():
    file = folder / "mode"
    mode = file.read_text().strip() if file.exists() else "200"
    if mode.startswith("once "):
        file.unlink()
        mode = mode[len("once "):]
    return mode


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path, _, query = self.path.partition("?")
        with lock:
            mode = take_mode()
            with open(folder / "requests", "a") as log:
                fields = [f"{time.monotonic():.3f}", mode, path, query, self.headers["Authorization"] or "-",
                          self.headers["X-Scope-OrgID"] or "-", str(len(body))]
                log.write("\t".join(fields) + "\n")
            if mode == "200":
                number = len(list(folder.glob("*.query")))
                (folder / f"{number}.pprof.gz").write_bytes(body)
                (folder / f"{number}.query").write_text(query)
        self.answer(mode)

    def answer(self, mode):
        if mode == "hang":
            time.sleep(600)
        elif mode == "close":
            self.close_connection = True
        elif mode == "endless":
            self.send_response(500)
            self.end_headers()
            while True:
                self.wfile.write(b"x" * 65536)
        else:
            status, _, header = mode.partition(" ")
            text = b"bad \x1b[31m label\n" * 100 if status == "400" else b""
            self.send_response(int(status))
            if header:
                self.send_header(*header.split(": ", 1))
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # the tests expect clients to close connections early


server = Server(("127.0.0.1", port), Handler)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
    server.socket = context.wrap_socket(server.socket, server_side=True)
(folder / "port.new").write_text(f"{server.server_port}\n")
os.rename(folder / "port.new", folder / "port")
server.serve_forever()
