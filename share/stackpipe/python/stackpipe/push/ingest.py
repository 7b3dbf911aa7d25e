"""Sends a profile to a server that accepts profiles like Pyroscope, by POST /ingest.

The body is the profile, and the query has
  name=SERIES        name{key=value,...}
  from=, until=      seconds of Unix time
  sampleRate=HZ      omitted if unknown
  format=pprof
Sources: grafana.com/docs/pyroscope, "Server HTTP API"; github.com/grafana/pyroscope,
pkg/ingester/pyroscope/ingest_handler.go.  X-Scope-OrgID names the tenant.

The client does not follow redirections, so it sends a token only to the named server.  It verifies certificates, and reads
only the start of an answer.  One deadline ends the whole exchange, whatever the server sends.
"""
import contextlib
import os
import re
import socket
import stat
import threading
import time
import urllib.parse
from typing import Any, Callable, Iterator, NamedTuple

from stackpipe.messages import Failure, UsageError, printable, text_of
from stackpipe.push.spool import Profile, SpoolName

_MOST_TOKEN_BYTES = 8192
_MOST_ANSWER_BYTES = 64 * 1024  # the client stops reading an answer after this
_MOST_TEXT = 200  # the most characters of an answer that a message shows
_PIECE = 64 * 1024
_TIMEOUTS_IN_ALL = 20  # limits a transfer to 20 timeouts, for a server that sends a byte at a time
_TICK_S = 0.1  # how often a transfer checks whether to give up
_END_S = 1.0  # the time to end a transfer whose connection is closed


def ingest_url(address: str, allows_http: bool) -> str:
    """Returns the address of POST /ingest at a server, from "host", "https://host:4040/prefix" or ".../ingest".  The
    default is https; http needs permission for any host but this machine.  Raises UsageError, which never repeats the
    address: it may hold a password."""
    if re.search(r"[\s\x00-\x20\x7f\\]", address):
        raise UsageError("--url: not an address: it has blanks or control characters")
    if "://" not in address:
        address = f"https://{address}"
    try:
        parts = urllib.parse.urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"--url: not an address: the {'port' if 'ort' in str(error) else 'host'} is wrong") from None
    if parts.scheme not in ("https", "http"):
        raise UsageError("--url: neither https nor http")
    if parts.username or parts.password:
        raise UsageError("--url: everyone can see a password in an address: put USER:PASSWORD into a --token-file")
    if "?" in address or "#" in address:
        raise UsageError("--url: only the server's address, without ? and #")
    if not re.fullmatch(r"[^/@%<>^{}|\[\]\"']+", host) or (":" in host and not parts.netloc.rpartition("@")[2].startswith("[")):
        raise UsageError("--url: not an address: the host is missing or wrong")
    if parts.scheme == "http" and not allows_http and not is_this_machine(host):
        raise UsageError("--url: http shows profiles and token to anyone on the network: use https, or --insecure-http")
    path = parts.path.rstrip("/")
    path = path if path.endswith("/ingest") else f"{path}/ingest"
    netloc = (f"[{host}]" if ":" in host else host) + (f":{port}" if port is not None else "")
    return f"{parts.scheme}://{netloc}{urllib.parse.quote(path, safe='/%:@!$&()*+,;=~')}"


def is_this_machine(host: str) -> bool:
    """Does a name or number mean this machine?  Numbers may have any form that callers of connect(2) accept."""
    if host.lower() == "localhost" or host == "::1":
        return True
    try:
        return socket.inet_aton(host)[0] == 127
    except OSError:
        return False


def check_is_here(url: str) -> None:
    """Raises OSError if the host of an address is not this machine.  A name server may map even "localhost" elsewhere."""
    import ipaddress

    parts = urllib.parse.urlsplit(url)
    for *_, address in socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM):
        if not ipaddress.ip_address(address[0]).is_loopback:
            raise OSError(f"{parts.hostname} is {address[0]}, which is not this machine: nothing is sent by http")


class Token(NamedTuple):
    """The secret that authenticates us to a server.  It never appears on a command line or in a message."""

    user: str = ""  #: the user of HTTP Basic authentication (RFC 7617); empty: Bearer (RFC 6750)
    secret: str = ""  #: empty: no token

    def header(self) -> str:
        """Returns the value of the header Authorization."""
        if not self.user:
            return f"Bearer {self.secret}"
        import base64

        return "Basic " + base64.b64encode(f"{self.user}:{self.secret}".encode()).decode()

    def is_in(self, answer: str) -> bool:
        """Does a server's answer contain the token, its start, or its header?"""
        return bool(self.secret) and (self.secret[:8] in answer or "Basic " in answer)


