"""Tests which form an output has, and which files it may replace."""
import contextlib
import gzip
import os
import re
import tempfile
import unittest
from unittest import mock

from stackpipe import options, outputs
from stackpipe.messages import Failure, UsageError


def read(*arguments, **more):
    return outputs.read_output(options.read(outputs.OPTIONS, arguments), **more)


class Outputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def made(self, name, content):
        with open(name, "wb") as file:
            file.write(content)
        return name

    def test_the_suffix_chooses_the_form_unless_the_user_does(self):
        for name, form in (("a.svg", "svg"), ("a.html", "html"), ("a.folded", "folded"), ("a.pe", "pe"), ("a.pb.gz", "pprof"), ("a.json", "speedscope"), ("-", "svg")):
            self.assertEqual(read("-o", name).form, form)
        self.assertEqual(read("-o", "a.json", "--format", "firefox").form, "firefox")
        self.assertEqual(read("-o", "a.txt", "--format", "folded").form, "folded")
        self.assertEqual(read(), ("flamegraph.svg", "svg", False, False, None, False, ()))

    def test_several_outputs_are_all_written(self):
        found = read("-o", "a.svg", "-o", "b.json", "--open")
        self.assertEqual([(each.path, each.form, each.opens, each.more) for each in found.all], [("a.svg", "svg", True, ()), ("b.json", "speedscope", False, ())])
        self.assertEqual([each.form for each in read("-o", "a.svg", "-o", "b.json", "--format", "firefox").all], ["svg", "firefox"])
        self.assertEqual([each.program_stdout for each in read("-o", "a.svg", "-o", "-").all], [2, 2])
        with self.assertRaisesRegex(UsageError, "^--format: none of the outputs ends in .json "):
            read("-o", "a.svg", "-o", "b.pe", "--format", "firefox")
        with self.assertRaisesRegex(UsageError, "^--output: the same file twice "):
            read("-o", "a.svg", "-o", "./a.svg")
        with self.assertRaisesRegex(Failure, "^b.json: the file exists and is not one of "):
            read("-o", "a.svg", "-o", self.made("b.json", b'{"my": "config"}'))

    def test_a_name_that_the_user_did_not_choose_replaces_no_file(self):
        graph = b'<svg class="flamegraph">'
        self.made("flamegraph.svg", graph)
        os.symlink("nothing", "flamegraph-2.svg")
        self.assertEqual(read().path, "flamegraph-3.svg")
        self.assertEqual(read("--force").path, "flamegraph.svg")
        self.assertEqual(read("-o", "flamegraph.svg").path, "flamegraph.svg")
        self.made("flamegraph-3-leaks.svg", graph)
        self.assertEqual(read(parts=["leaks"]).path, "flamegraph-4.svg")
        self.assertEqual(read(default="diff.svg").path, "diff.svg")

    def test_of_two_commands_that_chose_one_name_neither_replaces_the_file_of_the_other(self):
        first, second = read(), read()
        with mock.patch.object(outputs.pipeline, "draw", side_effect=lambda tools, path, *_: self.made(path, path.encode()) and 0), \
                mock.patch.object(outputs, "say"):
            self.assertTrue(outputs.write(mock.Mock(written=[], is_short=False), first, []))
            self.assertTrue(outputs.write(mock.Mock(written=[], is_short=False), second, []))
        with open("flamegraph.svg", "rb") as one, open("flamegraph-2.svg", "rb") as two:
            self.assertEqual((one.read(), two.read()), (b"flamegraph.svg", b"flamegraph-2.svg"))

    def test_a_failure_leaves_no_file_of_a_chosen_name(self):
        for result in (1, 2):
            with mock.patch.object(outputs.pipeline, "draw", return_value=result), contextlib.suppress(Failure):
                self.assertFalse(outputs.write(mock.Mock(is_short=False), read(), []))
        self.assertEqual(os.listdir(), [])

    def test_root_frames_are_those_of_stackfold(self):
        self.assertEqual(outputs.root_of(options.read([outputs.ROOT], [])), [])
        self.assertEqual(outputs.root_of(options.read([outputs.ROOT], ["--root", "tree"])), ["--root", "tree"])
        with self.assertRaisesRegex(UsageError, "^--root: neither process, thread, command nor tree: 'parent' "):
            outputs.root_of(options.read([outputs.ROOT], ["--root=parent"]))

    def test_refuses_unknown_forms(self):
        for wanted, arguments in (("--output: the suffix of 'main.c' is not one of .svg .html .folded .pe .pb.gz .json; ", ["-o", "main.c"]),
                                  ("--format: unknown format 'png'; the formats are svg, ", ["--format", "png"])):
            with self.assertRaises(UsageError) as caught:
                read(*arguments)
            self.assertTrue(str(caught.exception).startswith(wanted), str(caught.exception))
        with self.assertRaisesRegex(UsageError, "'a.pe' would be pe, which this command does not write; it writes svg, folded"):
            read("-o", "a.pe", forms=("svg", "folded"))

    def test_no_program_parses_the_path_as_an_option(self):
        self.assertEqual(read("-o", "-x.svg").path, "./-x.svg")

    def test_replaces_files_of_the_same_form(self):
        for name, content in (("a.svg", b'<?xml version="1.0"?>\n<svg class="flamegraph">'), ("a.svg", b""),
                              ("a.svg", b'<svg onload="init(evt)">'), ("a.html", b'<!DOCTYPE html>\n<html lang="en" class="flamegraph-page"><head>'), ("a.folded", b"main 1 2\nlong name without its end"),
                              ("a.folded", b"main;a b 5\nmain 7\n"), ("a.folded", b"# rate: 99\nmain 1.5\n"),
                              ("a.pe", b"PERFILE2\x10"), ("a.pb.gz", gzip.compress(b"\n\x04")), ("a.json", b'{"a": 1, "exporter":"stackpipe"'),
                              ("a.json", b'{"meta":{"product":"stackpipe"')):
            self.assertEqual(read("-o", self.made(name, content)).path, name)

    def test_keeps_other_files(self):
        for name, content in (("a.svg", b"<svg><title>our logo</title></svg>"), ("a.svg", b"<svg><title>Our flame graphs</title></svg>"),
                              ("a.html", b"<!DOCTYPE html><html><body>Our <svg/></body></html>"), ("a.folded", b"a letter\n"), ("a.folded", b"Buy milk 3\nand more\n"), ("a.pe", b"\x7fELF"), ("a.pb.gz", b"text"),
                              ("a.pb.gz", gzip.compress(b"important")), ("a.json", b'{"my": "config"}')):
            with self.subTest(name=name, content=content), self.assertRaisesRegex(Failure, f"^{name}: the file exists and is not one of .* -o, or use --force$"):
                read("-o", self.made(name, content))
            self.assertEqual(read("--force", "-o", name).path, name)

    def test_refuses_what_cannot_be_written(self):
        os.mkdir("b.svg")
        for name, why in (("b.svg", "b.svg: Is a directory"), ("no/folder.svg", "no/folder.svg: No such file or directory")):
            with self.assertRaisesRegex(Failure, f"^{why}; choose another file with -o$"):
                read("-o", name)

    def test_a_recording_that_was_not_drawn_is_kept(self):
        os.mkdir("work")
        self.made("work/raw.pe", b"samples")
        self.made("work/empty.pe", b"")
        with mock.patch.dict(os.environ, TMPDIR=os.getcwd()), mock.patch.object(outputs, "say") as said:
            with self.assertRaisesRegex(Failure, "full"):
                with outputs.keeping("work", ["raw.pe", "empty.pe", "none.pe"]):
                    raise Failure("x.svg: the disk is full")
            kept = re.fullmatch(r"the recording is kept; to draw it: pe-symbolize (\S+/raw\.pe) \| stackfold --annotate \| flamesvg -o FILE\.svg",
                                said.call_args.args[0])
            self.assertTrue(kept, said.call_args)
            with open(kept[1], "rb") as file:
                self.assertEqual(file.read(), b"samples")
            with outputs.keeping("work", ["empty.pe"]):  # nothing failed
                pass
        self.assertEqual(os.listdir("work"), ["empty.pe"])

    def test_each_kept_recording_has_the_command_that_draws_it(self):
        os.mkdir("work")
        for name in ("on.pe", "off.pe"):
            self.made(f"work/{name}", b"samples")
        with mock.patch.dict(os.environ, TMPDIR=os.getcwd()), mock.patch.object(outputs, "say") as said:
            with self.assertRaisesRegex(Failure, "full"):
                with outputs.keeping("work", ["on.pe", "off.pe"], "stackfold --event peak-bytes"):
                    raise Failure("x.svg: the disk is full")
        for call, name in zip(said.call_args_list, ("on", "off"), strict=True):
            self.assertRegex(call.args[0], rf"to draw it: pe-symbolize \S+/{name}\.pe \| stackfold --event peak-bytes \| flamesvg -o FILE-{name}\.svg$")

    def test_advice_is_given_once(self):
        self.assertEqual(outputs.once(["a: 7 files are stripped: link them\n", "b: 5 samples\n", "c: 9 files are stripped: link them\n"]),
                         "a: 7 files are stripped: link them\nb: 5 samples\n")

    def test_parts_are_beside_the_whole(self):
        self.assertEqual(read("-o", "a.pb.gz").beside("leaks").path, "a-leaks.pb.gz")
        self.assertEqual(read("-o", "a.txt", "--format", "svg").beside("leaks").path, "a.txt-leaks")

    def test_the_operand_of_an_older_command_is_the_output(self):
        line = options.read((*outputs.OPTIONS, options.HELP), ["a.svg", "--", "b"])
        self.assertEqual(outputs.with_operand(line).last("output"), "a.svg")
        self.assertEqual(outputs.with_operand(line).operands, [])
