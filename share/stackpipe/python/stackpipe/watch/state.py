"""What a watch reports about itself: its state file, --list, and the text file for node_exporter."""
import os
import time
from typing import NamedTuple

from stackpipe import files
from stackpipe.messages import Failure, bytes_of, count_of, print_out, printable
from stackpipe.watch import log, processes, store

_MOST_TEXT = 200


class State(NamedTuple):
    """The content of a state file."""

    pid: int = 0
    start_ticks: int = -1  #: with the PID, it names one process
    target: str = ""
    event: str = ""
    since: float = 0  #: Unix time
    is_recording: bool = False
    recorders: int = 0  #: that were started
    dumps: int = 0
    failed_dumps: int = 0
    lost: int = 0  #: samples
    without_s: float = 0  #: the time without a recorder

    @property
    def is_running(self) -> bool:
        """Does the watch run now?"""
        process = processes.process_of(self.pid) if self.pid else None
        return process is not None and process.is_alive and process.start_ticks == self.start_ticks


def read(opened: store.Store) -> State:
    """Returns the state of a watch, as far as its file has it: other users, or errors of the disk, may have written it."""
    found = {}
    members = opened.read(store.STATE)
    for name, otherwise in State()._asdict().items():
        value = members.get(name)
        kinds = {bool: bool, str: str, int: int, float: (int, float)}[type(otherwise if name not in ("since", "without_s") else 0.0)]
        if isinstance(value, kinds) and not (isinstance(value, bool) and kinds is not bool):
            if isinstance(value, str) or -1 <= value < 1e15:
                found[name] = value[:_MOST_TEXT] if isinstance(value, str) else value
    return State(**found)


def print_list(base: str) -> int:
    """Prints the watches of a folder."""
    form = "{:<20} {:>8} {:<12} {:<24} {:<24} {:>9} {:>8} {:>6} {:>6}\n"
    text = form.format("watch", "pid", "state", "target", "since", "kept", "oldest", "dumps", "lost")
    problems = []
    for name in store.names(base):
        try:
            opened = store.open_store(base, name)
        except Failure as failure:
            problems.append(str(failure))
            continue
        try:
            known, kept = read(opened), opened.kept()
        finally:
            opened.close()
        status = ("recording" if known.is_recording else "waiting") if known.is_running else "ended"
        oldest = f"{max(time.time() - kept.oldest, 0):.0f} s" if kept.oldest else "-"
        text += form.format(name, known.pid if known.is_running else "-", status, printable(known.target)[:24] or "-",
                            log.stamp(known.since) if known.since else "-", text_of_bytes(kept.size), oldest, known.dumps, known.lost)
    print_out(text)
    if problems:
        raise Failure(f"{problems[0]}" + (f"; and {count_of(len(problems) - 1, 'other folder')}" if len(problems) > 1 else ""))
    return 0


def text_of_bytes(size: float) -> str:
    """Formats a size in powers of 1024."""
    for unit in ("B", "K", "M"):
        if size < 1024:
            return f"{size:.0f}{unit}"
        size /= 1024
    return f"{size:.1f}G"


def metrics(name: str, known: State, kept: store.Kept) -> str:
    """Returns the text for node_exporter's textfile collector (prometheus.io/docs/instrumenting/exposition_formats)."""
    now = time.time()
    rows = [("heartbeat_timestamp_seconds", "gauge", "Unix time at which the watch wrote this file.", f"{now:.3f}"),
            ("recording", "gauge", "1 while a recorder runs.", int(known.is_recording)),
            ("kept_bytes", "gauge", "Size of the kept segments.", kept.size),
            ("kept_seconds", "gauge", "Age of the oldest kept segment.", f"{max(now - kept.oldest, 0) if kept.oldest else 0:.0f}"),
            ("recorders_total", "counter", "Recorders that were started.", known.recorders),
            ("unrecorded_seconds_total", "counter", "Time in which the target was there and no recorder was.", f"{known.without_s:.3f}"),
            ("lost_samples_total", "counter", "Samples that recorders which have ended lost.", known.lost),
            ("dumps_total", "counter", "Flame graphs that were written.", known.dumps),
            ("failed_dumps_total", "counter", "Flame graphs that could not be written.", known.failed_dumps)]
    return "".join(f"# HELP stackpipe_watch_{row} {text}\n# TYPE stackpipe_watch_{row} {kind}\nstackpipe_watch_{row}{{watch=\"{name}\"}} {value}\n"
                   for row, kind, text, value in rows)


def write_metrics(path: str, text: str) -> None:
    """Replaces the text file, which other users may read; raises Failure."""
    with files.Draft(path) as draft:
        try:
            draft.file.write(bytes_of(text))
            draft.file.flush()
            os.fchmod(draft.file.fileno(), 0o644)
            draft.keep()
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None
