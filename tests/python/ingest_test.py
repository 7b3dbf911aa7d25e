"""Tests addresses, tokens, answers, and real requests to a server in this process."""
import contextlib
import http.server
import os
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock
import urllib.parse

from stackpipe.push import ingest
from stackpipe.messages import Failure, UsageError
from stackpipe.push.spool import Profile, SpoolName


class Addresses(unittest.TestCase):
    def why(self, address, allows_http=False):
        try:
            return "taken as " + ingest.ingest_url(address, allows_http)
        except UsageError as error:
            return str(error)

    def test_are_https_and_get_the_path(self):
        for address, wanted in (("example.com", "https://example.com/ingest"), ("example.com:4040/", "https://example.com:4040/ingest"),
                                ("https://example.com/a/b//", "https://example.com/a/b/ingest"),
                                ("https://example.com/ingest", "https://example.com/ingest"),
                                ("https://example.com/a/ingest/", "https://example.com/a/ingest"),
                                ("HTTPS://Example.com", "https://example.com/ingest"), ("https://[::2]:1", "https://[::2]:1/ingest"),
                                ("https://@example.com", "https://example.com/ingest"), ("https://:@example.com", "https://example.com/ingest")):
            self.assertEqual(ingest.ingest_url(address, False), wanted)

    def test_http_is_for_this_machine(self):
        for host in ("localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "127.1", "0x7f000001", "2130706433", "[::1]"):
            self.assertTrue(self.why(f"http://{host}").startswith("taken as http://"), host)
        for host in ("example.com", "localhost.example.com", "127.0.0.1.example.com", "128.0.0.1", "0.0.0.0", "[::2]",
                     "[::ffff:1.2.3.4]", "127", "127.0.0.1x"):
            self.assertTrue(self.why(f"http://{host}").startswith("--url: http shows "), host)
        self.assertEqual(ingest.ingest_url("http://example.com", True), "http://example.com/ingest")

    def test_a_password_is_refused_and_not_repeated(self):
        for address in ("https://me:hunter2@example.com", "https://:hunter2@example.com", "https://hunter2@example.com",
                        "https://me:hunter2@exa mple.com", "https://me:hunter2@[x", "ftp://me:hunter2@x", "https://me:hunter2@x:99999"):
            self.assertTrue(self.why(address).startswith("--url: "), address)
            self.assertNotIn("hunter2", self.why(address))
        self.assertIn("--token-file", self.why("https://me:hunter2@example.com"))

    def test_what_is_no_server_is_refused(self):
        for address in ("", "http://", "https://", "ftp://example.com", "file:///etc/passwd", "example.com?name=x", "example.com#x",
                        "https://exa mple.com", "https://example.com:99999", "https://example.com:x", "https://example.com\r\nX: y",
                        "https://example.com\n", "https://a@b@c", "https://[x]", "https://::1"):
            self.assertTrue(self.why(address).startswith("--url: "), f"{address}: {self.why(address)}")


class Tokens(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "token")

    def write(self, data, mode=0o400):
        if os.path.exists(self.path):
            os.unlink(self.path)
        with open(self.path, "wb") as file:
            file.write(data)
        os.chmod(self.path, mode)

    def why(self, path=None):
        try:
            return f"taken: {ingest.read_token(path or self.path)}"
        except Failure as failure:
            return str(failure)

    def test_are_the_first_line(self):
        for data in (b"se-cret~1==", b"se-cret~1==\n", b"se-cret~1==\r\n", b"se-cret~1==\nx"):
            self.write(data)
            self.assertEqual(ingest.read_token(self.path), ("", "se-cret~1=="))

    def test_a_colon_parts_user_and_password(self):
        self.write(b"12345:a:b\n")
        self.assertEqual(ingest.read_token(self.path), ("12345", "a:b"))
        self.assertEqual(ingest.Token("12345", "a:b").header(), "Basic MTIzNDU6YTpi")
        self.assertEqual(ingest.Token("", "ab").header(), "Bearer ab")

    def test_others_must_not_read_or_change_it(self):
        for mode in (0o604, 0o602, 0o644, 0o777):
            self.write(b"secret", mode)
            self.assertIn("chmod o=", self.why())
            self.assertNotIn("secret", self.why())
        self.write(b"secret", 0o640)
        self.assertEqual(ingest.read_token(self.path).secret, "secret")

    def test_what_no_header_can_hold_is_none(self):
        for data in (b"", b"\nsecret", b"sec ret", b"sec\tret", b"sec\0ret", "secrét".encode(), b"secret\rX: y", b"x" * 10000):
            self.write(data)
            self.assertIn("contains no token", self.why())
        self.write(b":secret")
        self.assertIn("no user", self.why())

    def test_what_is_no_file_is_none(self):
        self.assertEqual(self.why(self.path + "x"), f"{self.path}x: No such file or directory")
        self.assertEqual(self.why(os.path.dirname(self.path)), f"{os.path.dirname(self.path)}: not a regular file")
        os.mkfifo(self.path)
        self.assertEqual(self.why(), f"{self.path}: not a regular file")

    def test_an_answer_that_repeats_it_is_known(self):
        bearer, basic = ingest.Token("", "a-long-secret"), ingest.Token("me", "pass")
        self.assertTrue(bearer.is_in("invalid: Bearer a-long-secret"))
        self.assertTrue(bearer.is_in("cut: a-long-sec"))
        self.assertFalse(bearer.is_in("invalid token"))
        self.assertTrue(basic.is_in("Authorization: Basic bWU6cGFzcw=="))
        self.assertFalse(ingest.Token().is_in("Basic and Bearer are known"))


class Verdicts(unittest.TestCase):
    def test_of_each_status(self):
        for wanted, statuses in (("sent", (200, 202, 204, 299)), ("refused", (400, 406, 410, 413, 415, 422, 499)),
                                 ("again", (0, 100, 301, 302, 401, 403, 404, 405, 407, 408, 421, 425, 426, 429, 500, 501, 503, 599, 600, -1))):
            for status in statuses:
                self.assertEqual(ingest.judge(status), wanted, status)

    def test_text_of_a_server_is_short_and_printable(self):
        text = ingest.Answer(503, "\x1b[31m\n" + "x" * 300).message()
        self.assertTrue(text.startswith("503: '\\x1b[31m\\x0axxx"), text)
        self.assertLess(len(text), 240)
        self.assertEqual(ingest.Answer(0, "gone\r").message(), "gone\\x0d")
        self.assertEqual(ingest.Answer(500, "").message(), "500")

    def test_a_wish_is_a_number_or_a_date(self):
        for text, wanted in ((None, 0), ("", 0), ("7", 7), ("-7", 0), ("soon", 0), ("9" * 20, 0), ("Fri, 01 Jan 1999 00:00:00 GMT", 0)):
            self.assertEqual(ingest.retry_after_of(text), wanted, text)
        self.assertGreater(ingest.retry_after_of("Fri, 01 Jan 2100 00:00:00 GMT"), 1e6)


class Pauses(unittest.TestCase):
    def test_double_up_to_a_limit(self):
        backoff, step = ingest.Backoff(), ingest.Backoff.FIRST_S
        for _ in range(30):
            pause = backoff.next(0)
            self.assertTrue(step / 2 <= pause <= step, pause)
            step = min(2 * step, ingest.Backoff.MOST_S)
        self.assertEqual(step, ingest.Backoff.MOST_S)
        backoff.reset()
        self.assertLessEqual(backoff.next(0), ingest.Backoff.FIRST_S)

    def test_two_do_not_come_back_together(self):
        self.assertGreater(len({ingest.Backoff().next(30) for _ in range(20)}), 10)

    def test_a_servers_wish_is_the_least_but_bounded(self):
        self.assertTrue(90 <= ingest.Backoff().next(90) <= 91)
        self.assertLessEqual(ingest.Backoff().next(1e12), ingest.Backoff.MOST_ASKED_S + ingest.Backoff.FIRST_S)
        self.assertLessEqual(ingest.Backoff().next(-5), ingest.Backoff.FIRST_S)


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, self.headers, body))
        if self.server.hangs:
            time.sleep(self.server.hangs)
        self.send_response(self.server.status)
        for name, value in self.server.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.text)


