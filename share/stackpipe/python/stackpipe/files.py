"""The only way in which the commands create files: a new file with an unpredictable name, beside the file it replaces.

As in base/io/new_file.h, the file gets a random name in the folder of the result.  It is created with O_EXCL and O_NOFOLLOW,
and renamed once it is complete.  So a symbolic link is replaced, not followed, and a result is complete or absent.  If the
name itself is that of a pipe, a socket or a character device, or is one of the fixed names of our own descriptors, this is
written directly.

Folders are opened once, and their descriptors are used from then on.  So whoever may rename a folder on the way to a file
cannot put another one, or a link, in its place.  Only the owner can access the folders of temporary files.
"""
import contextlib
import errno
import os
import re
import shutil
import stat
from typing import BinaryIO

from stackpipe.messages import Failure, bytes_of, printable_lines, text_of

_OPEN_DESCRIPTOR = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/([0-9]{1,9}))|/proc/self/fd/([0-9]{1,9})")
_MOST_TRIES = 100
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MOST_NAME_BYTES = 255


def _random_letters(count: int) -> str:
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in os.urandom(count))


def create(path: str, mode: int = 0o666, folder: int | None = None) -> BinaryIO:
    """Creates a file that did not exist; raises OSError.  A relative path is in the folder of this descriptor."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(path, flags, mode, dir_fd=folder), "w+b")


def open_regular(path: str, follows: bool = True) -> BinaryIO:
    """Opens a file to read it; raises OSError, also if it is not a regular file, such as a pipe, which could block us.
    Without `follows`, the name itself must be that of a file, not of a link."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follows else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", path)


