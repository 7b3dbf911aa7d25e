"""The forms in which a profile is written.  The suffix of the file chooses the form, and so does --format.

A file that exists is replaced if it is empty or has the same form.  Any other file is kept, unless the user gives --force.
"""
import contextlib
import os
import re
import shlex
import subprocess
import zlib
from typing import BinaryIO, Iterator, NamedTuple, Sequence

from stackpipe import files, pipeline
from stackpipe.messages import Failure, UsageError, say, say_lines, text_of
from stackpipe.options import CommandLine, Option

DEFAULT = "flamegraph.svg"
_HEAD_BYTES = 4096
_USAGE = 2  # the status of a tool for a wrong command line
_STDOUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class Form(NamedTuple):
    """A form of a profile."""

    suffix: str
    begins: re.Pattern[bytes]  #: matches the first bytes of its files, unpacked
    export: str = ""  #: the value of stackfold --to


# All whole lines of the head.  The text of flamediff has two counts.
_FOLDED = rb"((#[^\n]*|[^\0\n]+ [0-9]+(\.[0-9]+)?( [0-9]+(\.[0-9]+)?)?)\n)+[^\n]*\Z"
_JSON = rb'(?s)\s*\{.*"(exporter|product)": ?"stackpipe"'
#: The forms by the values of --format.  The first with a suffix is the default for it.
FORMS = {
    "svg": Form(".svg", re.compile(rb"(?is).*<svg.*(class=.flamegraph|init\(evt\)|stack visualization)")),
    "folded": Form(".folded", re.compile(_FOLDED)),
    "pe": Form(".pe", re.compile(rb"PERFILE2")),
    # The first field of a profile, sample_type, has the tag "\n" (profile.proto of pprof).
    "pprof": Form(".pb.gz", re.compile(rb"\n"), "pprof"),
    "speedscope": Form(".json", re.compile(_JSON), "speedscope"),
    "firefox": Form(".json", re.compile(_JSON), "firefox"),
}


def options(forms: Sequence[str], default: str = DEFAULT) -> tuple[Option, ...]:
    """Returns the options of a command that writes these forms."""
    suffixes = " ".join(dict.fromkeys(FORMS[name].suffix for name in forms))
    return (Option("output", "o", "FILE", f"the output (default {default}); its suffix selects the format: {suffixes}"),
            Option("format", "", "FORM", f"the format: {', '.join(forms)}", choices=tuple(forms)), *_COMMON)


_COMMON = (
    Option("open", "", "", "open the output in the browser"),
    Option("force", "", "", "overwrite a file of another kind"),
    Option("verbose", "v", "", "print the pipelines that run, and all statistics"),
    Option("quiet", "q", "", "print only errors"),
)


#: The root frames, as stackfold writes them.
ROOT = Option("root", "", "HOW", "root frames: process, thread (below its process), command (line of the process), or tree (of command lines)",
              choices=("process", "thread", "command", "tree"))


#: The part of a recording that is drawn, as stackfold reads it.
TIME = Option("time", "", "FROM,TO", "draw only what happened between two times: 14:05,14:10 or +5s, or -30s")


def time_of(line: CommandLine, tools: pipeline.Tools) -> list[str]:
    """Returns the option of the tools for the part of the recording that is drawn.  Raises UsageError."""
    if not line.has("time"):
        return []
    check_by_stackfold("time", line.last("time"), tools)
    return [f"--time={line.last('time')}"]


def check_by_stackfold(option: str, text: str, tools: pipeline.Tools) -> None:
    """Raises UsageError if stackfold, which runs only after the recording, would refuse the value of its option."""
    with files.scratch() as said:
        statuses = tools.pipe([["stackfold", f"--{option}={text}", os.devnull]], stdout=subprocess.DEVNULL, stderr=said)
        said.seek(0)
        if statuses == [_USAGE]:
            raise UsageError(text_of(said.read()).removeprefix("stackfold: ").removesuffix(" (see --help)\n"))


