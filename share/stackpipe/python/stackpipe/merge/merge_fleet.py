"""merge_fleet(1): adds up the folded text of many hosts, by a tree of `stackfold --merge-sorted`.

A merge opens at most --fan-in files.  So memory depends on the number of concurrent merges, not on the amount of text.
The last merge of the tree runs on this machine and writes standard output.  The others run here, by GNU parallel, by ssh
on several hosts, or on a Dask cluster.
"""
import contextlib
import os
import re
import resource
import signal
import sys
from typing import Any, ContextManager, NoReturn, Sequence

from stackpipe import pipeline
from stackpipe.command import read_options
from stackpipe.merge.here import Merger
from stackpipe.merge.tree import NAME, check_sums, report_of, tree_of
from stackpipe.messages import Failure, UsageError, say, text_of
from stackpipe.options import HELP, VERSION, CommandLine, Option

USAGE = """Usage: merge_fleet [OPTION]... FILE...
Add up sorted folded text, plain or compressed by gzip or zstd, from any number
of files in constant memory, on all CPUs or on many machines.
"""
OPTIONS = (
    Option("files-from", "", "FILE", "merge the files that FILE names, each name followed by a zero byte; -: standard input"),
    Option("jobs", "j", "N", "number of concurrent merges, with --ssh on each host (default: one per CPU)"),
    Option("fan-in", "", "N", "number of files that a merge opens at a time (default 100)"),
    Option("parallel", "", "", "run the merges with GNU parallel"),
    Option("ssh", "", "HOST,...", "run the first merges on these hosts, which have the files, with GNU parallel and ssh"),
    Option("ssh-config", "", "FILE", "ssh reads FILE in place of ~/.ssh/config"),
    Option("dask", "", "ADDRESS", "run the merges on the workers of this Dask scheduler, which have the files"),
    Option("temp", "", "DIR", "folder for intermediate files (default: TMPDIR)"),
    Option("no-strip", "", "", "keep parts of names that differ between builds and runs, such as the numbers of lambdas"),
    Option("stats", "", "", "report how much was read and written"),
    HELP,
    VERSION,
)
_ENGINES = ("parallel", "ssh", "dask")


def main(arguments: Sequence[str], tools: pipeline.Tools) -> int:
    """Writes the sum on standard output."""
    line = read_options(NAME, USAGE, OPTIONS, arguments, tools)
    check_engine(line)
    jobs = read_number(line, "jobs", 1, str(len(os.sched_getaffinity(0))))
    fan_in = read_number(line, "fan-in", 2, str(usual_fan_in(resource.getrlimit(resource.RLIMIT_NOFILE)[0])))
    names = read_names(line)
    for number in pipeline.STOP_SIGNALS:
        signal.signal(number, stop)
    if line.has("temp"):  # stackfold's own files, too
        tools.environment["TMPDIR"] = line.last("temp")
    with Merger(tools, line.last("temp"), jobs, not line.has("no-strip")) as merger, engine_of(line, tools, merger, jobs) as engine:
        *branches, _ = tree_of(len(names), engine.slots, fan_in, is_remote(line))
        merged, first = engine.merge_branches(names, branches)
        totals = merger.merge(merged)
        totals = check_sums(first if branches else [totals], totals)
    if line.has("stats"):
        say(report_of(len(names), totals))
    return 0


def check_engine(line: CommandLine) -> None:
    """Raises UsageError for options that exclude each other."""
    if sum(line.has(name) for name in _ENGINES) > 1:
        raise UsageError("--parallel, --ssh, --dask: cannot be combined")
    if line.has("ssh-config") and not line.has("ssh"):
        raise UsageError("--ssh-config: only with --ssh")
    if line.has("jobs") and line.has("dask"):
        raise UsageError("--jobs: cannot be combined with --dask, whose workers set their own number")


def is_remote(line: CommandLine) -> bool:
    """Do other machines read the files?"""
    return line.has("ssh") or line.has("dask")


def engine_of(line: CommandLine, tools: pipeline.Tools, merger: Merger, jobs: int) -> ContextManager[Any]:
    """Returns what runs all merges but the last one: it has `slots`, the number of concurrent merges, and merge_branches()."""
    if line.has("dask"):
        from stackpipe.merge.dask import Cluster  # it and the next one import modules that the usual merge does not need

        return Cluster(merger, line.last("dask"))
    if line.has("ssh") or line.has("parallel"):
        from stackpipe.merge.parallel import Parallel, read_hosts

        hosts = read_hosts(line.last("ssh")) if line.has("ssh") else []
        return contextlib.nullcontext(Parallel(tools, merger, jobs, hosts, line.last("ssh-config")))
    return contextlib.nullcontext(merger)


def stop(number: int, frame: object) -> NoReturn:
    """Handles a signal: exits, so that Merger ends its processes and removes its files."""
    sys.exit(128 + number)


def read_number(line: CommandLine, name: str, least: int, otherwise: str) -> int:
    """Returns the number of an option; raises UsageError."""
    text = line.last(name, otherwise)
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text) or int(text) < least:
        raise UsageError(f"--{name}: not a number above {least - 1}: '{text}'")
    return int(text)


def usual_fan_in(most_open: int) -> int:
    """Returns 100, or fewer if the descriptor limit requires it: an unpacker's file needs two descriptors."""
    if most_open == resource.RLIM_INFINITY or most_open > 220:
        most_open = 220
    return (max(most_open, 24) - 20) // 2


def read_names(line: CommandLine) -> list[str]:
    """Returns the files to merge.  Raises Failure if they are on this machine and one cannot be read."""
    names = line.operands + (line.command or [])
    if line.has("files-from"):
        if names:
            raise UsageError("--files-from, FILE: cannot be combined")
        names = read_list(line.last("files-from"))
    if not names:
        raise UsageError("no file to merge")
    missing = 0
    for name in [] if is_remote(line) else names:
        if not (os.path.isfile(name) and os.access(name, os.R_OK)):
            missing += 1
            say(f"{name}: {'not a readable file' if os.path.exists(name) else 'No such file or directory'}")
    if missing:
        raise Failure(f"{missing} of {len(names)} files missing: nothing is written")
    if any(line.has(name) for name in _ENGINES):  # merges run in another folder
        return [os.path.join(os.getcwd(), name) for name in names]
    return [f"./{name}" if name.startswith("-") else name for name in names]  # neither stdin nor an option


def read_list(path: str) -> list[str]:
    """Reads file names, each followed by a zero byte."""
    try:
        with sys.stdin.buffer if path == "-" else open(path, "rb") as file:
            names = text_of(file.read()).split("\0")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    return names if names[-1] else names[:-1]