class Place:
    """The place of a file: its folder, which is open, and its name there.  Raises Failure."""

    def __init__(self, path: str):
        folder, self.name = os.path.split(path)
        try:
            if not path:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            self.folder = os.open(folder or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None
        self.path = path

    def close(self) -> None:
        """Closes the folder."""
        os.close(self.folder)

    def draft(self) -> tuple[str, BinaryIO]:
        """Creates a file beside the name."""
        stem = os.fsdecode(os.fsencode(self.name)[:_MOST_NAME_BYTES - 7])
        for _ in range(_MOST_TRIES):
            name = f"{stem}.{_random_letters(6)}"
            try:
                return name, create(name, folder=self.folder)
            except FileExistsError:
                continue
            except OSError as error:
                raise Failure(f"{self.path}: {error.strerror}") from None
        raise Failure(f"{self.path}: no free name for a new file")

    def remove(self, name: str) -> None:
        """Removes a file in the folder, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.folder)

    def open_special(self) -> int:
        """Opens the pipe, socket or character device of that name with O_PATH; returns -1 if a new file is to be created.  Raises Failure for a folder, a block device, and another user's pipe, which could block us, or read our data."""
        if self.name in ("", ".", ".."):
            raise Failure(f"{self.path}: {os.strerror(errno.EISDIR)}")
        try:
            found = os.open(self.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # the shorter name of a draft would be possible
                raise Failure(f"{self.path}: {error.strerror}") from None
            return -1  # it does not exist, or creating a file tells the problem
        status = os.fstat(found)
        mode = status.st_mode
        problem = (os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "is a block device" if stat.S_ISBLK(mode) else
                   "is another user's pipe" if stat.S_ISFIFO(mode) and status.st_uid not in (0, os.geteuid()) else "")
        if not problem and not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            return found
        os.close(found)
        if problem:
            raise Failure(f"{self.path}: {problem}")
        return -1


def replaced_by(name: str) -> str:
    """Returns the name of the file that a draft of this name would replace; empty if it is not a draft's name."""
    match = re.fullmatch(r"(.+)\.[0-9A-Za-z]{6}", name, re.DOTALL)
    return match[1] if match else ""


def _is_safe(path: str) -> bool:
    """Can only we and root rename this folder, and all folders above it?  `path` must have no links."""
    while True:
        status = os.lstat(path)
        if status.st_uid not in (0, os.geteuid()) or (status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX):
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def open_folder(path: str, follows: bool = True) -> str:
    """Returns a path that leads to this very folder until close_folder(), for us and our child processes.  If others may rename
    it, or a folder above it, or a link is on the way, the path goes through an open descriptor.  Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follows else os.O_NOFOLLOW))
    real = os.path.realpath(path)
    if real == os.path.abspath(path) and _is_safe(real):
        os.close(descriptor)
        return path
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _descriptor_of(folder: str) -> int:
    """Returns the descriptor of a path of open_folder(); -1 if it has none."""
    match = re.fullmatch(f"/proc/{os.getpid()}/fd/([0-9]+)", folder)
    return int(match[1]) if match else -1


def close_folder(folder: str) -> None:
    """Ends the use of a folder of open_folder() or temporary_folder()."""
    if (descriptor := _descriptor_of(folder)) >= 0:
        os.close(descriptor)


def temporary_folder(parent: str = "", prefix: str = "stackpipe-") -> str:
    """Creates a folder for its owner only, in `parent` or, by default, in TMPDIR.  Returns its path as open_folder() does."""
    parent = parent or os.environ.get("TMPDIR") or "/tmp"
    try:
        for _ in range(_MOST_TRIES):
            name = os.path.join(parent, prefix + _random_letters(8))
            try:
                os.mkdir(name, 0o700)
            except FileExistsError:
                continue
            folder = open_folder(name, follows=False)
            if os.stat(folder).st_uid != os.geteuid():
                raise Failure(f"{parent}: another user has replaced our folder")
            return folder
    except OSError as error:
        raise Failure(f"{parent}: {error.strerror}") from None
    raise Failure(f"{parent}: no free name for a new folder")


def name_of_folder(folder: str) -> str:
    """Returns the name that a folder of temporary_folder() has now, without those of the folders above it."""
    return os.path.basename(os.readlink(folder) if _descriptor_of(folder) >= 0 else folder)


def scratch() -> BinaryIO:
    """Returns a file without a name, which ends with its descriptor."""
    folder = temporary_folder()
    try:
        return create(os.path.join(folder, "scratch"))
    finally:
        remove_folder(folder)


def remove_folder(folder: str) -> None:
    """Removes a folder of temporary_folder() and its content, as far as possible."""
    descriptor = _descriptor_of(folder)
    if descriptor < 0:
        shutil.rmtree(folder, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        for name in os.listdir(descriptor):
            _remove(descriptor, name)
        path = os.readlink(folder)
        if os.path.samestat(os.lstat(path), os.fstat(descriptor)):
            os.rmdir(path)  # it removes only an empty folder, also if the name is another one's by now
    os.close(descriptor)


def _remove(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        shutil.rmtree(name, ignore_errors=True, dir_fd=folder)


def is_written_in_place(path: str) -> bool:
    """Is the path that of a device, a pipe or an open descriptor, which is written directly?  Raises Failure as Draft does."""
    if _OPEN_DESCRIPTOR.fullmatch(path):
        return True
    place = Place(path)
    try:
        found = place.open_special()
    finally:
        place.close()
    if found >= 0:
        os.close(found)
    return found >= 0


def check_writable(path: str) -> None:
    """Raises Failure if `path` cannot be written, as far as this can be checked in advance."""
    with Draft(path):
        pass


class Draft:
    """A draft of the file `path`.  keep() turns it into that file; without keep(), nothing remains.

    with files.Draft(path) as draft:
        draft.file.write(...)
        draft.keep()
    """

    def __init__(self, path: str, is_new: bool = False):
        """`is_new`: always replaces `path`; without it, a device or pipe is written directly."""
        self.path = path
        self._place: Place | None = None  #: None: the draft has no name, because a descriptor gets its content
        self._target = -1
        if match := None if is_new else _OPEN_DESCRIPTOR.fullmatch(path):
            # A file that is opened again would start at its first byte.
            try:
                self._target = os.dup(1 if match[1] else 2 if match[2] else int(match[3] or match[4]))
            except OSError as error:
                raise Failure(f"{path}: {error.strerror}") from None
            self._is_open = True
        else:
            self._place, self._is_open = Place(path), False
        try:
            if self._place and not is_new:
                self._target = self._place.open_special()
            self._name, self.file = self._place.draft() if self._place and self._target < 0 else ("", scratch())
        except Failure:
            self._close()
            raise

    def __enter__(self) -> "Draft":
        return self

    def keep(self, on_disk: bool = False) -> None:
        """Puts the file in place; with on_disk, it survives a crash of the machine.  Raises OSError."""
        self.file.flush()
        if on_disk:
            os.fsync(self.file.fileno())
        if self._name and self._place:
            os.rename(self._name, self._place.name, src_dir_fd=self._place.folder, dst_dir_fd=self._place.folder)
            self._name = ""
            if on_disk:
                _sync_folder(self._place.folder)
            return
        self.file.seek(0)
        with open(self._open_target(), "wb") as target:
            if target.isatty():
                target.write(bytes_of(printable_lines(text_of(self.file.read()))))
            else:
                shutil.copyfileobj(self.file, target)

    def _open_target(self) -> int:
        """Returns a descriptor to write the very file that was found at first, whatever has its name by now."""
        if self._is_open:
            return os.dup(self._target)
        return os.open(f"/proc/self/fd/{self._target}", os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)

    def _close(self) -> None:
        if self._place:
            self._place.close()
        if self._target >= 0:
            os.close(self._target)

    def __exit__(self, *exception: object) -> None:
        try:
            self.file.close()
        except OSError:  # the disk is full; keep() did not keep the lost data
            pass
        if self._name and self._place:
            self._place.remove(self._name)
        self._close()


def _sync_folder(folder: int) -> None:
    """Writes a folder to disk, so that a new name in it survives a crash."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
        with Draft(os.path.join(folder, "file"), is_new=True) as draft:
            draft.file.write(bytes(4096))
            draft.file.flush()
    except Failure as failure:
        return f": {failure}"
    except OSError as error:
        return f": {folder}: {error.strerror}"
    return ""
