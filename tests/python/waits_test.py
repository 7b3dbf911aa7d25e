"""Tests how waits and hotcold parse their command lines, and how they convert folded text."""
import tempfile
import unittest

from stackpipe import hotcold, options, outputs, pipeline, waits
from stackpipe.messages import UsageError


class Folding(unittest.TestCase):
    def test_nanoseconds_become_microseconds(self):
        self.assertEqual(waits.in_microseconds(b"sh;main", b"1500600"), b"sh;main 1501\n")


    def test_the_text_states_its_unit(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
            folded = f"{folder}/stacks.folded"
            self.assertEqual(waits.fold({}, folded, pipeline.Tools("/nowhere"), said), 0)
            with open(folded, "rb") as file:
                self.assertEqual(file.read(), b"# unit: us\n")


class Signals(unittest.TestCase):
    def test_names_the_signal_if_it_has_a_name(self):
        self.assertEqual(waits.signal_text("./a", 11), "'./a' killed by signal 11 (SIGSEGV)")
        self.assertEqual(waits.signal_text("./a", 40), "'./a' killed by signal 40")


class Request(unittest.TestCase):
    def read(self, *arguments):
        return waits.read_request(outputs.with_operand(options.read(hotcold.OPTIONS, arguments)), "hotcold out.svg -p PID")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.svg = folder.name + "/a.svg"

    def test_a_command_and_its_limit(self):
        request = self.read(self.svg, "-d", "1.5", "--", "b", "-d")
        self.assertEqual((request.output.path, request.target.command, request.target.limit, request.target.options),
                         (self.svg, ["b", "-d"], ["-d", "1.5"], []))

    def test_commands_are_sampled_more_often_than_what_runs_already(self):
        self.assertEqual([self.read(self.svg, *target).hz for target in (("--", "b"), ("-p", "1"), ("-F", "49", "--", "b"))], ["997", "99", "49"])

    def test_refuses_wrong_command_lines(self):
        svg = self.svg
        for wanted, arguments in (("nothing to record", [svg]),
                                  ("nothing to record", [svg, "--"]),
                                  ("--pid, a command: choose one of them", [svg, "-p", "1", "--", "b"]),
                                  ("'b': put -- before the command to record", [svg, "b", "--", "c"]),
                                  (f"--output, '{svg}': choose one of them", [svg, "-o", svg, "--", "c"]),
                                  ("--output: 'a.pe' would be pe, which this command does not write", ["a.pe", "--", "b"]),
                                  ("--keep: no folder '/nowhere'", [svg, "--keep", "/nowhere", "--", "b"])):
            with self.subTest(arguments=arguments), self.assertRaises(UsageError) as caught:
                self.read(*arguments)
            self.assertTrue(str(caught.exception).startswith(wanted), str(caught.exception))
