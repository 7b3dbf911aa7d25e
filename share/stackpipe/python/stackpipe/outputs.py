"""The forms in which a profile is written.  The suffix of the file chooses the form, and so does --format.

A file that the user names is replaced if it is empty or has the same form.  Any other file is kept, unless the user gives
--force.  A name that the user did not choose never replaces a file: flamegraph.svg becomes flamegraph-2.svg.
"""
import contextlib
import itertools
import os
import re
import shlex
import subprocess
import zlib
from typing import BinaryIO, Callable, Iterator, NamedTuple, Sequence

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
    "html": Form(".html", re.compile(rb'(?is)<!doctype html>.*class="flamegraph-page"')),
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
    return (Option("output", "o", "FILE", f"the output (default {default}); its suffix selects the format: {suffixes}; several -o write several files",
                   repeats=True),
            Option("format", "", "FORM", f"the format: {', '.join(forms)}", choices=tuple(forms)), *_COMMON)


_COMMON = (
    Option("open", "", "", "open the output in the browser"),
    Option("force", "", "", "overwrite a file of another kind, or of the default name"),
    Option("verbose", "v", "", "print the pipelines that run, and all statistics"),
    Option("quiet", "q", "", "print only errors"),
)


#: For the commands that print figures.
JSON = Option("json", "", "", "also print the figures as JSON; the command's standard output goes to standard error")
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
    is_named: bool = True  #: false: the user did not choose the name, so it must not replace a file
    more: tuple["Output", ...] = ()  #: further files with the same profile

    @property
    def all(self) -> list["Output"]:
        """This output, and the further ones."""
        return [self._replace(more=()), *self.more]

    @property
    def is_folded(self) -> bool:
        """Is it made of folded text?"""
        return self.is_drawn or self.form == "folded"

    @property
    def is_drawn(self) -> bool:
        """Is it a flame graph?"""
        return self.form in DRAWN

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
        html = ["--html"] if self.form == "html" else []
        return [list(folding), *([["flamesvg", *html, *look]] if self.is_drawn else [])]


DRAWN = ("svg", "html")  #: the forms of a flame graph
#: Options of flamesvg for a graph of CPU time and waits.
HOTCOLD = ("--colors", "hotcold", "--countname", "us")
OPTIONS = options(tuple(FORMS))


def read_output(line: CommandLine, forms: Sequence[str] = tuple(FORMS), otherwise: str = "", default: str = DEFAULT,
                parts: Sequence[str] = ()) -> Output:
    """Returns the outputs that the command line asks for: the first, with the others as `more`.  `forms` are those that the command
    can write; `otherwise` is the form for unknown suffixes; `parts` are those that it writes beside each output.  Raises UsageError,
    or Failure if a file cannot be written or must not be replaced."""
    paths = line.values.get("output") or [default]
    wanted = line.last("format")
    if wanted and wanted not in FORMS:
        raise UsageError(f"--format: unknown format '{wanted}'; the formats are {', '.join(forms)}")
    if wanted and len(paths) > 1 and not any(path.endswith(FORMS[wanted].suffix) for path in paths):
        raise UsageError(f"--format: none of the outputs ends in {FORMS[wanted].suffix}")
    found = [one_output(line, path, forms, otherwise, wanted if len(paths) == 1 or path.endswith(FORMS[wanted or "svg"].suffix) else "")
             for path in paths]
    if len({os.path.abspath(output.path) for output in found}) < len(found):
        raise UsageError("--output: the same file twice")
    has_stdout = any(output.path in _STDOUT for output in found)
    if has_stdout and line.has("json"):
        raise UsageError("--json: standard output has the profile; give a file with -o")
    if has_stdout or line.has("json"):
        found = [output._replace(program_stdout=2) for output in found]
    if not line.has("output") and not line.has("force"):
        free = next(name for name in numbered(default) if not any(os.path.lexists(path) for path in
                    (name, *(found[0]._replace(path=name).beside(part).path for part in parts))))
        found = [found[0]._replace(path=free, is_named=False)]
    for output in found:
        check_replaceable(output, line.has("force"))
    return found[0]._replace(more=tuple(output._replace(opens=False) for output in found[1:]))


def one_output(line: CommandLine, path: str, forms: Sequence[str], otherwise: str, wanted: str) -> Output:
    """Returns the output to a path; `wanted`: its form, if it is not that of the suffix.  Raises UsageError."""
    form = wanted or form_of(path) or otherwise
    if not form:
        suffixes = dict.fromkeys(FORMS[name].suffix for name in forms)
        raise UsageError(f"--output: the suffix of '{path}' is not one of {' '.join(suffixes)}; choose one of these, or use --format")
    if form not in forms:
        raise UsageError(f"--output: '{path}' would be {form}, which this command does not write; it writes {', '.join(forms)}")
    return Output(path_of(path), form, line.has("open"), line.has("quiet"))


