"""profile_run diff and ci: compare two runs by flamediff, for people and for CI pipelines."""
import os
import re
import subprocess
from typing import NamedTuple

from stackpipe import files, pipeline
from stackpipe.runs import modes
from stackpipe.messages import Failure, UsageError, bytes_of, print_out, printable, printable_lines, say, say_lines, text_of
from stackpipe.runs.profile_run import Settings, need, path_of, words_of
from stackpipe.runs.report import list_functions, show
from stackpipe.runs.store import Run, find_run, must_count_alike

_FEWEST = 100  # samples; below, flamesvg calls percentages unreliable
_WIDE = 10.0  # percent of the earlier cost; runs that could hide more growth than this show nothing
# A line of flamediff's table has the interval in which the cost of everything changed.
_COST_INTERVAL = re.compile(r"^(?:cost per unit of work|count per run): .* \(\S+ \.\. ([+-]?[0-9.]+)%\), ", re.MULTILINE)
GREW = 3  #: exit status of flamediff --fail-over, and of ci


class Sides(NamedTuple):
    """The runs to compare."""

    befores: list[Run]
    afters: list[Run]

    def options(self, settings: Settings) -> list[str]:
        """Returns the options of flamediff for the counts.  It compares costs per unit of work if all runs report their
        work and have the same rate, event and mode.  If they do not, --work raises Failure."""
        counted = modes.counted_options(self.afters[0].text("mode")) + ["--no-strip"] * settings.line.has("no-strip")
        if settings.line.has("shares"):
            return counted
        if self.have_one_kind() and all(run.number("work") for run in self.befores + self.afters):
            return [*counted, "--per", ",".join("+".join(run.figure("work") for run in side) for side in self)]
        if settings.line.has("work"):
            raise Failure("--work: not all runs have an amount of work and the same rate and mode")
        return counted

    def have_one_kind(self) -> bool:
        """Do all runs have the same rate, event and mode?"""
        return len({(run.figure("rate_hz"), run.text("event"), run.text("mode")) for run in self.befores + self.afters}) == 1

    def cost_options(self, settings: Settings) -> list[str]:
        """As options(), but compares the cost of whole runs by default, and shares only with --shares.  Raises Failure for
        runs whose cost means nothing."""
        options = self.options(settings)
        if settings.line.has("shares"):
            return options
        runs = self.befores + self.afters
        if not self.have_one_kind():
            raise Failure("ci: the runs differ in rate, event or mode, so their costs do too; compare shares (--shares)")
        if len(runs) == 2:
            raise Failure("ci: one run of each side does not show how the costs of runs differ; record several "
                          "(--runs 5 --baseline-workload 'PROGRAM BEFORE' -- PROGRAM), or compare shares (--shares)")
        if "--per" in options:
            return options
        if not all(run.meta().get("arguments") and not run.number("seconds_asked") and run.meta().get("interrupted") is False for run in runs):
            raise Failure("ci: only programs that run to their end do the same work in each run; compare shares (--shares), "
                          "or the cost per unit of work (--work)")
        return [*options, "--absolute"]

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
        raise UsageError("diff: give the runs to compare, such as diff previous latest")
    before = find_run(settings.output, settings.line.last("before"), "--before")
    after = find_run(settings.output, settings.line.last("after", "latest"), "--after")
    must_count_alike("--before", before, after.unit)
    sides = Sides([before], [after])
    options = sides.options(settings)
    path = settings.svg or after.path(f"diff-{before.name}.svg")
    if tools.pipe([["flamediff", *options, "-o", path, *sides.arguments()]]) != [0]:
        raise Failure(f"{path}: not written")
    show(tools, ["flamediff", "--text", *settings.table, *options, "--top", str(settings.top), *sides.arguments()])
    if settings.table:
        say(f"wrote {path}")
    else:
        print_out(f"\n{path}\n")
    return 0


