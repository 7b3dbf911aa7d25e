"""Profiles that users name: a kept run, a sample stream, perf.data, a pprof profile, folded text, or text of a profiler.

Each becomes folded text in a file.
"""
import os

from stackpipe import files, pipeline
from stackpipe.messages import Failure
from stackpipe.runs.store import find_run

_STREAM = b"PERFILE2"


def folded_file(name: str, work: str, tools: pipeline.Tools, output: str = "profiles") -> str:
    """Returns a file with the folded text of a profile.  New files go to the folder `work`.  `output` is the folder of kept
    runs.  Raises Failure."""
    if not os.path.lexists(name) or os.path.isdir(name):
        try:
            return find_run(output, name, name).stacks
        except Failure:
            what = "a folder without stacks.folded" if os.path.isdir(name) else f"no such file, and no run in '{output}'"
            raise Failure(f"{name}: {what}") from None
    if os.path.isfile(name) and name.endswith(".folded"):
        return name
    if not os.path.isfile(name):
        raise Failure(f"{name}: not a file; write it to a file first")
    path = os.path.join(".", name) if name.startswith("-") else name
    folded = os.path.join(work, f"{len(os.listdir(work))}.folded")
    with open(path, "rb") as file:
        is_stream = file.read(len(_STREAM)) == _STREAM
    fold = ["stackfold", "--annotate"]
    stages = [["pe-symbolize", path], [*fold, "-"]] if is_stream else [[*fold, path]]
    tools.show(stages)
    with files.create(folded) as out:
        if any(tools.pipe(stages, stdout=out)):
            raise Failure("")
    return folded
