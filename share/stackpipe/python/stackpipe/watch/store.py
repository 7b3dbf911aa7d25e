"""The folders of watches, and their files.

BASE/NAME/          only its owner can enter it
  segments/         what pe-record --keep writes, and pe-symbolize reads
  dumps/            flame graphs, and the user's own files, which nobody removes
  state.json        what --list prints
  files             the dumps that the watch may remove: own.py

BASE is $STATE_DIRECTORY in a service of systemd, /var/lib/stackpipe/watch for root, and otherwise in the user's
$XDG_STATE_HOME.  Whoever may write there is the user, root, or a copy of a backup: each file is checked when it is read.
"""
import contextlib
import errno
import fcntl
import json
import os
import re
import stat
from typing import Mapping, NamedTuple

from stackpipe import files
from stackpipe.messages import Failure, UsageError, text_of

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,63}")
_SEGMENT = re.compile(r"[0-9]{10}\.pe")
_MOST_STATE_BYTES = 65536
SEGMENTS, DUMPS, STATE = "segments", "dumps", "state.json"


def base_folder(variables: Mapping[str, str]) -> str:
    """Returns the folder of the folders of watches.  In a service with a dynamic user it is a link of systemd's."""
    if service := variables.get("STATE_DIRECTORY", ""):
        return os.path.realpath(service.partition(":")[0])
    if os.geteuid() == 0:
        return os.path.realpath("/var/lib/stackpipe/watch")
    home = variables.get("XDG_STATE_HOME", "")
    # The specification of these variables wants relative paths to be ignored.
    return os.path.realpath(os.path.join(home if home.startswith("/") else os.path.expanduser("~/.local/state"), "stackpipe/watch"))


def name_for(target: str) -> str:
    """Returns the default name of a watch: that of its target, without characters that a name of ours may not have."""
    name = re.sub(r"[^A-Za-z0-9._@-]", "_", os.path.basename(target))[:64]
    return name if _NAME.fullmatch(name) else f"_{name}"[:64]


def check_name(name: str) -> str:
    """Returns the name; raises UsageError if it could not be that of a folder."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"--name: not a name of at most 64 letters, digits and '._@-': '{name}'")
    return name


class Kept(NamedTuple):
    """The segments that a folder has."""

    size: int = 0  #: bytes
    oldest: float = 0  #: Unix time at which the oldest segment was written; 0: there is none
    last: str = ""  #: the name of the latest one that has some content


class Store:
    """The folder of a watch, which is open.  Its paths lead to this very folder, whoever renames or replaces it."""

    def __init__(self, path: str, is_ours: bool = True):
        """Opens the folder.  `is_ours`: it must belong to the user, as for all but root.  Raises Failure."""
        self.path = path
        self.descriptor = -1
        try:
            self.folder = files.open_folder(path, follows=False)
            self.descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None
        problem = why_not_private(os.fstat(self.descriptor), is_ours)
        if problem:
            self.close()
            raise Failure(f"{path}: {problem}")

    def close(self) -> None:
        """Ends the use of the folder, and its lock."""
        files.close_folder(self.folder)
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def lock(self) -> None:
        """Locks the folder as long as it is open; raises Failure if another watch uses it."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno != errno.EWOULDBLOCK:
                raise Failure(f"{self.path}: {error.strerror}") from None
            raise Failure(f"{self.path}: another watch uses this folder; give one of them another --name") from None

    def is_there(self) -> bool:
        """Does the name still lead to this folder?"""
        try:
            return os.path.samestat(os.lstat(self.path), os.fstat(self.descriptor))
        except OSError:
            return False

    def path_of(self, name: str) -> str:
        """Returns the path of a file or folder in it."""
        return os.path.join(self.folder, name)

    def make(self, name: str) -> str:
        """Creates a folder in it, if there is none, and returns its path; raises Failure."""
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self.descriptor)
            problem = why_not_private(os.stat(name, dir_fd=self.descriptor, follow_symlinks=False), is_ours=True)
        except OSError as error:
            raise Failure(f"{os.path.join(self.path, name)}: {error.strerror}") from None
        if problem:
            raise Failure(f"{os.path.join(self.path, name)}: {problem}")
        return self.path_of(name)

    def kept(self) -> Kept:
        """Returns the size and the age of the segments."""
        size, oldest, last = 0, 0.0, ""
        with contextlib.suppress(OSError):
            with os.scandir(self.path_of(SEGMENTS)) as found:
                for entry in found:
                    with contextlib.suppress(OSError):
                        if _SEGMENT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                            status = entry.stat(follow_symlinks=False)
                            size += status.st_size
                            last = max(last, entry.name if status.st_size else "")
                            oldest = min(oldest or status.st_mtime, status.st_mtime)
        return Kept(size, oldest, last)

    def write(self, name: str, content: Mapping[str, object]) -> None:
        """Replaces a file of JSON; raises Failure."""
        files.write_file(self.path_of(name), json.dumps(content) + "\n")

    def read(self, name: str) -> dict:
        """Returns the members of a file of JSON; without those, as of a file that someone damaged, an empty dictionary."""
        try:
            with files.open_regular(self.path_of(name), follows=False) as file:
                members = json.loads(text_of(file.read(_MOST_STATE_BYTES)))
        except (OSError, RecursionError, ValueError):
            return {}
        return members if isinstance(members, dict) else {}


def why_not_private(status: os.stat_result, is_ours: bool) -> str:
    """Returns why a folder is not one that only its owner may use; empty if it is."""
    if not stat.S_ISDIR(status.st_mode):
        return "not a folder"
    if is_ours and status.st_uid != os.geteuid():
        return "belongs to another user"
    return "other users may enter it (chmod 700)" if status.st_mode & 0o077 else ""


def create(base: str, name: str) -> Store:
    """Opens the folder of a watch, and creates it if it does not exist; raises Failure."""
    path = os.path.join(base, name)
    try:
        os.makedirs(base, 0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    return Store(path)


def open_store(base: str, name: str) -> Store:
    """Opens the folder of a watch to read it.  Root may read those of all users.  Raises Failure."""
    path = os.path.join(base, name)
    if not os.path.isdir(path):
        others = ", ".join(names(base))
        raise Failure(f"no watch '{name}' in {base}" + (f"; there are {others}" if others else ""))
    return Store(path, is_ours=os.geteuid() != 0)


def names(base: str) -> list[str]:
    """Returns the names of the watches in a folder."""
    try:
        with os.scandir(base) as found:
            return sorted(entry.name for entry in found if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
