"""profile_run diff and ci: compare two runs by flamediff, for people and for CI pipelines."""
import os
import re
import subprocess
from typing import NamedTuple, Sequence

from stackpipe import files, pipeline
from stackpipe.runs import modes
from stackpipe.messages import Failure, UsageError, bytes_of, print_out, printable, printable_lines, say_lines, text_of
from stackpipe.runs.profile_run import Settings, need, path_of, words_of
from stackpipe.runs.report import list_functions, show
from stackpipe.runs.store import Run, find_run, must_count_alike

GREW = 3  #: exit status of flamediff --fail-over, and of ci


class Sides(NamedTuple):
    """The runs to compare."""

    befores: list[Run]
    afters: list[Run]

    def options(self, settings: Settings) -> list[str]:
        """Returns the options of flamediff for the counts.  It compares costs per unit of work if all runs report their
        work and have the same rate, event and mode.  If they do not, --work raises Failure."""
        counted = modes.counted_options(self.afters[0].text("mode")) + ["--no-strip"] * settings.line.has("no-strip")
        runs = self.befores + self.afters
        kinds = {(run.figure("rate_hz"), run.text("event"), run.text("mode")) for run in runs}
        if len(kinds) == 1 and all(run.number("work") for run in runs):
            return [*counted, "--per", ",".join("+".join(run.figure("work") for run in side) for side in self)]
        if settings.line.has("work"):
            raise Failure("--work: the runs do not all know how much work they did, at the same rate and in the same mode")
        return counted

    def arguments(self) -> list[str]:
        """Returns the files as arguments of flamediff."""
        befores, afters = ([run.stacks for run in side] for side in self)
        if len(befores) + len(afters) == 2:
            return ["--", *befores, *afters]
        return ["--runs", *befores, "--", *afters]


def run_diff(settings: Settings, tools: pipeline.Tools) -> int:
    """Prints the comparison as text, and draws it as a flame graph."""
    need(tools, "flamediff", "diff")
    if not settings.line.last("before"):
        raise UsageError("diff: --before is missing")
    before = find_run(settings.output, settings.line.last("before"), "--before")
    after = find_run(settings.output, settings.line.last("after", "latest"), "--after")
    must_count_alike("--before", before, after.unit)
    sides = Sides([before], [after])
    options = sides.options(settings)
    path = settings.svg or after.path(f"diff-{before.name}.svg")
    if tools.pipe([["flamediff", *options, "-o", path, *sides.arguments()]]) != [0]:
        raise Failure(f"{path}: not drawn")
    show(tools, ["flamediff", "--text", *options, "--top", str(settings.top), *sides.arguments()])
    print_out(f"\n{path}\n")
    return 0


