"""The folder in which profiles wait to be sent.  Its size is bounded, and it stays consistent if a process is killed.

  FROM-UNTIL-N.pprof.gz   the waiting profiles
  sending/                holds the profile that is being sent, if any
  counts                  counts of sent and lost profiles, since the spool was made: a line "NAME COUNT" for each kind

A profile's name has its start and end in milliseconds of Unix time, with 13 digits so that names sort by age.  A number
distinguishes profiles of the same times.  The file is gzip data (RFC 1952) of two members.  The first is empty except for
its comment, "stackpipe-push 1 RATE_HZ SERIES"; the second is the unchanged profile.  So every reader of pprof profiles can
read a spooled one.

A process that changes something holds a lock (flock(2)) on the folder for that moment.  So unfinished files that it finds
under the lock were left by a killed process.  A sending process holds a lock on sending/ as long as it runs.  A profile
moves only by rename(2); a dropped profile is counted before it is removed.
"""
import contextlib
import fcntl
import os
import re
import stat
from typing import Iterator, NamedTuple

from stackpipe import files
from stackpipe.messages import Failure, bytes_of, text_of

#: Larger profiles are rejected, because sending needs the whole profile in memory.
MOST_PROFILE_BYTES = 1 << 30
#: The last time that fits 13 digits, in the year 2286.
LAST_TIME_MS = 9_999_999_999_999
_MOST_COUNTS_BYTES = 4096
_NAME = re.compile(r"([0-9]{13})-([0-9]{13})-(0|[1-9][0-9]{0,9})\.pprof\.gz", re.ASCII)
# ID1 ID2 CM FLG MTIME XFL OS (RFC 1952, 2.3): deflate, FCOMMENT, no time, OS unknown.
_MEMBER = b"\x1f\x8b\x08\x10\0\0\0\0\0\xff"
# The end of the comment, an empty deflate block, and the CRC32 and ISIZE of empty data.
_MEMBER_END = b"\0\x03\0\0\0\0\0\0\0\0\0"
_CONTENT = re.compile(re.escape(_MEMBER) + rb"stackpipe-push 1 ([0-9]{1,9}) ([^\0]+)" + re.escape(_MEMBER_END) + rb"(.*)", re.DOTALL)
#: The kinds of counts, and their text in messages; empty: not a loss.
_COUNTED = {"sent": "", "dropped": "dropped because the spool was full", "refused": "refused by the server", "damaged": "half-written"}


class SpoolName(NamedTuple):
    """The name of a profile; the oldest sorts first."""

    from_ms: int
    until_ms: int
    number: int

    @property
    def text(self) -> str:
        """The name of the file."""
        return f"{self.from_ms:013}-{self.until_ms:013}-{self.number}.pprof.gz"


def parse_name(text: str) -> SpoolName | None:
    """Parses a name; None unless it is exactly the text of one."""
    match = _NAME.fullmatch(text)
    if not match or int(match[2]) < int(match[1]) or int(match[3]) >= 1 << 32:
        return None
    return SpoolName(int(match[1]), int(match[2]), int(match[3]))


class Profile(NamedTuple):
    """The content of a profile's file."""

    series: str
    rate_hz: int  #: 0: not known
    pprof: bytes  #: gzip data

    def content(self) -> bytes:
        """Returns the bytes of the file."""
        return _MEMBER + b"stackpipe-push 1 %d " % self.rate_hz + bytes_of(self.series) + _MEMBER_END + self.pprof


def parse_content(content: bytes) -> Profile | None:
    """Parses a file's bytes; None if Profile.content() did not write them."""
    match = _CONTENT.fullmatch(content)
    return Profile(text_of(match[2]), int(match[1]), match[3]) if match else None


