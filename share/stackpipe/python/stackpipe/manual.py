"""stackpipe help: opens a manual page by man, or by mandoc.  On a machine with neither, it prints the page as plain text."""
import gzip
import os
import re
import textwrap
from typing import Sequence

from stackpipe.messages import Failure, print_out, text_of
from stackpipe.pipeline import Tools

_SECTIONS = "1357"
_SKIPPED = {".Dd", ".Dt", ".Os", ".Bl", ".El", ".Bd", ".Ed", ".Rs", ".Re", "."}
_BREAKS = {".Pp", ".Bl", ".El", ".Rs", ".It"}
# The macros of mdoc(7) whose arguments get a sign before, and after, them.
_SIGNS = {"Fl": ("-", ""), "Op": ("[", "]"), "Pq": ("(", ")"), "Ql": ("'", "'"), "Dq": ('"', '"'), "Po": ("(", ""), "Pc": ("", ")"),
          "Nd": ("- ", ""), "Ta": ("  ", "")}
_PLAIN = {"Ar", "Cm", "Pa", "Ev", "Dv", "Va", "Li", "Em", "Sy", "Sx", "Sq", "Ft", "Fa", "In", "Fn", "Vt", "No"}
_CLOSING = tuple(".,:;)]?!")
_ESCAPES = {"\\e": "\\", "\\&": "", "\\-": "-", "\\(dq": '"', "\\(ga": "`", "\\(mu": "×", "\\ ": " "}


def open_page(page: str, tools: Tools) -> int:
    """Opens the page of this name: in a source tree, the one there.  Returns the status; man and mandoc replace this process.
    Raises Failure."""
    path = path_of(page, tools.here)
    for words in (["man", "-l", path] if path and not path.endswith(".gz") else ["man", page], ["mandoc", "-a", path] if path else []):
        if words and (program := tools.which(words[0])):
            try:
                os.execve(program, words, tools.users)
            except OSError as error:
                raise Failure(f"{words[0]}: {error.strerror}") from None
    if not path:
        raise Failure("help: no manual pages are installed; each command has --help: stackpipe record --help")
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        print_out(text_of_page(text_of(file.read())))
    return 0


def path_of(page: str, here: str) -> str:
    """Returns the path of a page of the source tree or the installation; empty if it has none."""
    files = [os.path.join(here, "../man", f"{page}.{section}") for section in _SECTIONS]
    files += [os.path.join(here, "../share/man", f"man{section}", f"{page}.{section}{packed}") for section in _SECTIONS for packed in ("", ".gz")]
    return next((file for file in files if os.path.isfile(file)), "")


def text_of_page(source: str) -> str:
    """Returns a page, which is in the language of mdoc(7), as plain text.  It handles only what our pages use."""
    name = section = ""
    out: list[str] = []
    paragraph: list[str] = []
    is_literal = False

    def end_paragraph(indent: str = "    ") -> None:
        out.extend(textwrap.wrap(" ".join(paragraph), 80, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False,
                                 break_long_words=False))
        paragraph.clear()

    for line in source.splitlines():
        if line.startswith('.\\"'):
            continue
        macro, _, rest = line.partition(" ")
        if not line.startswith("."):
            text = _unescape(line)
            if is_literal:
                out.append(f"      {text}")
            else:
                paragraph.append(text)
            continue
        if macro == ".Nm" and not name:
            name = rest
        if macro in _BREAKS or macro in (".Sh", ".Ss", ".Bd", ".Ed", ".Dl") or (macro == ".Nm" and section == "SYNOPSIS"):
            end_paragraph()
            out += [""] if macro in (".Pp", ".It", ".Sh", ".Ss") and out and out[-1] else []
        if macro in (".Bd", ".Ed"):
            is_literal = macro == ".Bd"
        if macro in _SKIPPED or macro == ".Pp":
            continue
        if macro in (".Sh", ".Ss"):
            section = rest
            out.append(("" if macro == ".Sh" else "  ") + _unescape(rest))
        elif macro == ".Dl":
            out.append(f"      {_unescape(rest)}")
        elif macro == ".It":
            paragraph.append(_inline(_words(rest), name))
            end_paragraph("  ")
        else:
            paragraph.append(_inline(_words(rest if macro.startswith(".%") else line[1:]), name))
    end_paragraph()
    return "\n".join(out) + "\n"


def _words(text: str) -> list[str]:
    """Splits the arguments of a macro, which may be in double quotes."""
    return [word[1:-1] if word[:1] == '"' and word[-1:] == '"' and len(word) > 1 else word
            for word in re.findall(r'"[^"]*"|(?:\\ |\S)+', text)]


def _unescape(text: str) -> str:
    return re.sub(r"\\(?:\([a-z]{2}|.)", lambda match: _ESCAPES.get(match[0], match[0]), text)


def _inline(words: Sequence[str], name: str) -> str:
    """Returns the text of a line of macros and their arguments."""
    text, closing, glue = "", "", False
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "Nm":
            word = left.pop(0) if left and left[0][:1].islower() else name
        elif word == "Xr" and len(left) > 1:
            word = f"{left.pop(0)}({left.pop(0)})"
        elif word in _SIGNS:
            sign, end = _SIGNS[word]
            text += ("" if glue or not text else " ") + sign
            closing, glue = end + closing, True
            continue
        elif word in _PLAIN:
            continue
        elif word == "Ns":
            glue = True
            continue
        if word in _CLOSING and all(other in _CLOSING for other in left):
            text, closing = text + closing, ""
        joins = glue or not text or word in _CLOSING
        text += ("" if joins else " ") + _unescape(word)
        glue = word in "(["
    return text + closing