def must_differ(output: Output, names: Sequence[str]) -> None:
    """Raises UsageError if an output is one of these files, which are read."""
    for path, name in itertools.product([each.path for each in output.all], names):
        if os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name):
            raise UsageError(f"--output: '{name}' is one of the profiles; choose another file")


def numbered(path: str) -> Iterator[str]:
    """Yields a.svg, a-2.svg, a-3.svg ..."""
    yield path
    suffix = FORMS[form_of(path)].suffix
    for number in itertools.count(2):
        yield f"{path.removesuffix(suffix)}-{number}{suffix}"


def reserve(path: str) -> str:
    """Makes an empty file of this name, or of the first of its numbered names that is free; returns its path.  Raises OSError."""
    for name in numbered(path):
        with contextlib.suppress(FileExistsError):
            files.create(name).close()
            return name
    raise FileExistsError(path)


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


def write(tools: pipeline.Tools, output: Output, stages: Sequence[Sequence[str]], what: str = "", explains_nothing: bool = False,
          is_told: bool = False, takes_part: bool = False) -> bool:
    """Writes the output by a pipeline, reports its path, and opens it if the user wants that.  Returns whether there was
    anything to write.  Raises Failure.  `what` describes the result.  `explains_nothing`: the messages of the stages tell why there
    was nothing to write.  `is_told`: the messages of the stages have been printed.  `takes_part`: what can be read of a damaged
    recording is drawn."""
    path = output.path if output.is_named else reserve(output.path)
    result = 1
    try:
        with files.scratch() as said:
            result = pipeline.draw(tools, path, stages, said, takes_part)
            forward(tools, said, is_failure=result == 1, is_needed=result == 1 or (not is_told and (result == 0 or explains_nothing) and not output.is_quiet))
    finally:
        if result and not output.is_named:
            os.unlink(path)
    if result == 1:
        raise Failure(f"{path}: not written")
    if result == 0:
        tools.written.append(path)
    if result == 0 and tools.is_short:
        tools.told.append(f"{path}{what and f' ({what})'}")
    elif result == 0 and not output.is_quiet:
        say(f"wrote {path}{what and f': {what}'}")
    if result == 0 and output.opens and not files.is_written_in_place(path):
        show(path)
    return result == 0


def write_all(tools: pipeline.Tools, output: Output, symbolize: Sequence[str], stages_of: Callable[[Output], list[list[str]]],
              explains_nothing: bool = False, copy: Sequence[str] = ("cat",), takes_part: bool = False) -> bool:
    """Writes the output and the further ones from a stream: `symbolize` is the stage that adds symbols, and `stages_of` returns those
    that follow for an output.  Symbols are added once.  As write()."""
    if not output.more:
        return write(tools, output, [symbolize, *stages_of(output)], explains_nothing=explains_nothing, takes_part=takes_part)
    work = files.temporary_folder()
    try:
        named = os.path.join(work, "named.pe")
        with files.scratch() as said:
            result = pipeline.draw(tools, named, [symbolize], said, takes_part)
            forward(tools, said, is_needed=bool(result) or not output.is_quiet, is_failure=bool(result))
        if result:
            raise Failure(f"{output.path}: not written")
        return write_from(tools, output, named, stages_of, explains_nothing, copy, takes_part)
    finally:
        files.remove_folder(work)


def write_from(tools: pipeline.Tools, output: Output, named: str, stages_of: Callable[[Output], list[list[str]]],
               explains_nothing: bool = False, copy: Sequence[str] = ("cat",), takes_part: bool = False) -> bool:
    """As write_all(), from a stream with symbols.  `copy` is the stage that copies the part of it that is wanted."""
    for number, each in enumerate(output.all):
        fold, *draw = stages_of(each) or [copy]
        if not write(tools, each, [[*fold, named], *draw], explains_nothing=explains_nothing, is_told=number > 0, takes_part=takes_part):
            return False
    return True


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


def forward(tools: pipeline.Tools, said: BinaryIO, is_needed: bool, is_failure: bool = False) -> None:
    """Prints the messages of tools that a file has collected, if they are needed."""
    said.seek(0)
    text = text_of(said.read())
    if tools.is_short and not is_failure:
        tools.notes += text.splitlines(keepends=True) if is_needed else []
    elif is_needed:
        say_lines(once(text.splitlines(keepends=True)))


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
