"""Tests that manual pages open by the programs that there are, and are readable without any."""
import contextlib
import glob
import gzip
import io
import os
import re
import tempfile
import unittest
from unittest import mock

from stackpipe import manual, pipeline
from stackpipe.messages import Failure

_PAGES = os.path.join(os.path.dirname(__file__), "../../man")
_PAGE = r'''.\" a comment
.Dd November 25, 2026
.Dt PROG 1
.Os
.Sh NAME
.Nm prog
.Nd do it
.Sh DESCRIPTION
.Nm
reads
.Ar FILE ,
as
.Xr other 5
says
.Pq see Ql a\eb .
.Bl -tag -width Ds
.It Fl o , Fl Fl output Ar FILE
Write there.
.It Op Fl x Ar N
Twice.
.El
.Bd -literal
  as  it is
.Ed
.Dl prog -o 'x y'
'''
_TEXT = r"""NAME
    prog - do it

DESCRIPTION
    prog reads FILE, as other(5) says (see 'a\b').

  -o, --output FILE
    Write there.

  [-x N]
    Twice.
        as  it is
      prog -o 'x y'
"""


class Manual(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        os.makedirs(f"{self.path}/bin")
        os.makedirs(f"{self.path}/share/man/man1")
        self.tools = pipeline.Tools(f"{self.path}/bin", {"PATH": f"{self.path}/bin"})

    def install(self, name):
        with open(f"{self.path}/bin/{name}", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(f"{self.path}/bin/{name}", 0o755)

    def opened(self):
        """Returns the words of the program that opens the page prog, or the text that is printed."""
        with mock.patch("os.execve", side_effect=SystemExit) as execute, mock.patch.object(manual, "print_out") as printed:
            with contextlib.suppress(SystemExit):
                manual.open_page("prog", self.tools)
        return execute.call_args.args[1] if execute.called else printed.call_args.args[0]

    def test_man_then_mandoc_then_text(self):
        page = f"{self.path}/bin/../share/man/man1/prog.1.gz"
        with gzip.open(page, "wb") as file:
            file.write(_PAGE.encode())
        self.assertEqual(self.opened(), _TEXT)
        self.install("mandoc")
        self.assertEqual(self.opened(), ["mandoc", "-a", page])
        self.install("man")
        self.assertEqual(self.opened(), ["man", "prog"])

    def test_without_pages_it_names_what_there_is(self):
        with self.assertRaisesRegex(Failure, "no manual pages are installed; each command has --help"):
            manual.open_page("prog", self.tools)

    def test_no_page_shows_a_macro_or_an_escape(self):
        pages = glob.glob(f"{_PAGES}/*.[1-7]")
        self.assertGreater(len(pages), 10)
        for page in pages:
            with io.open(page, encoding="utf-8") as file:
                text = manual.text_of_page(file.read())
            self.assertRegex(text, "^NAME\n    [^.]+ - ")
            self.assertIsNone(re.search(r"\\[&(e]|(?m:^\.[A-Z%])|\b(Fl|Ar|Xr|Op|Pq|Ql|Cm|Nm|Sx|Ns)\b", text), page)


if __name__ == "__main__":
    unittest.main()
