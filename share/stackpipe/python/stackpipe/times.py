"""The lines about the times of a recording of CPU time and waits: on the clock, of all threads, and the largest reasons to wait."""
import re
import subprocess
from typing import Iterator, Mapping, Sequence

from stackpipe import pipeline
from stackpipe.messages import print_json, say, text_of

#: The times of threads: their facts (stackfold(1)), and their names here.
_TIMES = {"on-cpu": "CPU", "ready": "ready", "lock": "lock", "io": "I/O", "sleep": "sleep", "page-fault": "page faults",
          "child": "child processes", "other-wait": "other"}
_NONE = "0.000 s"
_REASONS = "3"
_FACT = re.compile(r"# ([a-z0-9-]+): (.*)")


def report(tools: pipeline.Tools, named: str, folded: str, root: Sequence[str]) -> None:
    """Prints the lines about the stream `named`, which has symbols.  `folded` are its folded stacks with facts, and `root` the options
    of stackfold for the root frames."""
    for line in summary(dict(facts_of(folded)), reasons(tools, named, root)):
        say(line)


def print_figures(tools: pipeline.Tools, target: str, named: str, folded: str, root: Sequence[str]) -> None:
    """Prints the same as JSON.  Times are in seconds, as their facts are, and those of reasons in microseconds, as folded text is."""
    facts = dict(facts_of(folded))
    seconds = {key: float(facts[key].removesuffix(" s")) for key in ("elapsed", *_TIMES) if key in facts}
    print_json({"version": 1, "target": target, "unit": "s", **{key.replace("-", "_"): value for key, value in seconds.items()},
                "reasons": [{"name": row["name"], "us": row["self"]} for row in rows_of(tools, named, root)], "outputs": tools.written})


def facts_of(folded: str) -> Iterator[tuple[str, str]]:
    """Yields the facts at the start of folded text."""
    with open(folded, "rb") as file:
        for line in file:
            fact = _FACT.fullmatch(text_of(line.rstrip(b"\n")))
            if not fact:
                return
            yield fact[1], fact[2]


def reasons(tools: pipeline.Tools, named: str, root: Sequence[str]) -> list[str]:
    """Returns what threads waited for longest, each the sum of all its waits: "audit_append: lock 8.300 s"."""
    return [f"{row['name']} {float(row['self']) / 1e6:.3f} s" for row in rows_of(tools, named, root)]


def rows_of(tools: pipeline.Tools, named: str, root: Sequence[str]) -> list[dict]:
    """Returns the same as lines of stacktop --json."""
    import json  # a recorder starts sooner without it
    stages = [["stackfold", "--annotate", "-q", *root, "--event", "offcpu", named], ["stacktop", "--json", "--top", _REASONS]]
    statuses, text = tools.read(stages, stderr=subprocess.DEVNULL)  # nothing waited
    rows = json.loads(text_of(text))["lines"] if not any(statuses) else []
    return [row for row in rows if row["self"]]


def summary(facts: Mapping[str, str], largest: Sequence[str]) -> list[str]:
    """Returns the lines about the times of a recording."""
    times = ", ".join(f"{name} {facts[key]}" for key, name in _TIMES.items() if facts.get(key, _NONE) != _NONE)
    wall = f"wall time {facts['elapsed']}; " if "elapsed" in facts else ""
    return [*([f"{wall}all threads: {times}"] if times else []),
            *([f"parallelism: {facts['parallelism']}"] if "parallelism" in facts else []),
            *([f"largest reasons to wait: {', '.join(largest)}"] if largest else [])]