def read_token(path: str) -> Token:
    """Reads the first line of a file, "TOKEN" or "USER:PASSWORD"; a bearer token has no colon.  Raises Failure, which never
    shows the content, also if others than its owner and group can read or write the file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Failure(f"{path}: not a regular file")
            text = text_of(os.read(descriptor, _MOST_TOKEN_BYTES))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    if status.st_mode & (stat.S_IROTH | stat.S_IWOTH):
        raise Failure(f"{path}: everyone can read or change this token: chmod o= this file")
    line = text.partition("\n")[0].removesuffix("\r")
    if len(text) == _MOST_TOKEN_BYTES or not re.fullmatch("[!-~]+", line):
        raise Failure(f"{path}: contains no token: one line of letters, digits and signs is needed")
    user, colon, secret = line.partition(":")
    if not colon:
        return Token("", line)
    if not user:
        raise Failure(f"{path}: no user before the colon")
    return Token(user, secret)


class Answer(NamedTuple):
    """The answer of a server."""

    status: int  #: the HTTP status; 0: no answer came, or the request was not sent completely
    text: str  #: the start of the body, or the reason why there is none; short, but not safe to print
    retry_after_s: float = 0

    def message(self) -> str:
        """Returns text such as "503: 'out of memory'", or the reason why there is no answer."""
        if self.status == 0:
            return printable(self.text[:_MOST_TEXT])
        return f"{self.status}: '{printable(self.text[:_MOST_TEXT])}'" if self.text else str(self.status)


def judge(status: int) -> str:
    """Returns the meaning of a status for the profile (RFC 9110, 15): "sent"; "refused", if the profile is at fault (400,
    413, 415, 422, ...); or "again".  An error in the token (401, 403, 407) or the address (404, 405, redirections) means
    "again": the profile can be sent once the user has corrected it."""
    if 200 <= status < 300:
        return "sent"
    if 400 <= status < 500 and status not in (401, 403, 404, 405, 407, 408, 421, 425, 426, 429):
        return "refused"
    return "again"


class Backoff:
    """The pause after a failed request.  It doubles after each failure, up to a limit.  The pause is random between half of
    this value and all of it, so that many clients do not return to a server at once.  A longer Retry-After of the server
    (RFC 9110, 10.2.3) replaces it, up to a limit."""

    FIRST_S, MOST_S, MOST_ASKED_S = 1.0, 300.0, 3600.0

    def __init__(self) -> None:
        import random

        self._chance = random.SystemRandom()
        self.reset()

    def reset(self) -> None:
        """Resets the pause after a success."""
        self._step_s = self.FIRST_S

    def next(self, asked_s: float) -> float:
        """Returns the pause after one more failure in a row; `asked_s` is the server's Retry-After."""
        own = self._chance.uniform(self._step_s / 2, self._step_s)
        self._step_s = min(self._step_s * 2, self.MOST_S)
        if asked_s <= 0:
            return own
        return max(own, min(asked_s, self.MOST_ASKED_S) + self._chance.uniform(self.FIRST_S / 2, self.FIRST_S))


