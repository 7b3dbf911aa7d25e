"""Runs the merges of merge_fleet(1) by GNU parallel: on this machine, or by ssh on several.

Each merge is a merge_fleet that reads the names of its files as base64.  So no shell reads a name, on either machine.
GNU parallel repeats a merge that fails, on another host if there is one.  It empties the file of the output before that.
The output counts only if the last attempt had status 0 and reported as many files as its list has.
"""
import base64
import os
import re
import shlex
import subprocess
from typing import NamedTuple, Sequence

from stackpipe import files, pipeline
from stackpipe.merge.here import Merger
from stackpipe.merge.tree import MOST_SAID, NAME, NO_STRIP, TASK, Level, Merged, climb, read_report, shortened
from stackpipe.messages import Failure, UsageError, say, say_lines, text_of

_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9_][A-Za-z0-9_.-]*")
# No password is asked for, and no host gets the user's agent or display.  A host that does not answer for a minute has failed.
_SSH = ("ssh", "-a", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
# Seq, Host, Starttime, JobRuntime, Send, Receive, Exitval, Signal, Command
_LOGGED = re.compile(r"^([0-9]{1,9})\t([^\t\n]*)\t(?:[^\t\n]*\t){4}([0-9]{1,9})\t([0-9]{1,9})\t", re.MULTILINE)
_ATTEMPTS = 3
# Linux limits a word of a command line to 128 KiB.  GNU parallel writes each byte of a command as two digits for ssh.
_MOST_LETTERS = 40000


class Outcome(NamedTuple):
    """The end of the last attempt at a merge."""

    host: str
    status: int


def read_hosts(text: str) -> list[str]:
    """Returns the hosts of --ssh; raises UsageError for text that GNU parallel or ssh could read as more than a name."""
    hosts = text.split(",")
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise UsageError(f"--ssh: not a host or USER@HOST: '{host}' (ssh_config(5) can give a name to anything else)")
    return list(dict.fromkeys(hosts))


def read_log(text: str) -> dict[int, Outcome]:
    """Reads the log of `parallel --joblog`.  Returns the outcomes by the numbers of merges, which count from 1."""
    outcomes = {}
    for number, host, status, signal_number in _LOGGED.findall(text):  # on a full disk the last line is not complete
        outcomes[int(number)] = Outcome(host, int(status) or (128 + int(signal_number) if int(signal_number) else 0))
    return outcomes


def token_of(names: Sequence[str]) -> str:
    """Returns names as one word that no shell changes; raises Failure if it is too long for a command line."""
    token = base64.b64encode(b"".join(os.fsencode(name) + b"\0" for name in names)).decode()
    if len(token) > _MOST_LETTERS:
        raise Failure(f"{names[0]} and the {len(names) - 1} names after it are too long for a command line: use a smaller --fan-in")
    return token


class Parallel:
    """Runs levels of the tree by GNU parallel."""

    def __init__(self, tools: pipeline.Tools, merger: Merger, jobs: int, hosts: Sequence[str] = (), ssh_config: str = ""):
        """Without hosts, all merges run on this machine.  `jobs` run at a time on each host."""
        self._tools, self._merger, self._jobs, self._hosts = tools, merger, jobs, hosts
        self._ssh = shlex.join([*_SSH, *(["-F", os.path.abspath(ssh_config)] if ssh_config else [])])
        self.slots = jobs * max(len(hosts), 1)
        if ssh_config and not os.access(ssh_config, os.R_OK):
            raise Failure(f"--ssh-config: {ssh_config}: not a readable file")

    def merge_branches(self, names: list[str], levels: Sequence[Level]) -> Merged:
        """Runs levels of the tree.  The first runs on the hosts, which send their results; the others run here."""
        if not self._hosts:
            return climb(names, levels, self._merge_level, os.unlink)
        merged, first = self._merge_level(names, levels[0])
        return self._merger.merge_branches(merged, levels[1:])[0], first

    def _merge_level(self, names: list[str], level: Level) -> Merged:
        groups = [names[group.start:group.stop] for group in level]
        folder = os.path.abspath(self._merger.new_folder())  # where GNU parallel runs
        said = os.path.join(folder, "said")
        with files.create(said) as messages:
            status = self._merger.run_engine(self._command(folder), "".join(token_of(group) + "\n" for group in groups).encode(),
                                             stdout=subprocess.DEVNULL, stderr=messages, cwd=folder)
        try:
            outcomes = read_log(_read(os.path.join(folder, "log"), is_message=False))
        except FileNotFoundError:
            outcomes = {}
        if not outcomes:
            self._check_parallel()
            say_lines(_read(said))
            raise Failure(f"parallel ended with status {status} and merged nothing{files.why_not_written(folder)}")
        merged = [os.path.join(folder, f"sum-{number}") for number in range(1, len(groups) + 1)]
        totals, failed = [], 0
        for number, (path, group) in enumerate(zip(merged, groups), 1):
            report = read_report(_read(f"{path}.err"), len(group)) if number in outcomes else None
            if number not in outcomes or outcomes[number].status or report is None:
                failed += 1
                if number in outcomes:
                    say(f"{outcomes[number].host}: a merge of {len(group)} files, starting with {group[0]}, "
                        f"ended with status {outcomes[number].status}")
            totals.append(report)
        if failed:
            raise self._merger.failure_of(failed, len(groups))
        return merged, totals

    def _check_parallel(self) -> None:
        """Raises Failure if there is no parallel, or another one (Debian's moreutils has one)."""
        try:
            printed = self._tools.read([["parallel", "--version"]], stderr=subprocess.DEVNULL)[1]
        except Failure:
            printed = b""
        if not printed.startswith(b"GNU parallel"):
            raise Failure("GNU parallel is not installed: apt-get install parallel")

    def _command(self, folder: str) -> list[str]:
        """Returns the command of GNU parallel.  It keeps its own files in the folder, and ignores the user's settings."""
        where = ["--sshlogin", ",".join(self._hosts), "--ssh", self._ssh, "--sshdelay", "0.05"] if self._hosts else []
        task = list(TASK) if self._hosts else [os.path.join(os.path.abspath(self._tools.here), NAME), *TASK[1:]]
        task += [] if self._merger.strips_names else [NO_STRIP]
        return ["env", f"TMPDIR={folder}", f"PARALLEL_HOME={folder}", "PARALLEL_SHELL=/bin/sh",
                "parallel", "--plain", "--will-cite", "--jobs", str(self._jobs), *where, "--retries", str(_ATTEMPTS),
                "--halt", "soon,fail=1", "--joblog", "log", "--results", "sum-{#}",
                f"printf %s {{}} | base64 -d | {shlex.join(task)}"]


def _read(path: str, is_message: bool = True) -> str:
    """Reads a file; of messages, which a host may send without end, only the end."""
    with open(path, "rb") as file:
        left_out = max(file.seek(0, os.SEEK_END) - MOST_SAID, 0) if is_message else 0
        file.seek(left_out)
        return shortened(text_of(file.read()), left_out)
