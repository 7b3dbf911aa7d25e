"""The only way in which the commands create files: a new one, under a name that nobody can foresee, beside the one that
it replaces.

As in base/io/new_file.h: the file has a random name in the folder of the result, is made by O_EXCL and O_NOFOLLOW, and is
renamed when it is whole.  So a symbolic link is replaced, not followed, and a result is whole or not there.  Devices,
pipes and open descriptors are written as they are.  Folders for what a command needs in between are for their owner.
"""
import os
import re
import shutil
import stat
from typing import BinaryIO

from stackpipe.messages import Failure, bytes_of

_OPEN_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr|fd/.*)|/proc/self/fd/.*", re.DOTALL)
_MOST_TRIES = 100


_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MOST_NAME_BYTES = 255


def _random_letters(count: int) -> str:
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in os.urandom(count))


def create(path: str, mode: int = 0o666) -> BinaryIO:
    """A new file that nothing was in the way of; raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(path, flags, mode), "w+b")


def _create_beside(path: str) -> tuple[str, BinaryIO]:
    folder, stem = os.path.split(path)
    stem = os.fsdecode(os.fsencode(stem)[:_MOST_NAME_BYTES - 7])
    for _ in range(_MOST_TRIES):
        name = os.path.join(folder, f"{stem}.{_random_letters(6)}")
        try:
            return name, create(name)
        except FileExistsError:
            continue
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None
    raise Failure(f"{path}: no free name for a new file")


def replaced_by(name: str) -> str:
    """The name of the file that a draft of this name was to become; empty if it is not the name of one."""
    match = re.fullmatch(r"(.+)\.[0-9A-Za-z]{6}", name, re.DOTALL)
    return match[1] if match else ""


def temporary_folder(parent: str = "", prefix: str = "stackpipe-") -> str:
    """A new folder for its owner alone; in TMPDIR unless a parent is named."""
    parent = parent or os.environ.get("TMPDIR") or "/tmp"
    for _ in range(_MOST_TRIES):
        name = os.path.join(parent, prefix + _random_letters(8))
        try:
            os.mkdir(name, 0o700)
            return name
        except FileExistsError:
            continue
        except OSError as error:
            raise Failure(f"{parent}: {error.strerror}") from None
    raise Failure(f"{parent}: no free name for a new folder")


def remove_folder(path: str) -> None:
    """With all that is in it, as far as that can be removed."""
    shutil.rmtree(path, ignore_errors=True)


def _is_written_in_place(path: str) -> bool:
    return _OPEN_DESCRIPTOR.fullmatch(path) is not None or (os.path.exists(path) and not os.path.isfile(path))


def _check_usable(path: str) -> None:
    """Anybody may have put a pipe there, to hold us up or to read what is not theirs."""
    try:
        status = os.stat(path)
    except OSError:
        return
    if stat.S_ISDIR(status.st_mode):
        raise Failure(f"{path}: Is a directory")
    if stat.S_ISFIFO(status.st_mode) and status.st_uid not in (0, os.geteuid()):
        raise Failure(f"{path}: is another user's pipe")


def check_writable(path: str) -> None:
    """Raises Failure if `path` cannot be written, as far as is known before there is anything to write."""
    _check_usable(path)
    if not _is_written_in_place(path):
        name, file = _create_beside(path)
        file.close()
        os.unlink(name)


def _sync_folder(folder: str) -> None:
    """A name is safe when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Draft:
    """What becomes the file `path` by keep(), and else leaves nothing.

    with files.Draft(path) as draft:
        draft.file.write(...)
        draft.keep()
    """

    def __init__(self, path: str, is_new: bool = False):
        """`is_new`: whatever is there is replaced, not written as it is."""
        if not is_new:
            _check_usable(path)
        self.path = path
        self._in_place = not is_new and _is_written_in_place(path)
        self._folder = temporary_folder() if self._in_place else ""
        try:
            self._name, self.file = _create_beside(os.path.join(self._folder, "draft") if self._in_place else path)
        except Failure:
            if self._folder:
                os.rmdir(self._folder)
            raise

    def __enter__(self) -> "Draft":
        return self

    def keep(self, on_disk: bool = False) -> None:
        """From now on it is there, on_disk: also if the machine fails; raises OSError."""
        self.file.flush()
        if on_disk:
            os.fsync(self.file.fileno())
        if not self._in_place:
            os.rename(self._name, self.path)
            if on_disk:
                _sync_folder(os.path.dirname(self.path) or ".")
            return
        self.file.seek(0)
        with open(os.open(self.path, os.O_WRONLY | os.O_CLOEXEC), "wb") as target:
            shutil.copyfileobj(self.file, target)

    def __exit__(self, *exception: object) -> None:
        try:
            self.file.close()
        except OSError:  # of a full disk: what is lost was not kept
            pass
        if os.path.lexists(self._name):
            os.unlink(self._name)
        if self._folder:
            os.rmdir(self._folder)


def write_file(path: str, content: str | bytes) -> None:
    """The file is the content, whole, or is what it was; raises Failure."""
    with Draft(path) as draft:
        try:
            draft.file.write(content if isinstance(content, bytes) else bytes_of(content))
            draft.keep()
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None


def write_new(path: str, content: str | bytes) -> None:
    """Into a folder of our own, where nothing of that name is."""
    with create(path) as file:
        file.write(content if isinstance(content, bytes) else bytes_of(content))


def why_not_written(folder: str) -> str:
    """Why nothing more can be written into a folder, such as ": No space left on device"; empty if something can."""
    try:
        name, file = _create_beside(os.path.join(folder, "file"))
    except Failure as failure:
        return f": {failure}"
    try:
        with file:
            file.write(bytes(4096))
    except OSError as error:
        return f": {folder}: {error.strerror}"
    finally:
        os.unlink(name)
    return ""
