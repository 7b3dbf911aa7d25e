"""Tests how waits and hotcold parse their command lines, and when all time is sampled."""
import tempfile
import unittest

from stackpipe import hotcold, options, outputs, recorder, waits
from stackpipe.messages import UsageError


class Engines(unittest.TestCase):
    def has_no_waits(self, summary, is_interrupted=False):
        return waits.has_no_waits(recorder.Recording(1, is_interrupted, [recorder.read_summary(summary.encode())]))

    def test_all_time_is_sampled_where_the_kernel_gives_no_waits(self):
        for result in ("denied", "failed"):
            self.assertTrue(self.has_no_waits(f'{{"result":"{result}","lacks":"counters"}}'))

    def test_nothing_is_recorded_twice(self):
        for result in ("recorded", "empty", "incomplete"):
            self.assertFalse(self.has_no_waits(f'{{"result":"{result}","lacks":"counters"}}'), result)
        self.assertFalse(self.has_no_waits('{"result":"denied","lacks":"counters"}', is_interrupted=True))

    def test_words_of_messages_decide_nothing(self):
        for lacks in ('', ',"lacks":"disk"', ',"lacks":true', ',"lacks":["counters"]'):
            self.assertFalse(self.has_no_waits(f'{{"result":"denied","text":"pe-record: perf_event_open(2) is blocked here"{lacks}}}'), lacks)


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

    def test_writes_all_forms(self):
        self.assertEqual(self.read(self.svg[:-3] + "pe", "--", "b").output.form, "pe")

    def test_commands_are_sampled_more_often_than_what_runs_already(self):
        self.assertEqual([self.read(self.svg, *target).hz for target in (("--", "b"), ("-p", "1"), ("-F", "49", "--", "b"))], ["997", "99", "49"])

    def test_refuses_wrong_command_lines(self):
        svg = self.svg
        for wanted, arguments in (("nothing to record", [svg]),
                                  ("nothing to record", [svg, "--"]),
                                  ("--pid, a command: choose one of them", [svg, "-p", "1", "--", "b"]),
                                  ("'b': put -- before the command to record", [svg, "b", "--", "c"]),
                                  (f"--output, '{svg}': choose one of them", [svg, "-o", svg, "--", "c"]),
                                  ("--keep: no folder '/nowhere'", [svg, "--keep", "/nowhere", "--", "b"])):
            with self.subTest(arguments=arguments), self.assertRaises(UsageError) as caught:
                self.read(*arguments)
            self.assertTrue(str(caught.exception).startswith(wanted), str(caught.exception))