class Counts(dict):
    """Counts of sent and lost profiles, by the names in _COUNTED."""

    def __init__(self, **counts: int):
        super().__init__({name: counts.get(name, 0) for name in _COUNTED})

    def text(self) -> str:
        """Returns the content of the file `counts`."""
        return "".join(f"{name} {count}\n" for name, count in self.items())

    def plus(self, other: "Counts") -> "Counts":
        """Returns the sum of both counts."""
        return Counts(**{name: count + other[name] for name, count in self.items()})

    def since(self, before: "Counts") -> "Counts":
        """Returns the increase; it is never negative, although somebody may have emptied the file."""
        return Counts(**{name: max(count - before[name], 0) for name, count in self.items()})

    def losses(self) -> str:
        """Returns text such as "2 dropped because the spool was full, 1 refused by the server"; empty if nothing is lost."""
        return ", ".join(f"{self[name]} {loss}" for name, loss in _COUNTED.items() if loss and self[name])


def parse_counts(text: str) -> Counts:
    """Parses counts; a count that is missing or invalid is 0."""
    found = re.findall(r"^([a-z]+) ([0-9]{1,20})$", text, re.MULTILINE | re.ASCII)
    return Counts(**{name: int(count) for name, count in found if name in _COUNTED and int(count) < 1 << 64})


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _profiles_in(folder: str) -> list[SpoolName]:
    """Returns the profiles, oldest first.  Ignores folders, even if they have the name of a profile."""
    with os.scandir(folder) as entries:
        return sorted(name for entry in entries if (name := parse_name(entry.name)) and not entry.is_dir(follow_symlinks=False))


def _size_of(path: str) -> int:
    """Returns a file's size; 0 if it does not exist."""
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0


def _read_regular(path: str, most: int) -> bytes | None:
    """Reads a file; None if it cannot be read, empty if it is not a regular file or is larger than `most`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b"" if os.path.islink(path) else None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > most:
        os.close(descriptor)
        return b""
    try:
        with open(descriptor, "rb") as file:
            return file.read()
    except OSError:
        return None


def _make_folder(folder: str) -> None:
    """Creates a folder for its owner only: profiles reveal what a machine does."""
    parent = os.path.dirname(folder)
    if parent:
        os.makedirs(parent, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)


class Spool:
    """A spool in a folder.  Creates the folder if needed, and removes and counts half-written profiles.  All methods raise
    Failure or OSError."""

    def __init__(self, folder: str, limit_bytes: int):
        self.folder, self._limit_bytes = folder, limit_bytes
        self._unwritten = Counts()  # counts that could not be written to disk
        _make_folder(folder)
        # Both stay open, so nobody can put other folders, or links, in their place.
        self._opened = files.open_folder(folder)
        _make_folder(self.path("sending"))
        try:
            self._sending = files.open_folder(self.path("sending"), follows=False)
        except OSError:
            raise Failure(f"{folder}/sending: not a folder of ours") from None
        with _locked(self._opened):
            self._remove_unfinished()

    def path(self, name: str) -> str:
        """Returns the path of a file in the spool."""
        return os.path.join(self._opened, name)

    def sending(self, name: str = "") -> str:
        """Returns the path of a file in the folder of what is being sent."""
        return os.path.join(self._sending, name)

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Locks the spool for a change."""
        return _locked(self._opened)

    def _remove_unfinished(self) -> None:
        damaged = 0
        for name in os.listdir(self._opened):
            whole = files.replaced_by(name)
            if whole == "counts" or (whole and parse_name(whole)):
                os.unlink(self.path(name))
                damaged += whole != "counts"
        self.count("damaged", damaged)

    def put(self, from_ms: int, until_ms: int, content: bytes) -> int:
        """Adds a profile, and drops the oldest ones until all fit the limit.  Returns the number of dropped profiles.
        A profile that alone exceeds the limit counts as dropped, and raises Failure."""
        with self.locked():
            most = min(self._limit_bytes, MOST_PROFILE_BYTES)
            if len(content) > most:
                self.count("dropped")
                raise Failure(f"{self.folder}: a profile of {len(content)} bytes is dropped: there is room for {most}")
            dropped = self._make_room(len(content))
            with files.Draft(self.path(self._free_name(from_ms, until_ms)), is_new=True) as draft:
                draft.file.write(content)
                draft.keep(on_disk=True)
            return dropped

    def _free_name(self, from_ms: int, until_ms: int) -> str:
        name = SpoolName(from_ms, until_ms, 0)
        while os.path.lexists(self.path(name.text)) or os.path.lexists(self.sending(name.text)):
            name = name._replace(number=name.number + 1)
        return name.text

    def _make_room(self, wanted: int) -> int:
        waiting = _profiles_in(self._opened)
        total = wanted + sum(_size_of(self.path(name.text)) for name in waiting)
        total += sum(_size_of(self.sending(name.text)) for name in _profiles_in(self.sending()))
        dropped = 0
        for name in waiting:
            if total <= self._limit_bytes:
                break
            total -= _size_of(self.path(name.text))
            self.count("dropped")
            os.unlink(self.path(name.text))
            dropped += 1
        return dropped

    def counts(self) -> Counts:
        """Returns the counts since the spool was made."""
        return parse_counts(text_of(_read_regular(self.path("counts"), _MOST_COUNTS_BYTES) or b"")).plus(self._unwritten)

    def waiting(self) -> int:
        """Returns the number of profiles, including the one that is being sent."""
        return len(_profiles_in(self._opened)) + len(_profiles_in(self.sending()))

    def count(self, what: str, more: int = 1) -> None:
        """Adds to a count; the caller holds the lock.  A full disk must not prevent the removal of profiles: a count that
        cannot be written is kept in memory, for the next write and the final report."""
        if not more:
            return
        self._unwritten[what] += more
        with contextlib.suppress(OSError, Failure), files.Draft(self.path("counts"), is_new=True) as draft:
            draft.file.write(self.counts().text().encode())
            draft.keep()
            self._unwritten = Counts()


