"""Profiles that users name: a kept run, a sample stream, perf.data, a flame graph, a pprof or speedscope profile, folded
text, or text of a profiler.

Each becomes folded text in a file.
"""
import errno
import os
from typing import Sequence

from stackpipe import files, pipeline
from stackpipe.messages import Failure
from stackpipe.runs import store

_STREAM = b"PERFILE2"
_HEAD_BYTES = 4096
_WAITS = b"offcpu\0"  # the event of waits
_PEAK = "peak-bytes"  # the event of a stream of stackpipe heap that diff and top use


def is_heap(path: str) -> bool:
    """Is this a sample stream of stackpipe heap?  Its events are at its start.  Raises Failure."""
    head = head_of(path)
    return head.startswith(_STREAM) and _PEAK.encode() in head


def data_of(name: str) -> str:
    """Returns the file "data" of a folder that `perf record --threads` made, from which our tools read all of it; else `name`."""
    data = os.path.join(name, "data")
    return data if os.path.isfile(data) else name


def is_kept(name: str) -> bool:
    """Can it only be a kept run, because no file has that name?"""
    path = data_of(name)
    return not os.path.lexists(path) or os.path.isdir(path)


def path_of(name: str, output: str = "profiles") -> str:
    """Returns the file of a profile: `name` itself, or the folded stacks of a kept run in the folder `output`.  No program parses it
    as an option.  Raises Failure."""
    name = data_of(name)
    if not is_kept(name):
        return os.path.join(".", name) if name.startswith("-") else name
    try:
        return store.find_run(output, name, name).stacks
    except Failure:
        what = "a folder without stacks.folded" if os.path.isdir(name) else \
            f"no such file, and no such run in '{output}' (stackpipe runs capture records one)"
        raise Failure(f"{name}: {what}") from None


def head_of(path: str) -> bytes:
    """Returns the start of a file.  Raises Failure."""
    try:
        with files.open_regular(path) as file:
            return file.read(_HEAD_BYTES)
    except OSError as error:
        hint = "; write the profile to a file first" if error.errno == errno.EINVAL else ""
        raise Failure(f"{path}: {error.strerror}{hint}") from None


def is_stream(path: str) -> bool:
    """Is it a sample stream or perf.data?  Raises Failure."""
    return head_of(path).startswith(_STREAM)


def has_waits(path: str) -> bool:
    """Is it a sample stream with waits?  Its events are at its start.  Raises Failure."""
    head = head_of(path)
    return head.startswith(_STREAM) and _WAITS in head


def folded_file(name: str, work: str, tools: pipeline.Tools, output: str = "profiles", time: str = "") -> str:
    """Returns a file with the folded text of a profile.  New files go to the folder `work`.  `output` is the folder of kept
    runs.  Only what happened in the range `time` is kept (stackfold --time); empty: all.  Raises Failure."""
    path = path_of(name, output)
    if time and is_kept(name):
        return folded_part(store.find_run(output, data_of(name), name), time, work, tools)
    has_times = is_stream(path)
    if path.endswith(".folded") and not time:
        return path
    folded = os.path.join(work, f"{len(os.listdir(work))}.folded")
    fold = ["stackfold", "--annotate", *(["--event", _PEAK] if is_heap(path) else []), *([f"--time={time}"] if time else [])]
    stages = [["pe-symbolize", path], [*fold, "-"]] if has_times else [[*fold, path]]
    tools.show(stages)
    with files.create(folded) as out:
        if any(tools.pipe(stages, stdout=out)):
            raise Failure("")
    return folded


def folded_part(run: store.Run, time: str, work: str, tools: pipeline.Tools) -> str:
    """Returns a file in the folder `work` with the folded text of a part of a kept run, by its stream.  Raises Failure."""
    stream = run.path("named.pe.gz")
    if not os.path.isfile(stream):
        raise Failure(f"{run.name}: a range of time needs times, and the run has no named.pe.gz")
    folded = os.path.join(work, f"{len(os.listdir(work))}.folded")
    marks = ["--mark-waits"] if run.text("mode") == "hotcold" else []
    stages = [["gzip", "-dc", "--", stream], ["stackfold", "--annotate", *marks, f"--time={time}", "-"]]
    tools.show(stages)
    with files.create(folded) as out:
        if any(tools.pipe(stages, stdout=out)):
            raise Failure("")
    return folded


def must_count_alike(names: Sequence[str], output: str = "profiles") -> None:
    """Raises Failure if two profiles are kept runs with different units, such as samples and microseconds."""
    runs = [store.find_run(output, name, name) for name in names if not os.path.isfile(data_of(name))]
    for run in runs[1:]:
        store.must_count_alike(run.name, runs[0], run.unit)
