"""profile-push(1): keeps profiles on disk until a server has accepted them."""
import math
import os
import re
import select
import signal
import sys
import time
from typing import NamedTuple, Sequence

from stackpipe import pipeline
from stackpipe.command import read_options
from stackpipe.push.ingest import Answer, Backoff, Server, Token, ingest_url, judge, read_token
from stackpipe.messages import Failure, UsageError, count_of, say
from stackpipe.options import HELP, VERSION, CommandLine, Option, read_bytes
from stackpipe.push.spool import LAST_TIME_MS, MOST_PROFILE_BYTES, Counts, Outbox, Profile, Spool, SpoolName

NAME = "profile-push"
USAGE = """Usage: profile-push [OPTION]... [FILE]
Keep profiles on disk until a server has accepted them.
"""
OPTIONS = (
    Option("spool", "", "DIR", "folder where profiles wait (default profiles/watch/spool)"),
    Option("spool-size", "", "SIZE", "drop the oldest profiles beyond this size (default 256M)"),
    Option("name", "", "APP", "name of the application (default stackpipe)"),
    Option("label", "", "KEY=VALUE", "a label; hostname is added automatically", repeats=True),
    Option("from", "", "S", "Unix time of the profile's start (default --until)"),
    Option("until", "", "S", "Unix time of its end (default now)"),
    Option("rate", "", "HZ", "samples per second"),
    Option("url", "", "URL", "send waiting profiles to this server, by https unless URL starts with http"),
    Option("follow", "", "", "continue, even after failures, until standard input ends"),
    Option("patience", "", "S", "seconds to send the remaining profiles at the end (default 5)"),
    Option("timeout", "", "S", "fail after S seconds without traffic (default 30)"),
    Option("token-file", "", "FILE", "a file with the bearer token, or USER:PASSWORD"),
    Option("ca-file", "", "FILE", "trust the certificates in FILE, not the system's"),
    Option("tenant", "", "ID", "the tenant, if the server has several"),
    Option("insecure-http", "", "", "allow http, which anyone on the network can read"),
    Option("dry-run", "", "", "only check the options"),
    HELP,
    VERSION,
)
_OF_PUTTING = ("name", "label", "from", "until", "rate")
_OF_SENDING = ("follow", "patience", "timeout", "token-file", "ca-file", "tenant", "insecure-http")
# Pyroscope's limits (github.com/grafana/pyroscope, api/model/labelset/{labelset,validate}.go, its limits
# validation.max-length-label-name and -value).  Prometheus's rule, which Pyroscope keeps, limits a key's first character.
_APP = re.compile(r"[A-Za-z0-9_./-]+")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,1023}")
_TENANT = re.compile(r"[A-Za-z0-9_!.*'()-]{1,150}")
_MOST_VALUE_BYTES = 2048
_MOST_SERIES_BYTES = 4096  # some servers reject a longer request line
_MOST_UNPACKED = 4 << 30
_LOOK_S = 1.0  # how long a new profile may stay unnoticed


class Put(NamedTuple):
    """The description of a profile to put into the spool."""

    series: str
    rate_hz: int
    from_ms: int
    until_ms: int


class Send(NamedTuple):
    """How to send the profiles in the spool."""

    url: str
    allows_http: bool
    ca_file: str
    tenant: str
    timeout_s: int
    patience_s: float
    follows: bool
    token_file: str


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Returns 0 if all is done, and 1 if profiles are lost or still waiting."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools)
    folder = line.last("spool", "profiles/watch/spool")
    if not folder:
        raise UsageError("--spool: not a folder: ''")
    limit_bytes = read_bytes("spool-size", line.last("spool-size", "256M"))
    operands = line.operands + (line.command or []) or ["-"]
    others, when = (_OF_PUTTING, "cannot be combined with --url") if line.has("url") else (_OF_SENDING, "only with --url")
    for name in others:
        if line.has(name):
            raise UsageError(f"--{name}: {when}")
    if line.has("url"):
        request = read_send(line)
        if operands != ["-"]:
            raise UsageError("--url: sends the profiles in the spool, and accepts no FILE")
    else:
        request = read_put(line)
        if len(operands) != 1:
            raise UsageError("one profile at a time")
    if line.has("dry-run"):
        return 0
    os.umask(0o077)  # profiles reveal what a machine does
    if isinstance(request, Send):
        return send(folder, limit_bytes, request)
    return put(folder, limit_bytes, request, operands[0])


