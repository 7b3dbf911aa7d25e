"""stackpipe watch: keeps the last minutes of a target in a folder, and draws them when asked, or when something went wrong."""
import contextlib
import os
import re
import signal

from stackpipe import outputs, pipeline, targets
from stackpipe.command import read_options
from stackpipe.messages import Failure, UsageError
from stackpipe.options import HELP, VERSION, CommandLine, Option, read_bytes, read_seconds, text_of_seconds
from stackpipe.watch import store, triggers
from stackpipe.watch.watched import read_watched

NAME = "stackpipe-watch"
USAGE = """Usage: stackpipe watch [OPTION]... {-p PID|NAME | -a}
       stackpipe watch --dump [--last TIME | --time FROM,TO] [-o FILE] [WATCH]
       stackpipe watch --list
Record without end, and keep the last minutes.  Draw them with --dump, by SIGUSR1, or at a trigger (--on...).
"""
_WATCHING = (
    Option("pid", "p", "PID|NAME", "record this process, or all of this name, also when they start again"),
    targets.ALL,
    Option("event", "e", "EVENT", "the event to sample, as for pe-record(1) (default cpu,waits where allowed)"),
    Option("freq", "F", "HZ", "samples per second on each CPU (default 99)"),
    Option("keep", "", "TIME", "keep the last TIME (default 10m)"),
    Option("size", "", "SIZE", "keep at most SIZE bytes (default 256M)"),
    Option("name", "", "WATCH", "the name of the watch (default: that of the target)"),
    Option("metrics", "", "FILE", "write counters for node_exporter's textfile collector every 15 s"),
    Option("on-busy", "", "N%", "draw if the target uses more than N percent of one CPU for a second"),
    Option("on-stall", "", "[THREAD=]TIME", "draw if no thread of a process ran for TIME although one was ready, or if THREAD did not run", repeats=True),
    Option("on", "", "COMMAND", "draw if COMMAND, which sh runs once a second, fails", repeats=True),
    Option("on-slow", "", "FUNC", "draw if a call of FUNC takes longer than --longer", repeats=True),
    Option("longer", "", "TIME", "with --on-slow: the limit, such as 200ms"),
    Option("before", "", "TIME", "the time before the trigger in its graph (default 25s)"),
    Option("after", "", "TIME", "the time after it (default 5s)"),
    Option("rest", "", "TIME", "draw for a trigger at most once in TIME (default 1m)"),
    Option("files", "", "N", "remove the oldest graphs of triggers beyond N (default 20)"),
)
_DUMPING = (
    Option("dump", "", "", "draw what a watch has kept, while it goes on"),
    Option("last", "", "TIME", "draw the last TIME, with --dump and at SIGUSR1 (default 30s)"),
    Option("time", "", "FROM,TO", "draw this time, such as 14:05,14:10"),
    *outputs.options(tuple(outputs.FORMS), "WATCH-TIME-dump.svg"),
)
OPTIONS = (*_WATCHING, *_DUMPING, Option("list", "", "", "list the watches"), HELP, VERSION)
_HZ = re.compile(r"(?=.*[1-9])[0-9]{1,9}(\.[0-9]{1,9})?")
_ALSO_WATCHING = ("last", "format")  #: options of dumps that a watch has, too
_SIGNALS = (*pipeline.STOP_SIGNALS, signal.SIGUSR1)


def main(arguments: list[str], tools: pipeline.Tools) -> int:
    """Returns 0 when the watch was ended, or the dump was written."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools)
    if line.command is not None:
        raise UsageError("watches no command: start it, and give -p NAME")
    base = store.base_folder(tools.users)
    if line.has("list"):
        refuse(line, "list", [option.name for option in (*_WATCHING, *_DUMPING)])
        from stackpipe.watch import state
        return state.print_list(base)
    if line.has("dump"):
        refuse(line, "dump", [option.name for option in _WATCHING if option.name != "name"])
        from stackpipe.watch import draw
        return draw.dump(line, name_to_dump(line, base), base, tools)
    for option in (option.name for option in _DUMPING if option.name not in _ALSO_WATCHING):
        if line.has(option):
            raise UsageError(f"--{option}: only with --dump")
    if line.operands:
        raise UsageError(f"unexpected '{line.operands[0]}': give -p NAME, or --dump WATCH")
    return watch(line, base, tools)


def refuse(line: CommandLine, option: str, others: list[str]) -> None:
    """Raises UsageError if the command line has an option that does not belong to this one, or an operand without meaning."""
    wrong = next((other for other in others if line.has(other)), "")
    if wrong:
        raise UsageError(f"--{wrong}: cannot be combined with --{option}")
    if line.operands[option == "dump":]:
        raise UsageError(f"--{option}: unexpected '{line.operands[-1]}'")


def name_to_dump(line: CommandLine, base: str) -> str:
    """Returns the name of the watch to draw.  Only one is needed if there are several.  Raises UsageError or Failure."""
    given = [*line.operands, *line.values.get("name", [])]
    if len(given) > 1:
        raise UsageError("--dump: one watch at a time")
    if given:
        return store.check_name(given[0])
    found = store.names(base)
    if not found:
        raise Failure(f"no watch in {base}")
    if len(found) > 1:
        raise UsageError(f"--dump: which watch? there are {', '.join(found)}")
    return found[0]


def watch(line: CommandLine, base: str, tools: pipeline.Tools) -> int:
    """Watches until a signal ends it, or its process has ended."""
    if line.has("freq") and not (line.last("freq") == "max" or _HZ.fullmatch(line.last("freq"))):
        raise UsageError(f"--freq: neither a number of samples per second nor max: '{line.last('freq')}'")
    watched = read_watched(line, triggers.needs_all_processes(line))
    name = store.check_name(line.last("name")) if line.has("name") else store.name_for(watched.text)
    keep = read_seconds("keep", line.last("keep", "10m"), least=10, most=7 * 86400)
    size = read_bytes("size", line.last("size", "256M"))
    from stackpipe.watch import watching
    from stackpipe.watch.keeper import WAITS, Plan

    plan = Plan(line.last("event", WAITS), not line.has("event"),
                ["-F", line.last("freq", "99"), "--keep", text_of_seconds(keep), "--keep-size", str(size)], triggers.slow_options(line))
    settings = watching.read_settings(line, name)
    tools.find("pe-record")
    watched.look()
    if watched.is_over:
        raise Failure(f"no process {watched.text}")
    tools.hears_keys = False  # Ctrl-C ends the watch, which ends the recorder
    with signals() as (waking, arrived):
        one = watching.Watching(settings, watched, plan, triggers.read_triggers(line, watched, tools), base, tools)
        return one.run(waking, arrived)


@contextlib.contextmanager
def signals():
    """In the block, signals that end or ask for a dump only arrive.  Yields a descriptor that is readable when one has, and the list of
    those that have arrived, which grows."""
    waking, waker = os.pipe()
    for end in (waking, waker):
        os.set_blocking(end, False)
    arrived: list[int] = []
    pipeline.on_stop(lambda number, frame: arrived.append(number))
    signal.signal(signal.SIGUSR1, lambda number, frame: arrived.append(number))
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    try:
        yield waking, arrived
    finally:
        signal.set_wakeup_fd(-1)
        os.close(waking)
        os.close(waker)