def run_ci(settings: Settings, tools: pipeline.Tools) -> int:
    """Returns 0 if nothing grew, 3 if something did, and 1 if the comparison or the program failed."""
    need(tools, "flamediff", "ci")
    sides = record_sides(settings, tools) if settings.line.has("runs") else find_sides(settings, tools)
    must_count_alike("--baseline", sides.befores[0], sides.afters[0].unit)
    options = sides.options(settings)
    process = tools.start(["flamediff", "--text", *options, "--top", "1", "--fail-over", settings.fail_over, *sides.arguments()],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = text_of(process.communicate()[1])
    status = pipeline.wait_for(process)
    summary = summary_of(settings, tools, sides, options, said, status)
    path = path_of(settings.line.last("summary"))
    if path:
        append(path, summary)
    else:
        print_out(summary)
    say_lines(said)
    return status if status in (0, GREW) else 1


def append(path: str, text: str) -> None:
    """Appends text to a file, by replacing the file; raises Failure.  A link is replaced, too: the text of the file to which it
    leads may be secret."""
    before = b""
    if os.path.lexists(path) and not os.path.islink(path) and not files.is_written_in_place(path):
        try:
            with files.open_regular(path, follows=False) as file:
                before = file.read()
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from None
    files.write_file(path, before + bytes_of(text))


def record(settings: Settings, workload: list[str], tools: pipeline.Tools) -> Run:
    """Records a new run; raises Failure, also if the program fails."""
    from stackpipe.runs.capture import capture

    captured = capture(settings, workload, tools)
    if workload and captured.status:
        raise Failure(f"{workload[0]}: exit status {captured.status}")
    return captured.run


def record_sides(settings: Settings, tools: pipeline.Tools) -> Sides:
    """Records N runs of each side in turn, so that both meet the same load on this machine.  Never executes a command line
    that a stored run holds."""
    before = words_of(settings.line.last("baseline-workload"))
    if settings.line.last("baseline"):
        raise UsageError("--runs, --baseline: only one of them; --baseline-workload records that side, too")
    if not before:
        raise UsageError("--runs: --baseline-workload is missing, the program before the change")
    if settings.pid:
        raise UsageError("--runs, --pid: only one of them")
    now = settings.workload()
    if not now:
        raise UsageError("--runs: --workload or a program after -- is missing")
    sides = Sides([], [])
    for _ in range(int(settings.line.last("runs"))):
        sides.befores.append(record(settings, before, tools))
        sides.afters.append(record(settings, now, tools))
    return sides


def find_sides(settings: Settings, tools: pipeline.Tools) -> Sides:
    """Returns the runs that --baseline and --run name.  If there is a program, records a new run in place of --run."""
    if settings.line.has("baseline-workload"):
        raise UsageError("--baseline-workload: only with --runs")
    if not settings.line.last("baseline"):
        raise UsageError("ci: --baseline is missing")
    before = find_run(settings.output, settings.line.last("baseline"), "--baseline")
    workload = settings.workload()
    if workload or settings.line.command is not None or settings.pid or settings.line.has("mode"):
        after = record(settings, workload, tools)
    else:
        after = find_run(settings.output, settings.line.last("run", "latest"), "--run")
    return Sides([before], [after])


def verdict(said: str, status: int) -> str:
    """Returns the headline.  Growth that may be noise is not ruled out: flamediff reports it in `said`."""
    if status == 0:
        is_unsure = re.search(r"^flamediff: .* grew from .* cannot tell from noise", said, re.MULTILINE)
        return "no function grew for sure" if is_unsure else "no function grew"
    return "functions grew" if status == GREW else "not compared"


def summary_of(settings: Settings, tools: pipeline.Tools, sides: Sides, options: Sequence[str], said: str, status: int) -> str:
    """Returns the summary in Markdown, with all names escaped."""
    of_what = "the cost of a unit of work before" if "--per" in options else "the samples"
    text = f"## Profile: {verdict(said, status)}\n\nLimit: {settings.fail_over} more of {of_what}, beyond noise.\n\n"
    text += "|  | run | samples | lost | work |\n|---|---|---:|---:|---:|\n"
    for side, runs in (("baseline", sides.befores), ("now", sides.afters)):
        for run in runs:
            text += f"| {side} | {cell(run.name)} | {run.figure('samples')} | {run.figure('lost')} | {run.figure('work')} |\n"
    if said:
        text += "\n" + block(said)
    changed = tools.read([["flamediff", "--text", *options, "--only-significant", "--top", str(settings.top), *sides.arguments()]],
                         stderr=subprocess.STDOUT)[1]
    text += "\n### What changed\n\nThe check above finds growth in fewer samples than this table, which compares all functions at once.\n\n"
    text += block(text_of(changed))
    return text + "\n### Hot spots now\n\n" + block(list_functions(tools, "-n", str(settings.top), "--", sides.afters[-1].stacks))


def block(text: str) -> str:
    """Quotes text from a profile as a code block.  Each line starts with four blanks, so none can end the block."""
    return "".join(f"    {line}\n" for line in printable_lines(text).splitlines())


def cell(text: str) -> str:
    """Returns the text as a table cell, without characters that Markdown or HTML interpret."""
    return re.sub(r"[\]\[\\`*_|<>&#!()]", " ", printable(text))