def read_ms(line: CommandLine, name: str, most_ms: int, otherwise_ms: int) -> int:
    """Returns an option's seconds in milliseconds; raises UsageError."""
    if not line.has(name):
        return otherwise_ms
    text = line.last(name)
    if not re.fullmatch(r"[0-9]{1,15}(\.[0-9]{0,15})?|\.[0-9]{1,15}", text, re.ASCII) or float(text) * 1000 > most_ms:
        raise UsageError(f"--{name}: not a number of seconds up to {most_ms // 1000}: '{text}'")
    return math.floor(float(text) * 1000 + 0.5)


def parse_label(text: str) -> tuple[str, str] | None:
    """Parses "KEY=VALUE"; None if Pyroscope would reject it.  Its grammar has no quotes: a value ends at "," or "}"."""
    key, _, value = text.partition("=")
    if not _KEY.fullmatch(key) or key == "__name__":
        return None
    is_good = re.fullmatch("[^\x00-\x1f\x7f,}\ud800-\udfff]+", value) and len(value.encode()) <= _MOST_VALUE_BYTES
    return (key, value) if is_good else None


def series_text(app: str, labels: dict[str, str]) -> str:
    """Returns the series of a profile in Pyroscope's form, name{key=value,...}.  The same labels give the same text.  Raises
    UsageError."""
    text = app + "{" + ",".join(f"{key}={value}" for key, value in sorted(labels.items())) + "}"
    if len(text.encode()) > _MOST_SERIES_BYTES:
        raise UsageError(f"--label: name and labels are longer than {_MOST_SERIES_BYTES} bytes")
    return text


def read_put(line: CommandLine) -> Put:
    """Reads the options of putting a profile; raises UsageError."""
    app = line.last("name", "stackpipe")
    if not _APP.fullmatch(app):
        raise UsageError(f"--name: not a name of letters, digits, '-', '.', '/' and '_': '{app}'")
    labels: dict[str, str] = {}
    for text in line.values.get("label", []):
        label = parse_label(text)
        if not label:
            raise UsageError("--label: not KEY=VALUE with a KEY of letters, digits, '.' and '_', and a VALUE without ',' "
                             f"and '}}': '{text}'")
        if label[0] in labels:
            raise UsageError(f"--label: a label is given twice: '{label[0]}'")
        labels[label[0]] = label[1]
    if host := re.sub(r"[^A-Za-z0-9_./-]", "_", os.uname().nodename):
        labels.setdefault("hostname", host)
    series = series_text(app, labels)
    until_ms = read_ms(line, "until", LAST_TIME_MS, int(time.time() * 1000))
    from_ms = read_ms(line, "from", LAST_TIME_MS, until_ms)
    if from_ms > until_ms:
        raise UsageError("--from: later than --until")
    rate = line.last("rate")
    if line.has("rate") and not (re.fullmatch("[0-9]{1,9}", rate, re.ASCII) and int(rate) > 0):
        raise UsageError(f"--rate: not a number of samples per second: '{rate}'")
    return Put(series, int(rate or 0), from_ms, until_ms)