def query_of(profile: Profile, name: SpoolName) -> str:
    """Returns the query.  Its whole seconds enclose the time of the profile."""
    fields = {"name": profile.series, "from": name.from_ms // 1000, "until": -(-name.until_ms // 1000)}
    if profile.rate_hz:
        fields["sampleRate"] = profile.rate_hz
    fields |= {"format": "pprof", "spyName": "stackpipe"}
    return urllib.parse.urlencode(fields, quote_via=urllib.parse.quote, safe="", errors="surrogateescape")


def retry_after_of(text: str | None) -> float:
    """Parses Retry-After, a number of seconds or a date, into seconds; 0 if it is missing or invalid."""
    if not text:
        return 0
    if re.fullmatch("[0-9]{1,9}", text):
        return float(text)
    import email.utils

    try:
        return max(email.utils.parsedate_to_datetime(text).timestamp() - time.time(), 0)
    except (ValueError, TypeError, OverflowError, IndexError, OSError):
        return 0


class Lines:
    """The connections of a transfer.  A timeout of a socket limits one wait, and a server that sends a byte at a time, or interim
    answers without end, never exceeds it.  Only the end of its connection ends such a transfer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._is_closed = False

    def connect(self, *arguments: Any, **more: Any) -> socket.socket:
        """Connects as socket.create_connection() does."""
        connection = socket.create_connection(*arguments, **more)
        with self._lock:
            self._open.append(connection.dup())  # TLS takes the socket itself
            if self._is_closed:
                self._end()
        return connection

    def close(self) -> None:
        """Ends all connections, also those to come."""
        with self._lock:
            self._is_closed = True
            self._end()

    def _end(self) -> None:
        for connection in self._open:
            with contextlib.suppress(OSError):  # the server has closed it
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._open.clear()


class Server:
    """The server that receives the profiles.  Raises Failure."""

    def __init__(self, url: str, ca_file: str = "", tenant: str = "", allows_http: bool = False, timeout_s: int = 30):
        import ssl

        try:
            trust = ssl.create_default_context(cafile=ca_file or None)
        except (OSError, ssl.SSLError):
            raise Failure(f"{ca_file}: contains no certificates") from None
        trust.minimum_version = ssl.TLSVersion.TLSv1_2
        # http to this machine must not use a proxy.
        self._must_be_here = url.startswith("http:") and not allows_http
        self._trust = trust
        self.url, self._tenant, self._timeout_s = url, tenant, timeout_s

    def _opener(self, lines: Lines) -> Callable[..., Any]:
        """Returns what opens a request by connections of `lines`."""
        import http.client
        import urllib.request

        class Connection(http.client.HTTPConnection):
            def __init__(self, *arguments: Any, **more: Any):
                super().__init__(*arguments, **more)
                self._create_connection = lines.connect

        class SecureConnection(http.client.HTTPSConnection):
            def __init__(self, *arguments: Any, **more: Any):
                super().__init__(*arguments, **more)
                self._create_connection = lines.connect

        class Handler(urllib.request.HTTPHandler):
            def http_open(self, request: urllib.request.Request) -> Any:
                return self.do_open(Connection, request)

        class SecureHandler(urllib.request.HTTPSHandler):
            def https_open(self, request: urllib.request.Request) -> Any:
                return self.do_open(SecureConnection, request, context=trust)

        class NotFollowed(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *arguments: object) -> None:
                return None

        trust = self._trust
        proxies = urllib.request.ProxyHandler({} if self._must_be_here else None)
        return urllib.request.build_opener(proxies, Handler, SecureHandler(context=trust), NotFollowed).open

    def send(self, profile: Profile, name: SpoolName, token: Token, gives_up: Callable[[], bool]) -> Answer:
        """Sends a profile, and waits for the answer or until `gives_up()` is true; it is polled several times a second.
        The transfer runs in a thread, because a DNS lookup has no timeout.  When the time is over, its connections end, and the
        thread with them; only one that waits for a name server is left to the end of the process."""
        answers: list[Answer] = []
        lines = Lines()
        deadline = time.monotonic() + _TIMEOUTS_IN_ALL * self._timeout_s
        thread = threading.Thread(target=lambda: answers.append(self._transfer(profile, name, token, lines, deadline)), daemon=True)
        thread.start()
        while thread.is_alive() and not gives_up() and time.monotonic() < deadline:
            thread.join(_TICK_S)
        answer = answers[0] if answers else Answer(0, "no time left")
        lines.close()
        thread.join(_END_S)
        return answer

    def _transfer(self, profile: Profile, name: SpoolName, token: Token, lines: Lines, deadline: float) -> Answer:
        import http.client
        import ssl
        import urllib.error
        import urllib.request

        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(len(profile.pprof)),
                   "User-Agent": "stackpipe profile-push"}
        if self._tenant:
            headers["X-Scope-OrgID"] = self._tenant
        request = urllib.request.Request(f"{self.url}?{query_of(profile, name)}", pieces(profile.pprof, deadline), headers, method="POST")
        if token.secret:
            request.add_unredirected_header("Authorization", token.header())
        try:
            if self._must_be_here:
                check_is_here(self.url)
            try:
                response = self._opener(lines)(request, timeout=self._timeout_s)
            except urllib.error.HTTPError as error:
                response = error
            with response:
                return Answer(response.status, read_a_little(response, deadline), retry_after_of(response.headers["Retry-After"]))
        except urllib.error.URLError as error:
            return Answer(0, reason_of(error.reason))
        except (OSError, ssl.SSLError, http.client.HTTPException, ValueError) as error:
            return Answer(0, reason_of(error))


def pieces(data: bytes, deadline: float) -> Iterator[bytes]:
    """Yields the data in pieces.  Each piece has the full timeout; all of them share the deadline."""
    for begin in range(0, len(data), _PIECE):
        if time.monotonic() > deadline:
            raise TimeoutError("timed out")
        yield data[begin:begin + _PIECE]


def read_a_little(response, deadline: float) -> str:
    """Returns the start of a body."""
    text, count = b"", 0
    while count <= _MOST_ANSWER_BYTES and time.monotonic() < deadline:
        piece = response.read1(_PIECE)
        if not piece:
            break
        count += len(piece)
        text += piece[:512 - len(text)] if len(text) < 512 else b""
    return text_of(text)


def reason_of(error: object) -> str:
    """Returns the reason why there is no answer."""
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return f"SSL: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).replace("_", " ").lower()
        if reason in ("wrong version number", "record layer failure", "packet length too long", "http request"):
            return f"it does not speak https (use http://... if it is this machine): SSL: {reason}"
        return f"SSL: {reason}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