def run_ci(settings: Settings, tools: pipeline.Tools) -> int:
    """Returns 0 if nothing grew, 3 if something did, and 1 if the comparison or the program failed."""
    need(tools, "flamediff", "ci")
    has_two_programs = settings.line.has("runs") or settings.line.has("baseline-workload")
    sides = record_sides(settings, tools) if has_two_programs and not settings.line.has("baseline") else find_sides(settings, tools)
    must_count_alike("--baseline", sides.befores[0], sides.afters[0].unit)
    options = sides.cost_options(settings)
    limit = limit_of(settings)
    # One call gives the table, its intervals and the status, so they agree.
    process = tools.start(["flamediff", "--text", *options, "--top", str(settings.top), "--fail-over", limit, *sides.arguments()],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    table, said = map(text_of, process.communicate())
    status = pipeline.wait_for(process)
    summary = summary_of(settings, sides, Compared(options, table, said, status, samples_of(sides)))
    summary += "\n### Hottest functions of the new runs\n\n"
    summary += block(list_functions(tools, "-n", str(settings.top), "--", *(run.stacks for run in sides.afters)))
    path = path_of(settings.line.last("summary"))
    if path:
        append(path, summary)
    else:
        print_out(summary)
    say_lines(said)
    return status if status in (0, GREW) else 1


def limit_of(settings: Settings) -> str:
    """Returns the growth that counts."""
    if settings.line.has("fail-over") or settings.line.has("shares"):
        return settings.fail_over
    return "1%"


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

    run, status = capture(settings, workload, tools)
    if workload and status:
        raise Failure(f"{workload[0]}: exit status {status}")
    return run


def number_of_runs(settings: Settings) -> int:
    """Returns how often to record each side, or the program after a stored baseline."""
    return int(settings.line.last("runs", "1" if settings.line.has("shares") else "5"))


def record_sides(settings: Settings, tools: pipeline.Tools) -> Sides:
    """Records some runs of each side in turn, so that both meet the same load on this machine.  Never executes a command line
    that a stored run holds."""
    before = words_of(settings.line.last("baseline-workload"))
    if not before:
        raise UsageError("--runs: needs --baseline-workload, the program before the change, or --baseline, a run of it")
    if settings.pid:
        raise UsageError("--runs, --pid: cannot be combined")
    now = settings.workload()
    if not now:
        raise UsageError("--runs: no program: give it after --, or with --workload")
    sides = Sides([], [])
    for _ in range(number_of_runs(settings)):
        sides.befores.append(record(settings, before, tools))
        sides.afters.append(record(settings, now, tools))
    return sides


def find_sides(settings: Settings, tools: pipeline.Tools) -> Sides:
    """Returns the runs that --baseline and --run name.  If there is a program, records new runs in place of --run."""
    if settings.line.has("baseline-workload"):
        raise UsageError("--baseline, --baseline-workload: cannot be combined")
    if not settings.line.last("baseline"):
        raise UsageError("ci: needs --baseline or --baseline-workload")
    before = find_run(settings.output, settings.line.last("baseline"), "--baseline")
    workload = settings.workload()
    if workload or settings.line.command is not None or settings.pid or settings.line.has("mode"):
        return Sides([before], [record(settings, workload, tools) for _ in range(number_of_runs(settings) if workload else 1)])
    if settings.line.has("runs"):
        raise UsageError("--runs: no program: give it after --, or with --workload")
    return Sides([before], [find_run(settings.output, settings.line.last("run", "latest"), "--run")])


class Compared(NamedTuple):
    """The result of flamediff."""

    options: list[str]
    table: str
    said: str
    status: int
    samples: float  #: of the side with fewer

    @property
    def is_of_cost(self) -> bool:
        """Are costs compared, not shares?"""
        return "--per" in self.options or "--absolute" in self.options

    @property
    def is_unsure(self) -> bool:
        """Could the runs hide growth?  flamediff reports growth that may be noise, but a wide interval hides it as well."""
        interval = _COST_INTERVAL.search(self.table)
        return self.samples < _FEWEST or bool(interval) and float(interval[1]) > _WIDE or \
            re.search(r"^flamediff: .* grew from .* to tell this from noise", self.said, re.MULTILINE) is not None


def verdict(compared: Compared) -> str:
    """Returns the headline.  Without growth it claims that there is none only if the runs could show it."""
    none, grew = ("no function costs more", "functions cost more") if compared.is_of_cost else ("no share grew", "shares grew")
    if compared.status == 0:
        return "the runs are too few or too noisy to tell" if compared.is_unsure else none
    return grew if compared.status == GREW else "not compared"


def summary_of(settings: Settings, sides: Sides, compared: Compared) -> str:
    """Returns the summary in Markdown, with all names escaped."""
    of_what = "all samples" if not compared.is_of_cost else \
        "the earlier cost per unit of work" if "--per" in compared.options else f"the earlier {cost_name(sides)} per run"
    text = f"## Profile: {verdict(compared)}\n\nLimit: growth by {limit_of(settings)} of {of_what}, and by more than noise.\n\n"
    text += "|  | run | samples | lost | CPU s | work |\n|---|---|---:|---:|---:|---:|\n"
    for side, runs in (("baseline", sides.befores), ("now", sides.afters)):
        for run in runs:
            text += f"| {side} | {cell(run.name)} | {run.figure('samples')} | {run.figure('lost')} | {cpu_seconds(run)} | {run.figure('work')} |\n"
    if compared.said:
        text += "\n" + block(compared.said)
    return text + "\n### What changed\n\n" + block(compared.table)


def samples_of(sides: Sides) -> float:
    """Returns the samples of the side with fewer."""
    return min(sum(run.number("samples") or 0 for run in side) for side in sides)


def cost_name(sides: Sides) -> str:
    """Returns what a run costs."""
    unit = sides.afters[0].unit
    return "CPU time" if unit == "samples" else f"number of {unit}"


def cpu_seconds(run: Run) -> str:
    """Returns the CPU time of a run, from its samples; "-" if it counts something else."""
    samples, rate = run.number("samples"), run.number("rate_hz")
    return f"{samples / rate:.2f}" if samples is not None and rate and run.unit == "samples" else "-"


def block(text: str) -> str:
    """Quotes text from a profile as a code block.  Each line starts with four blanks, so none can end the block."""
    return "".join(f"    {line}\n" for line in printable_lines(text).splitlines())


def cell(text: str) -> str:
    """Returns the text as a table cell, without characters that Markdown or HTML interpret."""
    return re.sub(r"[\]\[\\`*_|<>&#!()]", " ", printable(text))
