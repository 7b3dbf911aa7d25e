"""Runs the merges of merge_fleet(1) on a Dask cluster.

A task returns its sum, compressed by zstd, whole or not at all.  Dask repeats a task that fails or whose worker ends.
Merges of an upper level go first, so that the cluster holds few sums at a time.
"""
import asyncio
import logging
import operator
import os
import re
import site
import socket
import uuid
import warnings
from typing import Any, Sequence

from stackpipe import files
from stackpipe.merge.here import Merger
from stackpipe.merge.tree import NAME, NO_STRIP, TASK, Level, Merged, Totals, read_report, shortened
from stackpipe.messages import Failure, UsageError, say, say_lines

_RETRIES = 2
_SECONDS_TO_CONNECT = 30
_SECONDS_FOR_A_WORKER = 30
_MOST_LINE = 500  # characters of an error that comes from another machine
_ADDRESS = re.compile(r"(?:(?:tcp|tls)://)?[^\s/@]+:[0-9]{1,5}")


def run_task(command: Sequence[str], names: bytes, parts: Sequence[tuple[bytes, str]]) -> tuple[bytes, str]:
    """Merges files of these names, or the sums of other tasks.  Returns the sum and the messages.  Raises RuntimeError.

    It runs on a worker, which need not have this module.  A sum is in memory, not in a file, so that nothing remains of a
    worker that is killed.
    """
    import os
    import subprocess

    held = []

    def hold(data: bytes) -> int:
        held.append(os.memfd_create(command[0]))
        view = memoryview(data)
        while view:
            view = view[os.write(held[-1], view):]
        os.lseek(held[-1], 0, os.SEEK_SET)
        return held[-1]

    try:
        inputs = [hold(part) for part, _ in parts]
        listed = hold(names or b"".join(b"/dev/fd/%d\0" % number for number in inputs))
        said = hold(b"")
        merge = subprocess.Popen(command, stdin=listed, stdout=subprocess.PIPE, stderr=said, pass_fds=inputs)
        try:
            with merge.stdout:
                pack = subprocess.run(["zstd", "-1cq"], stdin=merge.stdout, stdout=subprocess.PIPE, check=False)
        finally:
            status = merge.wait()
        messages = os.pread(said, os.fstat(said).st_size, 0).decode("utf-8", "backslashreplace")
        if status or pack.returncode:
            raise RuntimeError(status or pack.returncode, messages)
        return pack.stdout, messages
    finally:
        for number in held:
            os.close(number)


# Dask sends a function of __main__ whole, and one of another module by its name, which workers do not have.
run_task.__module__ = "__main__"


class Cluster:
    """Runs levels of the tree on the workers of a Dask scheduler."""

    def __init__(self, merger: Merger, address: str):
        if not _ADDRESS.fullmatch(address):
            raise UsageError(f"--dask: not an address such as tcp://HOST:8786: '{address}'")
        self._merger, self._address = merger, address
        site.main()  # the commands run with python3 -S, without the folders of Debian's modules
        try:
            import distributed
        except ImportError:
            raise Failure("--dask: python3-distributed is not installed: apt-get install python3-distributed") from None
        logging.disable()
        warnings.simplefilter("ignore")

        host, _, port = address.rpartition("//")[2].rpartition(":")
        try:  # Dask itself tries again for the whole time if the connection is refused
            socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_CONNECT).close()
        except (OSError, OverflowError) as error:
            raise Failure(f"--dask: {address}: no scheduler: {getattr(error, 'strerror', None) or error}") from None

        class Client(distributed.Client):
            """A client that failed to start would wait for a minute when it is deleted."""

            def __del__(self) -> None:
                pass

        try:
            self._client = Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
        except Exception as error:  # a server may answer anything
            raise Failure(f"--dask: {address}: no scheduler: {_line_of(error)}") from None

    def __enter__(self) -> "Cluster":
        try:
            self._client.wait_for_workers(1, timeout=_SECONDS_FOR_A_WORKER)
        except (TimeoutError, asyncio.TimeoutError):
            self._client.close()
            raise Failure(f"--dask: {self._address}: the scheduler has no worker") from None
        self.slots = max(sum(self._client.nthreads().values()), 1)
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.close()

    def merge_branches(self, names: list[str], levels: Sequence[Level]) -> Merged:
        """Runs levels of the tree.  Fetches the results of the last one after another, so only one is in memory here."""
        run = uuid.uuid4().hex
        said, parts = [], [os.fsencode(name) + b"\0" for name in names]
        for height, level in enumerate(levels):
            above = []
            for number, group in enumerate(level):
                inputs = parts[group.start:group.stop]
                words = ([b"".join(inputs), []] if height == 0 else [b"", inputs])
                task = [*TASK, *([] if height == 0 and self._merger.strips_names else [NO_STRIP])]
                above.append(self._submit(run_task, task, *words, key=f"{NAME}-{run}-{height}-{number}", priority=height))
            said.append([self._submit(operator.itemgetter(1), part, key=f"{part.key}-said", priority=height) for part in above])
            parts = above  # the cluster keeps a sum of the level below only until it is merged
        first = self._read_reports(said, levels)
        merged = []
        while parts:
            merged.append(self._merger.new_path())
            with files.create(merged[-1]) as file:
                file.write(self._sum_of(parts.pop(0)))
        return merged, first

    def _submit(self, function: Any, *arguments: Any, **more: Any) -> Any:
        return self._client.submit(function, *arguments, pure=False, retries=_RETRIES, **more)

    def _read_reports(self, said: list[list[Any]], levels: Sequence[Level]) -> list[Totals | None]:
        """Waits for all tasks and forwards their messages.  Returns the totals of the first level."""
        every = []
        for futures, level in zip(said, levels):
            totals, failed = [], 0
            for future, group in zip(futures, level):
                try:
                    said = self._result_of(future)
                    totals.append(read_report(said, len(group)) if isinstance(said, str) else None)
                except Failure as failure:
                    failed += 1
                    if str(failure):
                        say(str(failure))
            if failed:
                raise self._merger.failure_of(failed, len(level))
            every.append(totals)
        return every[0]

    def _sum_of(self, future: Any) -> bytes:
        """Returns the sum of a task; raises Failure, also if a worker has returned something else."""
        result = self._result_of(future)
        if not isinstance(result, (tuple, list)) or len(result) != 2 or not isinstance(result[0], bytes):
            raise Failure(f"--dask: {self._address}: a worker has returned no sum")
        return result[0]

    def _result_of(self, future: Any) -> Any:
        """Returns what a task has returned; raises Failure."""
        try:
            return future.result()
        except RuntimeError as error:
            if len(error.args) != 2 or not isinstance(error.args[0], int) or not isinstance(error.args[1], str):
                raise Failure(f"--dask: {self._address}: {_line_of(error)}") from None
            say_lines(shortened(error.args[1]))
            raise Failure(f"--dask: {self._address}: a merge ended with status {error.args[0]}") from None
        except (Exception, asyncio.CancelledError) as error:
            raise Failure(f"--dask: {self._address}: {_line_of(error)}") from None


def _line_of(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:_MOST_LINE]}" if lines else type(error).__name__
