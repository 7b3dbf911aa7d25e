"""profile_run trend: a function's share over time."""
import html
import os
import re
import subprocess
from typing import Iterator, NamedTuple, Sequence

from stackpipe import files, pipeline
from stackpipe.messages import Failure, bytes_of, count_of, print_out, printable, say, text_of
from stackpipe.runs.profile_run import Settings
from stackpipe.runs.store import Run, find_run, program_of, read_runs

_COUNT = re.compile(r"[0-9]{1,20}(?:\.[0-9]*)?", re.ASCII)  # below 2^64, folded(5)
_MARK = re.compile(r"_\[[a-z]\]$")
_MOST_NEAR = 5
_MOST_NAME = 200


class Share(NamedTuple):
    """A function's shares of a profile that has samples, in per cent."""

    self_percent: float
    total_percent: float
    is_found: bool


class Row(NamedTuple):
    """A line of the table."""

    name: str
    samples: str
    share: Share | None


def plain(name: str) -> str:
    """Returns a function's symbol without its mark."""
    return _MARK.sub("", name)


class Reader:
    """Reads folded text by stackfold.  If `strips_names`, names lose what differs between builds and runs."""

    def __init__(self, tools: pipeline.Tools, strips_names: bool = True):
        self._tools = tools
        self._fold = ["stackfold", "--from", "folded", *(["--strip-names"] if strips_names else [])]

    def name_of(self, function: str) -> str:
        """Returns a function's name as stacks_of() yields it."""
        process = self._tools.start(self._fold, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        printed = process.communicate(bytes_of(function) + b" 1\n")[0]
        return text_of(printed).rpartition(" ")[0] if printed.count(b"\n") == 1 else function

    def stacks_of(self, path: str) -> Iterator[tuple[list[str], float]]:
        """Yields the frames and the count of each line of folded text; raises Failure."""
        try:
            with files.open_regular(path) as file:
                process = self._tools.start(self._fold, stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None
        with process.stdout as folded:
            for line in folded:
                stack, _, count = text_of(line.rstrip(b"\n")).rpartition(" ")
                if _COUNT.fullmatch(count):
                    yield stack.split(";"), float(count)
        if (status := pipeline.wait_for(process)) > 1:  # 1: nothing in it is folded text
            raise Failure(f"{path}: stackfold: exit status {status}")


def share_of(function: str, path: str, reader: Reader) -> Share | None:
    """Returns a function's shares, over all its marks and clones; None for a profile without samples.  A stack counts
    once, even if several clones are in it."""
    meant: dict[str, bool] = {}
    everything = alone = total = 0.0
    is_found = False
    wanted = reader.name_of(function)
    for frames, count in reader.stacks_of(path):
        everything += count
        for frame in frames:
            if frame not in meant:
                meant[frame] = wanted in (frame, plain(frame))
        if meant[frames[-1]]:
            alone += count
        if any(meant[frame] for frame in frames):
            total += count
            is_found = True
    return Share(100 * alone / everything, 100 * total / everything, is_found) if everything > 0 else None


def near_names(function: str, path: str, reader: Reader) -> list[str]:
    """Returns the few hottest functions whose symbols contain the last part of this one, or start as it does."""
    wanted = function.lower().rpartition("::")[2]
    begin = wanted[:4]
    sums: dict[str, float] = {}
    for frames, count in reader.stacks_of(path):
        for frame in frames:
            name = plain(frame)
            last = re.sub(r"\(.*", "", name.lower()).rpartition("::")[2]
            if wanted in name.lower() or (len(begin) > 2 and last.startswith(begin)):
                sums[name] = sums.get(name, 0) + count
    names = sorted(sums, key=lambda name: (-sums[name], name))[:_MOST_NEAR]
    return [name if len(name) <= _MOST_NAME else name[:_MOST_NAME] + "..." for name in names]


def sparkline(values: Sequence[float]) -> str:
    """Draws values as blocks.  The scale starts at 0, so that noise does not look like change."""
    high = max(values, default=0)
    return "".join("▁▂▃▄▅▆▇█"[int(7 * value / high + 0.5) if high > 0 else 0] for value in values)


def run_trend(settings: Settings, tools: pipeline.Tools) -> int:
    """Prints a line of blocks and a table of the runs of the same program, and draws them as SVG."""
    function = settings.line.operands[0]
    wanted = settings.line.last("run", "latest")
    found = find_run(settings.output, wanted, "trend")
    everything = read_runs(settings.output)
    runs = [run for run in everything if is_alike(run, found)]
    if not runs:
        raise Failure(f"trend: no such run in '{settings.output}': '{wanted}'")
    reader = Reader(tools, not settings.line.has("no-strip"))
    rows = [Row(printable("".join(run.name.split())), run.figure("samples"), share_of(function, run.stacks, reader)) for run in runs]
    if not any(row.share and row.share.is_found for row in rows):
        near = ", ".join(near_names(function, runs[-1].stacks, reader))
        raise Failure(f"trend: no run of {found.text('workload')} has a function '{function}'"
                      + (f"; the last has {near}" if near else ""))
    print_out(table_of(function, rows))
    path = settings.svg or os.path.join(settings.output, "trend.svg")
    try:
        files.write_file(path, picture_of(f"Share of {function}", [row for row in rows if row.share]))
    except Failure as failure:
        say(str(failure))
        raise Failure(f"{path}: not written") from None
    print_out(f"\n{path}\n")
    if len(runs) < len(everything):
        say(f"{count_of(len(everything) - len(runs), 'run')} of other programs, or that count something else, left out; "
            "select others with --run")
    return 0


def is_alike(run: Run, other: Run) -> bool:
    """Do both runs count the same unit in the same program?"""
    return run.unit == other.unit and program_of(run.text("workload")) == program_of(other.text("workload"))


def table_of(function: str, rows: Sequence[Row]) -> str:
    """Returns the shares as a table."""
    totals = [row.share.total_percent for row in rows if row.share]  # runs without samples have no share
    text = f"share of {printable(function)} in {count_of(len(rows), 'run')}\n\n"
    text += f"total {min(totals):.2f} to {max(totals):.2f} %  {sparkline(totals)}\n"
    text += f"\n{'run':<22} {'samples':>9} {'self %':>8} {'total %':>8}\n"
    for row in rows:
        alone, total = (f"{row.share.self_percent:.2f}", f"{row.share.total_percent:.2f}") if row.share else ("-", "-")
        text += f"{row.name:<22} {row.samples:>9} {alone:>8} {total:>8}\n"
    return text


_STYLE = ("svg{background:#fff;color:#222}.g{stroke:#ddd}.t{stroke:#c2410c;fill:none;stroke-width:2}"
          ".s{stroke:#1d4ed8;fill:none;stroke-width:2;stroke-dasharray:5 4}.p{fill:#c2410c}.q{fill:#1d4ed8}text{fill:#222}"
          "@media(prefers-color-scheme:dark){svg{background:#1b1b1b}.g{stroke:#444}.t{stroke:#fb923c}.s{stroke:#93c5fd}"
          ".p{fill:#fb923c}.q{fill:#93c5fd}text{fill:#ddd}}")
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 900, 60, 90, 60, 300


def xml_text(text: str) -> str:
    """Escapes the text of an element.  XML forbids U+FFFE and U+FFFF."""
    return html.escape(re.sub("[\ufffe\uffff]", "?", printable(text)))


def step_of(high: float) -> float:
    """Returns the distance between the lines of a scale, so that there are only a few."""
    return next((step for least, step in ((50, 20), (20, 10), (10, 5), (4, 2), (2, 1)) if high > least), 0.5)


def picture_of(title: str, rows: Sequence[Row]) -> str:
    """Draws both shares over time, as SVG.  Users may rename runs to anything.  So each character of a name that is not a
    letter, digit, "-", "_", ":" or "." becomes "?"."""
    high = max(row.share.total_percent for row in rows)
    step = step_of(high)
    scale = min(step * (int(high / step) + 1), 100)
    names = [re.sub(r"[^A-Za-z0-9._:-]", "?", row.name) for row in rows]
    last = len(rows) - 1

    def x_of(number: int) -> float:
        return _LEFT + number * (_WIDTH - _LEFT - _RIGHT) / last if last else (_LEFT + _WIDTH - _RIGHT) / 2

    def y_of(share: float) -> float:
        return _BOTTOM - share * (_BOTTOM - _TOP) / scale

    def points(shares: Sequence[float]) -> str:
        return " ".join(f"{x_of(number):.1f},{y_of(share):.1f}" for number, share in enumerate(shares))

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} 360" width="{_WIDTH}" height="360" '
             'font-family="sans-serif" font-size="12">', f"<style>{_STYLE}</style>",
             f'<text x="{_LEFT}" y="28" font-size="16">{xml_text(title)}</text>']
    for share in (number * step for number in range(int(scale / step) + 1)):
        y = y_of(share)
        lines.append(f'<line class="g" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:g} %</text>')
    lines.append(f'<polyline class="t" points="{points([row.share.total_percent for row in rows])}"/>')
    lines.append(f'<polyline class="s" points="{points([row.share.self_percent for row in rows])}"/>')
    for number, row in enumerate(rows):
        for what, style, share in (("self", "q", row.share.self_percent), ("total", "p", row.share.total_percent)):
            lines.append(f'<circle class="{style}" cx="{x_of(number):.1f}" cy="{y_of(share):.1f}" r="4">'
                         f"<title>{names[number]}: {what} {share:.2f} %, {row.samples} samples</title></circle>")
    # Move labels apart that would overlap.
    total, alone = y_of(rows[-1].share.total_percent), y_of(rows[-1].share.self_percent)
    if alone - total < 14:
        total = (alone + total) / 2 - 7
        alone = total + 14
    for what, y in (("total", total), ("self", alone)):
        lines.append(f'<text x="{x_of(last) + 10:.1f}" y="{y + 4:.1f}">{what}</text>')
    lines.append(f'<text x="{_LEFT}" y="{_BOTTOM + 24}">{names[0]}</text>')
    if last:
        lines.append(f'<text x="{_WIDTH - _RIGHT}" y="{_BOTTOM + 24}" text-anchor="end">{names[-1]}</text>')
    return "\n".join([*lines, "</svg>\n"])