def root_of(line: CommandLine) -> list[str]:
    """Returns the option of stackfold for the root frames.  Raises UsageError."""
    if line.has("root") and line.last("root") not in ROOT.choices:
        raise UsageError(f"--root: neither {', '.join(ROOT.choices[:-1])} nor {ROOT.choices[-1]}: '{line.last('root')}'")
    return ["--root", line.last("root")] if line.has("root") else []


class Output(NamedTuple):
    """Where a profile goes, and in which form."""

    path: str
    form: str  #: a key of FORMS
    opens: bool = False
    is_quiet: bool = False
    program_stdout: int | None = None  #: that of the program that is recorded: standard error if the result goes to standard output

    def beside(self, part: str) -> "Output":
        """Returns an output beside this one: for "leaks", flamegraph-leaks.svg."""
        suffix = FORMS[self.form].suffix
        stem = self.path.removesuffix(suffix)
        return self._replace(path=f"{stem}-{part}{self.path[len(stem):]}")

    def fold(self, *more: str) -> list[str]:
        """Returns the stage that folds symbolized samples for this form."""
        export = FORMS[self.form].export
        return ["stackfold", *(["--to", export] if export else ["--annotate"]), *more]

    def stages(self, folding: Sequence[str], *look: str) -> list[list[str]]:
        """Returns the stages after pe-symbolize.  `look` are the options of flamesvg."""
        if self.form == "pe":
            return []
        return [list(folding), *([["flamesvg", *look]] if self.form == "svg" else [])]


#: Options of flamesvg for a graph of CPU time and waits.
HOTCOLD = ("--colors", "hotcold", "--countname", "us")
OPTIONS = options(tuple(FORMS))


def read_output(line: CommandLine, forms: Sequence[str] = tuple(FORMS), otherwise: str = "", default: str = DEFAULT) -> Output:
    """Returns the output that the command line asks for.  `forms` are those that the command can write; `otherwise` is the form
    for unknown suffixes.  Raises UsageError, or Failure if the file cannot be written or must not be replaced."""
    path = line.last("output", default)
    form = line.last("format") or form_of(path) or otherwise
    if not form:
        suffixes = dict.fromkeys(FORMS[name].suffix for name in forms)
        raise UsageError(f"--output: the suffix of '{path}' is not one of {' '.join(suffixes)}; choose one of these, or use --format")
    if form not in FORMS:
        raise UsageError(f"--format: unknown format '{form}'; the formats are {', '.join(forms)}")
    if form not in forms:
        raise UsageError(f"--output: '{path}' would be {form}, which this command does not write; it writes {', '.join(forms)}")
    path = path_of(path)
    output = Output(path, form, line.has("open"), line.has("quiet"), 2 if path in _STDOUT else None)
    check_replaceable(output, line.has("force"))
    return output


def with_operand(line: CommandLine) -> CommandLine:
    """Returns the command line of an older command, whose operand is the output.  Raises UsageError."""
    if not line.operands:
        return line
    if len(line.operands) > 1:
        raise UsageError(f"'{line.operands[1]}': put -- before the command to record")
    if line.has("output"):
        raise UsageError(f"--output, '{line.operands[0]}': choose one of them")
    return line._replace(values={**line.values, "output": line.operands}, operands=[])


def path_of(path: str) -> str:
    """Returns a path that no program parses as an option; "-" is standard output."""
    return "/dev/stdout" if path == "-" else f"./{path}" if path.startswith("-") else path


def form_of(path: str) -> str:
    """Returns the form that the suffix of a path chooses, or nothing; standard output has the form svg."""
    if path in ("-", "/dev/stdout"):
        return "svg"
    return next((name for name, form in FORMS.items() if path.endswith(form.suffix)), "")