def read_send(line: CommandLine) -> Send:
    """Reads the options of sending; raises UsageError, or Failure if an option's file cannot be read."""
    allows_http = line.has("insecure-http")
    url = ingest_url(line.last("url"), allows_http)
    ca_file, tenant, token_file = line.last("ca-file"), line.last("tenant"), line.last("token-file")
    if line.has("ca-file"):  # checked here: later, a missing file would look like an unreachable server
        try:
            os.close(os.open(ca_file, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            raise Failure(f"{ca_file}: {error.strerror}") from None
    if line.has("tenant") and not _TENANT.fullmatch(tenant):
        raise UsageError(f"--tenant: not a name of letters, digits and !-_.*'(): '{tenant}'")
    timeout_ms = read_ms(line, "timeout", 3_600_000, 30_000)
    if timeout_ms < 1000 or timeout_ms % 1000:
        raise UsageError(f"--timeout: not whole seconds from 1: '{line.last('timeout')}'")
    patience_s = read_ms(line, "patience", 3_600_000, 5000) / 1000
    if token_file:
        read_token(token_file)  # reports errors now, while the user is present
    return Send(url, allows_http, ca_file, tenant, timeout_ms // 1000, patience_s, line.has("follow"), token_file)


def check_is_whole(data: bytes, name: str) -> None:
    """Raises Failure if the gzip data is truncated or damaged: no server should get a partial profile."""
    import gzip
    import io
    import zlib

    count = 0
    try:
        with gzip.open(io.BytesIO(data), "rb") as file:
            while piece := file.read(1 << 20):
                count += len(piece)
                if count > _MOST_UNPACKED:
                    raise Failure(f"{name}: more than {_MOST_UNPACKED} bytes when unpacked")
    except EOFError:
        raise Failure(f"{name}: not a complete profile: the gzip data is cut off") from None
    except (OSError, zlib.error):
        raise Failure(f"{name}: not a complete profile: the gzip data is damaged") from None


def read_profile(path: str, limit_bytes: int) -> bytes:
    """Reads the whole input, or its first `limit_bytes` + 1 bytes.  Raises Failure."""
    name = "stdin" if path == "-" else path
    try:
        with sys.stdin.buffer if path == "-" else open(path, "rb") as file:
            data = file.read(limit_bytes + 1)
    except OSError as error:
        raise Failure(f"{name}: {error.strerror}") from None
    if data[:2] != b"\x1f\x8b":
        raise Failure(f"{name}: not a compressed pprof profile: stackfold --to pprof writes one")
    if len(data) <= limit_bytes:  # otherwise the spool refuses it for its size
        check_is_whole(data, name)
    return data


def put(folder: str, limit_bytes: int, request: Put, path: str) -> int:
    """Puts a profile into the spool."""
    data = read_profile(path, min(limit_bytes, MOST_PROFILE_BYTES))
    spool = Spool(folder, limit_bytes)
    try:
        dropped = spool.put(request.from_ms, request.until_ms, Profile(request.series, request.rate_hz, data).content())
    except OSError as error:
        raise Failure(f"{folder}: {error.strerror}") from None
    if dropped:
        say(f"{folder}: {count_of(dropped, 'profile')} dropped: the spool is full")
    return 0


class Ending:
    """Decides when to stop.  The end of standard input or a signal requests a stop, which leaves `patience_s` seconds.  A
    second signal leaves none."""

    def __init__(self, follows: bool, patience_s: float):
        self._patience_s, self._follows = patience_s, follows
        self._over_at: float | None = None
        self._waking, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker)
        pipeline.on_stop(lambda number, frame: self._begin())

    def _begin(self) -> None:
        now = time.monotonic()
        self._over_at = now + self._patience_s if self._over_at is None else now

    def _look(self, time_s: float) -> None:
        """Waits at most `time_s` for input or a signal, and handles it."""
        ready = select.select([self._waking] + [0] * self._follows, [], [], time_s)[0]
        if self._waking in ready:
            os.read(self._waking, 4096)
        if 0 in ready and not os.read(0, 4096):
            self._follows = False
            if self._over_at is None:
                self._begin()

    def has_begun(self) -> bool:
        """Has the stop been requested?"""
        self._look(0)
        return self._over_at is not None

    def is_over(self) -> bool:
        """Is the time over?"""
        return self.has_begun() and time.monotonic() >= self._over_at

    def wait(self, time_s: float) -> None:
        """Waits until `time_s` has passed or a stop is requested."""
        until = time.monotonic() + time_s
        while self._over_at is None and (left := until - time.monotonic()) > 0:
            self._look(left)


class Sender:
    """Sends the profiles of a spool, oldest first."""

    def __init__(self, outbox: Outbox, server: Server, ending: Ending, request: Send):
        self._outbox, self._server, self._ending, self._request = outbox, server, ending, request
        self._failures: set[tuple[int, str]] = set()  # kinds of failures since the last success
        self._refusals: set[int] = set()  # statuses of reported refusals
        self._unreadable: set[str] = set()

    def run(self) -> None:
        """Sends until a stop is requested and the spool is empty, or until the time is over.  After the request, one failure
        ends it."""
        backoff = Backoff()
        wished_until = 0.0
        while not self._ending.is_over():
            # Checked before take(), so that profiles that came before the stop request are still sent.
            goes_on = self._request.follows and not self._ending.has_begun()
            if not goes_on and time.monotonic() < wished_until:
                return
            outgoing = self._outbox.take()
            self._say_unreadable()
            if not outgoing:
                if not goes_on:
                    return
                self._ending.wait(_LOOK_S)
                continue
            answer = self._try_to_send(*outgoing)
            if self._deal_with(outgoing[0], answer):
                backoff.reset()
                continue
            if not self._request.follows or self._ending.has_begun():
                return
            pause = backoff.next(answer.retry_after_s)
            if answer.retry_after_s:
                wished_until = time.monotonic() + pause
            self._ending.wait(pause)

    def _try_to_send(self, name: SpoolName, profile: Profile) -> Answer:
        try:  # read for each profile, because the file may change, or be missing for a moment
            token = read_token(self._request.token_file) if self._request.token_file else Token()
        except Failure as failure:
            return Answer(0, str(failure))
        answer = self._server.send(profile, name, token, self._ending.is_over)
        if token.is_in(answer.text):
            return answer._replace(text="(the answer repeats the token, and is not shown)")
        return answer

    def _deal_with(self, name: SpoolName, answer: Answer) -> bool:
        """Handles an answer; False if the sender must pause before its next request."""
        verdict = judge(answer.status)
        if verdict == "again":
            self._outbox.release(name)
            # Some messages differ only in their milliseconds.
            kind = answer.status, re.sub("[0-9]", "", answer.message()) if answer.status == 0 else ""
            if kind not in self._failures:
                self._failures.add(kind)
                say(f"{self._server.url}: {answer.message()}; unsent profiles stay in the spool")
            return False
        self._outbox.remove(name, verdict)
        if verdict == "refused" and answer.status not in self._refusals:
            self._refusals.add(answer.status)
            say(f"{self._server.url}: a profile is refused: {answer.message()}")
        if self._failures:
            say(f"{self._server.url}: accepts profiles again")
        self._failures.clear()
        return True

    def _say_unreadable(self) -> None:
        for name in sorted(self._outbox.unreadable - self._unreadable):
            say(f"{name}: cannot be read, and stays there")
        self._unreadable |= self._outbox.unreadable


def open_outbox(spool: Spool, waits: bool, ending: Ending) -> Outbox | None:
    """Opens the outbox; if `waits`, waits while another process sends from it.  Raises Failure."""
    outbox = Outbox.open(spool)
    taken = f"{spool.folder}: another profile-push is sending from here"
    if not outbox and not waits:
        raise Failure(taken)
    if not outbox:
        say(f"{taken}: waiting for its end")
    while not outbox and not ending.has_begun():
        ending.wait(_LOOK_S)
        outbox = Outbox.open(spool)
    return outbox


def report_before(spool: Spool, before: Counts) -> None:
    """Reports the profiles and losses that earlier runs have left."""
    waiting = spool.waiting()
    parts = [f"{count_of(waiting, 'profile')} from before"] * bool(waiting)
    parts += [f"so far {before.losses()}"] * bool(before.losses())
    if parts:
        say(f"{spool.folder}: {'; '.join(parts)}")


def report_after(spool: Spool, before: Counts) -> bool:
    """Reports the result; returns whether no profile is lost or waiting."""
    everything = spool.counts()
    now = everything.since(before)
    losses, ever, waiting = now.losses(), everything.losses(), spool.waiting()
    text = f"{count_of(now['sent'], 'profile')} sent" + (f", {losses}" if losses else "")
    if ever != losses:
        text += f" (in all runs: {ever})"
    if waiting:
        text += (f"; {count_of(waiting, 'profile')} not sent yet, in {spool.folder}: "
                 f"the next run sends {'it' if waiting == 1 else 'them'}")
    say(text)
    return not losses and not waiting


def send(folder: str, limit_bytes: int, request: Send) -> int:
    """Sends the profiles in the spool to the server."""
    ending = Ending(request.follows, request.patience_s)
    server = Server(request.url, request.ca_file, request.tenant, request.allows_http, request.timeout_s)
    spool = Spool(folder, limit_bytes)
    before = spool.counts()
    report_before(spool, before)
    if outbox := open_outbox(spool, request.follows, ending):
        try:
            Sender(outbox, server, ending, request).run()
        finally:
            outbox.close()
    return 0 if report_after(spool, before) else 1
