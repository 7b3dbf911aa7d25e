"""Files that a program has written, and may remove.

A list in a folder names them: their name, inode, size and time.  A file that a person has written or changed under such a name has
another identity, and stays.
"""
import os
import stat
from typing import Iterator, NamedTuple

from stackpipe import files
from stackpipe.messages import Failure, bytes_of, text_of

_MOST_BYTES = 1 << 20


class _Identity(NamedTuple):
    inode: int
    size: int
    time_ns: int


class OwnFiles:
    """The list of files in the folder `folder`."""

    def __init__(self, folder: str, path: str):
        """Reads the list in the file `path`."""
        self._folder, self._path = folder, path
        self._known: dict[str, _Identity] = dict(_read(path))  #: oldest first

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def add(self, name: str) -> None:
        """Adds a file that was written now, as the latest.  Raises Failure if the list cannot be written: the file then stays forever."""
        found = self._identity(name)
        if found:
            self._known.pop(name, None)
            self._known[name] = found
            self._write()

    def names(self) -> list[str]:
        """Returns the files of the list that exist and are unchanged, in the order of the list."""
        return [name for name, identity in self._known.items() if self._identity(name) == identity]

    def remove(self, name: str) -> None:
        """Removes a file, if it is of the list and unchanged.  Raises Failure."""
        if self._known.get(name) == self._identity(name):
            try:
                os.unlink(os.path.join(self._folder, name))
            except OSError as error:
                raise Failure(f"{name}: {error.strerror}") from None
        del self._known[name]
        self._write()

    def keep_latest(self, count: int) -> None:
        """Removes the oldest files of the list beyond this number.  Raises Failure."""
        for name in self.names()[:-count] if count else []:
            self.remove(name)

    def _identity(self, name: str) -> _Identity | None:
        try:
            status = os.lstat(os.path.join(self._folder, name))
        except OSError:
            return None
        return _Identity(status.st_ino, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None

    def _write(self) -> None:
        alive = set(self.names())
        self._known = {name: identity for name, identity in self._known.items() if name in alive}
        files.write_file(self._path, "".join(f"{one.inode} {one.size} {one.time_ns} {name}\n" for name, one in self._known.items()))


def _read(path: str) -> Iterator[tuple[str, _Identity]]:
    """Yields the files of a list.  Skips lines that are damaged, and names that lead out of the folder."""
    try:
        with files.open_regular(path, follows=False) as file:
            lines = text_of(file.read(_MOST_BYTES)).split("\n")
    except OSError:
        return
    for line in lines:
        *numbers, name = line.split(" ", 3)
        if len(numbers) == 3 and name and "/" not in name and name not in (".", "..") and bytes_of(name).isascii() \
                and all(number.isdecimal() and len(number) < 20 for number in numbers):
            yield name, _Identity(*map(int, numbers))