def check_replaceable(output: Output, is_forced: bool) -> None:
    """Raises Failure if the output cannot be written, or would overwrite a file of another kind."""
    try:
        files.check_writable(output.path)
    except Failure as failure:
        raise Failure(f"{failure}; choose another file with -o", failure.status) from None
    if is_forced or files.is_written_in_place(output.path):
        return
    try:
        with files.open_regular(output.path, follows=False) as file:
            head = file.read(_HEAD_BYTES)
    except FileNotFoundError:
        return
    except OSError as error:
        if os.path.islink(output.path):
            return  # a link is replaced, and its file stays
        raise Failure(f"{output.path}: {error.strerror}; choose another name with -o, or use --force") from None
    if output.form == "pprof":
        head = unpacked(head)
    if head and not FORMS[output.form].begins.match(head):
        raise Failure(f"{output.path}: the file exists and is not one of stackpipe's {output.form} files; choose another name with -o, or use --force")


def unpacked(head: bytes) -> bytes:
    """Returns the start of a file that gzip packed; of other files, "?"."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _HEAD_BYTES) if head else b""
    except zlib.error:
        return b"?"


def write(tools: pipeline.Tools, output: Output, stages: Sequence[Sequence[str]], what: str = "", explains_nothing: bool = False) -> bool:
    """Writes the output by a pipeline, reports its path, and opens it if the user wants that.  Returns whether there was
    anything to write.  Raises Failure.  `what` describes the result.  `explains_nothing`: the messages of the stages tell why there
    was nothing to write."""
    with files.scratch() as said:
        result = pipeline.draw(tools, output.path, stages, said)
        forward(said, is_needed=result == 1 or ((result == 0 or explains_nothing) and not output.is_quiet))
    if result == 1:
        raise Failure(f"{output.path}: not written")
    if result == 0 and not output.is_quiet:
        say(f"wrote {output.path}{what and f': {what}'}")
    if result == 0 and output.opens and not files.is_written_in_place(output.path):
        show(output.path)
    return result == 0


@contextlib.contextmanager
def keeping(folder: str, streams: Sequence[str], fold: str = "stackfold --annotate", draw: str = "flamesvg") -> Iterator[None]:
    """If the block raises Failure, moves the streams from the temporary folder into one that stays, and prints their paths: a
    recording cannot be repeated, but it can be drawn again.  `fold` is the stage that selects what is drawn, and `draw` the one
    that draws it."""
    try:
        yield
    except Failure as failure:
        full = [name for name in streams if os.path.exists(path := os.path.join(folder, name)) and os.path.getsize(path)]
        with contextlib.suppress(Failure, OSError):
            if full and str(failure):
                kept = files.temporary_folder()
                for name in full:
                    os.rename(os.path.join(folder, name), os.path.join(kept, name))
                for name in full:
                    path = shlex.quote(os.path.join(os.path.realpath(kept), name))
                    picture = f"FILE-{os.path.splitext(name)[0]}.svg" if len(full) > 1 else "FILE.svg"
                    say(f"the recording is kept; to draw it: pe-symbolize {path} | {fold} | {draw} -o {picture}")
        raise


def forward(said: BinaryIO, is_needed: bool) -> None:
    """Prints the messages of tools that a file has collected, if they are needed."""
    said.seek(0)
    if is_needed:
        say_lines(once(text_of(said.read()).splitlines(keepends=True)))


def once(lines: Sequence[str]) -> str:
    """Returns the messages of several tools without lines that differ only in the name of the tool or in numbers: two recordings
    of one target lead to the same advice."""
    different: dict[str, str] = {}
    for line in lines:
        different.setdefault(re.sub("[0-9]+", "0", line.partition(": ")[2]), line)
    return "".join(different.values())


def show(path: str) -> None:
    """Opens a file in the user's browser.  Without a browser it reports that; the file itself is complete."""
    import urllib.parse
    import webbrowser
    address = "file://" + urllib.parse.quote(os.path.abspath(path))
    try:
        is_shown = webbrowser.open(address)
    except webbrowser.Error:
        is_shown = False
    if not is_shown:
        say(f"--open: no browser was found; open {address} yourself")
