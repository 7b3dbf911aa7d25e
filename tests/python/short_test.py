"""Tests what a recording prints without -v."""
import contextlib
import unittest
from unittest import mock

from stackpipe import outputs, recorder, short
from stackpipe.pipeline import Tools

STRIPPED = "pe-symbolize: '/a' (84.6 % of the samples), '/b' (3.0 % of the samples) are stripped, so frames have no names: install their -dbgsym packages\n"
NAMELESS = "pe-symbolize: raw.pe: 947 samples; 3390 of 15141 frames without a name (22.4 %): 3390 in files stripped of symbols\n"
LOST = "pe-record: 12 of 100 samples were lost: record with --mmap-pages 512\n"
INCOMPLETE = "pe-record: 20.0 % of stacks are incomplete; most ended in x\n"


class Short(unittest.TestCase):
    def test_one_note_is_the_most_important(self):
        self.assertEqual(short.most_useful([]), "")
        self.assertEqual(short.most_useful(["pe-record: no hardware counters here: sampling cpu-clock\n"]), "")
        self.assertEqual(short.most_useful([INCOMPLETE]), INCOMPLETE)
        self.assertEqual(short.most_useful([INCOMPLETE, INCOMPLETE, LOST]), LOST.rstrip() + " (1 more note: -v)\n")
        self.assertEqual(short.most_useful(["x: odd\n", INCOMPLETE, LOST, "pe-record: 'sh' killed by signal 9 (SIGKILL)\n"]),
                         "pe-record: 'sh' killed by signal 9 (SIGKILL) (3 more notes: -v)\n")

    def test_stripped_files_are_one_line(self):
        line = "pe-symbolize: 22.4 % of frames have no name, in 2 stripped files: -v lists them and the packages with their symbols\n"
        self.assertEqual(short.most_useful([STRIPPED, NAMELESS]), line)
        self.assertEqual(short.most_useful([STRIPPED, NAMELESS, LOST]), LOST.rstrip() + " (1 more note: -v)\n")
        self.assertEqual(short.most_useful([NAMELESS]), NAMELESS)  # in files that are gone

    def printed(self, is_wanted, *, fails=False):
        """Returns the lines that a recording with notes and two outputs prints."""
        tools, said = Tools("", {"PATH": ""}), []
        summary = recorder.Summary({"result": "recorded", "text": "pe-record: 9 samples"}, {"samples": 9})
        with mock.patch("stackpipe.recorder.say_lines", said.append), mock.patch("stackpipe.short.say_lines", said.append), \
                mock.patch("stackpipe.outputs.say_lines", said.append), mock.patch("stackpipe.short.say", said.append), \
                mock.patch("stackpipe.outputs.say", said.append), mock.patch("stackpipe.outputs.pipeline.draw", self.drawn(fails)), \
                contextlib.suppress(outputs.Failure), short.lines(tools, is_wanted):
            recorder.tell(tools, recorder.Recording(0, False, [summary]), INCOMPLETE + "pe-record: 9 samples\n")
            for path in ("a.svg", "b.json"):
                outputs.write(tools, outputs.Output(path, "svg"), [])
        return said

    @staticmethod
    def drawn(fails):
        def draw(tools, path, stages, said, takes_part):
            said.write(NAMELESS.encode())
            return 1 if fails else 0
        return draw

    def test_a_recording_prints_three_lines(self):
        self.assertEqual(self.printed(True), ["pe-record: 9 samples\n", INCOMPLETE.rstrip() + " (1 more note: -v)\n", "wrote a.svg, b.json"])

    def test_what_the_user_asked_for_is_printed_as_well(self):
        tools, calls = Tools("", {"PATH": ""}), "stackfold: raw.pe: handle: 3 of 30 calls took longer than 50 ms\n"
        with mock.patch("stackpipe.short.say_lines") as said, short.lines(tools, True):
            tools.notes += [INCOMPLETE, calls, calls]
        said.assert_called_once_with(calls + INCOMPLETE)

    def test_all_lines_are_printed_with_verbose(self):
        self.assertEqual(self.printed(False), [INCOMPLETE + "pe-record: 9 samples\n", NAMELESS, "wrote a.svg", NAMELESS, "wrote b.json"])

    def test_a_failure_prints_its_reason(self):
        self.assertEqual(self.printed(True, fails=True), ["pe-record: 9 samples\n", NAMELESS, INCOMPLETE])