class Outbox:
    """The sending side of a spool, open in one process at a time.  A profile that a killed process left in sending/ waits
    again."""

    def __init__(self, spool: Spool, lock: int):
        self._spool, self._lock = spool, lock
        self._known: list[SpoolName] = []  # some may have been dropped since
        self.unreadable: set[str] = set()  #: names of unreadable profiles, which stay in place
        with spool.locked():
            for name in _profiles_in(spool.sending()):
                self._move(name, is_claimed=False)

    @classmethod
    def open(cls, spool: Spool) -> "Outbox | None":
        """Opens the outbox; None if it is open in another process."""
        lock = os.open(spool.sending(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return cls(spool, lock)

    def close(self) -> None:
        """Closes the outbox, so that another process can open it."""
        os.close(self._lock)

    def _sending(self, name: SpoolName) -> str:
        return self._spool.sending(name.text)

    def _move(self, name: SpoolName, is_claimed: bool) -> bool:
        """Moves a profile to sending/, or back; False if it no longer exists."""
        places = [self._spool.path(name.text), self._sending(name)]
        try:
            os.rename(*places if is_claimed else reversed(places))
        except FileNotFoundError:
            return False
        return True

    def _claim_oldest(self) -> SpoolName | None:
        while True:
            if not self._known:
                self._known = [name for name in _profiles_in(self._spool.path("")) if name.text not in self.unreadable]
            if not self._known:
                return None
            name = self._known.pop(0)
            with self._spool.locked():
                if self._move(name, is_claimed=True):
                    return name  # otherwise it has been dropped

    def take(self) -> tuple[SpoolName, Profile] | None:
        """Returns the oldest profile.  No process drops it until remove() or release().  Removes and counts damaged
        profiles."""
        while name := self._claim_oldest():
            content = _read_regular(self._sending(name), MOST_PROFILE_BYTES)
            profile = parse_content(content) if content is not None else None
            if profile:
                return name, profile
            if content is None:
                self.unreadable.add(name.text)
                self.release(name, is_next=False)
            else:
                self.remove(name, "damaged")
        return None

    def remove(self, name: SpoolName, count: str) -> None:
        """Removes and counts a profile that was sent or refused, or is damaged."""
        with self._spool.locked():
            os.unlink(self._sending(name))  # before counting: an accepted profile must not be sent again
            self._spool.count(count)

    def release(self, name: SpoolName, is_next: bool = True) -> None:
        """Moves a profile back, so that it waits again in its old position."""
        with self._spool.locked():
            self._move(name, is_claimed=False)
        if is_next:
            self._known.insert(0, name)
