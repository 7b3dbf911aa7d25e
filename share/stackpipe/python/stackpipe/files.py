"""The only way in which the commands create files: a new file with an unpredictable name, beside the file it replaces.

As in base/io/new_file.h, the file gets a random name in the folder of the result.  It is created with O_EXCL and O_NOFOLLOW,
and renamed once it is complete.  So a symbolic link is replaced, not followed, and a result is complete or absent.  Devices,
pipes and open descriptors are written directly.  Only the owner can access the folders of temporary files.
"""
import errno
import os
import re
import shutil
import stat
from typing import BinaryIO

from stackpipe.messages import Failure, bytes_of

_OPEN_DESCRIPTOR = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/([0-9]{1,9}))|/proc/self/fd/([0-9]{1,9})")
_MOST_TRIES = 100


_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MOST_NAME_BYTES = 255


def _random_letters(count: int) -> str:
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in os.urandom(count))


def create(path: str, mode: int = 0o666) -> BinaryIO:
    """Creates a file that did not exist; raises OSError."""
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
    """Returns the name of the file that a draft of this name would replace; empty if it is not a draft's name."""
    match = re.fullmatch(r"(.+)\.[0-9A-Za-z]{6}", name, re.DOTALL)
    return match[1] if match else ""


def temporary_folder(parent: str = "", prefix: str = "stackpipe-") -> str:
    """Creates a folder for its owner only, in `parent` or, by default, in TMPDIR."""
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


def scratch() -> BinaryIO:
    """Returns a file without a name, which ends with its descriptor."""
    folder = temporary_folder()
    try:
        return create(os.path.join(folder, "scratch"))
    finally:
        remove_folder(folder)


def remove_folder(path: str) -> None:
    """Removes a folder and its content, as far as possible."""
    shutil.rmtree(path, ignore_errors=True)


def is_written_in_place(path: str) -> bool:
    """Is the path a device, a pipe or an open descriptor, which is written directly?"""
    return _OPEN_DESCRIPTOR.fullmatch(path) is not None or (os.path.exists(path) and not os.path.isfile(path))


def _open_in_place(path: str) -> int:
    """Opens a device or a pipe.  Duplicates an open descriptor: a file that is opened again starts at its first byte."""
    match = _OPEN_DESCRIPTOR.fullmatch(path)
    if not match:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    return os.dup(1 if match[1] else 2 if match[2] else int(match[3] or match[4]))


def _check_usable(path: str) -> None:
    """Raises Failure for a folder, a name that is too long, or another user's pipe.  Such a pipe could block us, or read our
    data."""
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise Failure(f"{path}: {error.strerror}") from None
        return
    if stat.S_ISDIR(status.st_mode):
        raise Failure(f"{path}: Is a directory")
    if stat.S_ISFIFO(status.st_mode) and status.st_uid not in (0, os.geteuid()):
        raise Failure(f"{path}: is another user's pipe")


def check_writable(path: str) -> None:
    """Raises Failure if `path` cannot be written, as far as this can be checked in advance."""
    _check_usable(path)
    if not is_written_in_place(path):
        name, file = _create_beside(path)
        file.close()
        os.unlink(name)


def _sync_folder(folder: str) -> None:
    """Writes a folder to disk, so that a new name in it survives a crash."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Draft:
    """A draft of the file `path`.  keep() turns it into that file; without keep(), nothing remains.

    with files.Draft(path) as draft:
        draft.file.write(...)
        draft.keep()
    """

    def __init__(self, path: str, is_new: bool = False):
        """`is_new`: always replaces `path`; without it, a device or pipe is written directly."""
        if not is_new:
            _check_usable(path)
        self.path = path
        self._in_place = not is_new and is_written_in_place(path)
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
        """Puts the file in place; with on_disk, it survives a crash of the machine.  Raises OSError."""
        self.file.flush()
        if on_disk:
            os.fsync(self.file.fileno())
        if not self._in_place:
            os.rename(self._name, self.path)
            if on_disk:
                _sync_folder(os.path.dirname(self.path) or ".")
            return
        self.file.seek(0)
        with open(_open_in_place(self.path), "wb") as target:
            shutil.copyfileobj(self.file, target)

    def __exit__(self, *exception: object) -> None:
        try:
            self.file.close()
        except OSError:  # the disk is full; keep() did not keep the lost data
            pass
        if os.path.lexists(self._name):
            os.unlink(self._name)
        if self._folder:
            os.rmdir(self._folder)


def write_file(path: str, content: str | bytes) -> None:
    """Replaces a file with the content, completely or not at all; raises Failure."""
    with Draft(path) as draft:
        try:
            draft.file.write(content if isinstance(content, bytes) else bytes_of(content))
            draft.keep()
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None


def write_new(path: str, content: str | bytes) -> None:
    """Writes a new file in a folder of our own; raises OSError if the file exists."""
    with create(path) as file:
        file.write(content if isinstance(content, bytes) else bytes_of(content))


def why_not_written(folder: str) -> str:
    """Returns why a folder is not writable, such as ": No space left on device"; empty if it is writable."""
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