class Requests(unittest.TestCase):
    PROFILE = Profile("app{a=b c&d=é%}", 99, b"p" * 200000)
    NAME = SpoolName(1700000000250, 1700000060250, 0)

    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *arguments: None  # a client may go while the server answers
        self.server.seen, self.server.status, self.server.headers, self.server.text, self.server.hangs = [], 200, [], b"", 0
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.server.server_close)
        self.url = f"http://127.0.0.1:{self.server.server_port}/ingest"

    def send(self, token=ingest.Token(), gives_up=lambda: False, **more):
        return ingest.Server(self.url, timeout_s=5, **more).send(self.PROFILE, self.NAME, token, gives_up)

    def test_have_the_profile_its_times_its_labels_and_who_sends_it(self):
        self.assertEqual(self.send(ingest.Token("", "secret"), tenant="team").status, 200)
        [(path, headers, body)] = self.server.seen
        self.assertEqual(body, self.PROFILE.pprof)
        self.assertEqual(urllib.parse.parse_qs(path.partition("?")[2], strict_parsing=True),
                         {"name": ["app{a=b c&d=é%}"], "from": ["1700000000"], "until": ["1700000061"], "sampleRate": ["99"],
                          "format": ["pprof"], "spyName": ["stackpipe"]})
        self.assertEqual((headers["Authorization"], headers["X-Scope-OrgID"], headers["Content-Type"]),
                         ("Bearer secret", "team", "application/octet-stream"))

    def test_have_no_token_where_there_is_none(self):
        self.send()
        self.assertNotIn("Authorization", self.server.seen[0][1])

    def test_follow_no_redirection(self):
        self.server.status, self.server.headers = 302, [("Location", self.url)]
        self.assertEqual(self.send(ingest.Token("", "secret")).status, 302)
        self.assertEqual(len(self.server.seen), 1)

    def test_tell_what_the_server_says_and_wishes(self):
        self.server.status, self.server.headers, self.server.text = 429, [("Retry-After", "7")], b"wait\x1b" + b"x" * 1000
        answer = self.send()
        self.assertEqual((answer.status, answer.retry_after_s, answer.text[:5], len(answer.text)), (429, 7, "wait\x1b", 512))

    def test_take_no_proxy_to_this_machine(self):
        os.environ["http_proxy"] = "http://127.0.0.1:1"
        self.addCleanup(os.environ.pop, "http_proxy")
        self.assertEqual(self.send().status, 200)
        self.assertEqual(self.send(allows_http=True).status, 0)

    def test_go_by_http_to_no_machine_that_is_called_localhost(self):
        addresses = [(2, 1, 6, "", ("127.0.0.1", 80)), (2, 1, 6, "", ("192.0.2.1", 80))]
        with unittest.mock.patch("socket.getaddrinfo", return_value=addresses):
            self.assertEqual(self.send()[:2], (0, "127.0.0.1 is 192.0.2.1, which is not this machine: nothing is sent by http"))
        self.assertEqual(self.server.seen, [])

    def test_end_early_where_there_is_no_time(self):
        self.server.hangs = 0.5
        self.assertEqual(self.send(gives_up=lambda: bool(self.server.seen)), (0, "no time left", 0))

    def test_say_why_there_is_no_answer(self):
        self.assertEqual(ingest.Server("http://127.0.0.1:1/ingest").send(self.PROFILE, self.NAME, ingest.Token(), lambda: False),
                         (0, "Connection refused", 0))
        self.url = self.url.replace("http:", "https:")
        self.assertIn("it does not speak https", self.send().text)

    def test_need_certificates_in_the_file_that_is_named(self):
        with tempfile.NamedTemporaryFile() as file, self.assertRaisesRegex(Failure, "contains no certificates$"):
            ingest.Server("https://example.com/ingest", ca_file=file.name)

