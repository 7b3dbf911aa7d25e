"""Messages of a command that runs for days: each has the time."""
import re
import time

from stackpipe import messages


def stamp(seconds: float | None = None) -> str:
    """Returns a Unix time, by default now, as people read it, with the offset to UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(seconds))


def say(text: str) -> None:
    """Prints a line with the time on standard error."""
    messages.say(f"{stamp()} {text}")


class Once:
    """Prints a repeated message only once.  Messages that differ only in numbers count as the same."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        """Prints a message, unless it is a repetition."""
        key = re.sub("[0-9]", "", text)
        if key not in self._said:
            self._said.add(key)
            say(text)

    def forward(self, said: str) -> None:
        """Forwards the messages of a tool, without repetitions."""
        for line in said.splitlines():
            self.say(line)