class Hostile(unittest.TestCase):
    """A server that never comes to an end.  The deadline of the exchange ends its connection and our thread."""

    def setUp(self):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listening.close)
        patch = unittest.mock.patch.object(ingest, "_TIMEOUTS_IN_ALL", 1)
        patch.start()
        self.addCleanup(patch.stop)

    def exchange(self, act, scheme="http", **more):
        """Sends a profile to a server that acts in this way, and returns the answer.  Fails if a thread of ours goes on."""
        ended = []

        def serve():
            connection, _ = self.listening.accept()
            with connection:
                try:
                    act(connection)
                except OSError as error:
                    ended.append(error)

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        before = threading.active_count()
        url = f"{scheme}://127.0.0.1:{self.listening.getsockname()[1]}/ingest"
        answer = ingest.Server(url, timeout_s=1, **more).send(Requests.PROFILE, Requests.NAME, ingest.Token(), lambda: False)
        server.join(30)
        self.assertFalse(server.is_alive(), "the connection is still open")
        for thread in threading.enumerate():
            if thread.daemon and thread is not server:
                thread.join(30)
        self.assertLessEqual(threading.active_count(), before)
        return answer

    def endless(self, start, piece, pause_s=0.0):
        def act(connection):
            connection.settimeout(60)
            connection.sendall(start)
            while True:
                connection.sendall(piece)
                time.sleep(pause_s)

        return act

    def test_answers_that_never_end(self):
        for start, piece in ((b"", b"HTTP/1.1 100 Continue\r\n\r\n"), (b"", b"HTTP/1.1 103 Hint\r\nA: b\r\n\r\n"),
                             (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n"),
                             (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n")):
            with self.subTest(start=start, piece=piece):
                self.exchange(self.endless(start, piece))

    def test_answers_that_drip(self):
        for start, piece in ((b"HTTP/1.1 200 ", b"x"), (b"HTTP/1.1 200 OK\r\nA: ", b"b"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n")):
            with self.subTest(start=start, piece=piece):
                self.assertEqual(self.exchange(self.endless(start, piece, 0.02)).status, 0)

    def test_answers_that_make_no_sense(self):
        head = b"HTTP/1.1 200 OK\r\n"
        for text in (b"", b"\0" * 100000, b"HTTP/1.1 " + b"2" * 5000 + b" OK\r\n\r\n", head + b"A: b\r\n" * 1000, head + b"A" * 100000,
                     head + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", head + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 5000 + b"\r\n",
                     head + b"Retry-After: " + b"9" * 5000 + b"\r\n\r\n", head + b"Retry-After: Mon, 99 Foo 99999 99:99:99 +9999\r\n\r\n"):
            def act(connection, text=text):
                while len(connection.recv(65536)) == 65536:
                    pass
                connection.sendall(text)

            with self.subTest(text=text[:60]):
                self.assertIn(self.exchange(act).status, (0, 200))

    def test_handshakes_that_do_not_end(self):
        hello = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc"  # a record of 16 KiB, which drips
        for start, piece in ((b"", b""), (hello, b"\0"), (b"\x16\x03\x03\x40\x00" + b"\x0b\xff\xff\xff" + bytes(16380), b"\x16\x03\x03\x40\x00" + bytes(16384))):
            with self.subTest(start=start[:10]):
                act = self.endless(start, piece, 0.02)
                self.assertEqual(self.exchange(act if piece else lambda connection: self.drain(connection), "https").status, 0)

    def drain(self, connection):
        while connection.recv(65536):
            pass

    def test_certificates_that_prove_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            for subject, dates, trusted, reason in (("IP:127.0.0.1", "ok", False, "self"), ("DNS:other.example", "ok", True, "IP address mismatch"),
                                                    ("IP:127.0.0.1", "old", True, "expired")):
                key, certificate = certificate_in(folder, subject, dates)
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate, key)

                def act(connection, context=context):
                    with context.wrap_socket(connection, server_side=True) as secure:
                        secure.recv(1)

                with self.subTest(reason=reason):
                    answer = self.exchange(act, "https", ca_file=certificate if trusted else "")
                    self.assertEqual(answer.status, 0)
                    self.assertIn(reason, answer.text)

    def test_connections_that_only_renew_their_keys(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = certificate_in(folder, "IP:127.0.0.1", "ok")
            for version, command in (("-tls1_2", "R"), ("-tls1_3", "K")):  # renegotiates; updates the keys of both sides
                with (self.subTest(version=version), RenewingServer(version, command, certificate, key) as server,
                      unittest.mock.patch.object(ingest, "_TIMEOUTS_IN_ALL", 1 / 30)):  # the deadline is long before a timeout
                    before = threading.active_count()
                    answer = ingest.Server(f"https://127.0.0.1:{server.port}/ingest", ca_file=certificate).send(
                        Requests.PROFILE, Requests.NAME, ingest.Token(), lambda: False)
                    self.assertEqual(answer, (0, "no time left", 0))
                    self.assertGreater(server.commands, 1)
                    self.assertLessEqual(threading.active_count(), before)

    def test_records_that_drip(self):
        with tempfile.TemporaryDirectory() as folder:
            key, certificate = certificate_in(folder, "IP:127.0.0.1", "ok")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)

            def act(connection):
                with context.wrap_socket(connection, server_side=True) as secure:
                    self.endless(b"HTTP/1.1 200 ", b"x", 0.02)(secure)

            self.assertEqual(self.exchange(act, "https", ca_file=certificate).status, 0)


class RenewingServer:
    """A TLS server that never answers.  It gives its connection new keys 50 times a second."""

    def __init__(self, version, command, certificate, key):
        self.commands = 0
        self._command, self._is_over = command, threading.Event()
        self._program = subprocess.Popen(["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", key, version],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while not (line := self._program.stdout.readline()).startswith(b"ACCEPT "):
            if not line:
                raise AssertionError("openssl s_server does not start")
        self.port = int(line.rpartition(b":")[2])
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._command_it)]

    def __enter__(self):
        self._began = threading.Event()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._program.kill()
        self._program.wait()
        for thread in self._threads:
            thread.join()
        self._program.stdin.close()
        self._program.stdout.close()

    def _read(self):
        while line := self._program.stdout.readline():
            if line.startswith(b"CIPHER is"):  # the handshake is over
                self._began.set()

    def _command_it(self):
        self._began.wait(60)
        with contextlib.suppress(OSError):
            while not self._is_over.wait(0.02):
                self._program.stdin.write(self._command.encode() + b"\n")
                self._program.stdin.flush()
                self.commands += 1


def certificate_in(folder, subject, dates):
    """Makes a key and its own certificate.  "old": it has expired."""
    key, certificate, request, settings = (os.path.join(folder, name) for name in ("key", "certificate", "request", "settings"))
    until = {"ok": "20991231235959Z", "old": "20010102000000Z"}[dates]
    for name, text in (("settings", f"[ca]\ndefault_ca=own\n[own]\ndir={folder}\ndatabase={folder}/index\nnew_certs_dir={folder}\nserial={folder}/serial\n"
                        f"default_md=sha256\npolicy=any\nx509_extensions=ext\n[any]\ncommonName=supplied\n[ext]\nsubjectAltName={subject}\n"),
                       ("index", ""), ("serial", "01\n")):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    for command in (["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", request, "-subj", "/CN=test"],
                    ["openssl", "ca", "-config", settings, "-batch", "-selfsign", "-notext", "-keyfile", key, "-in", request, "-out", certificate,
                     "-startdate", "20010101000000Z", "-enddate", until]):
        subprocess.run(command, check=True, capture_output=True)
    return key, certificate
