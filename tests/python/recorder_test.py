"""Tests how summaries of recorders are read."""
import os
import sys
import tempfile
import unittest

from stackpipe import pipeline, recorder
from stackpipe.messages import Failure


def read(text):
    return recorder.read_summary(text.encode())


class Reading(unittest.TestCase):
    def test_figures_of_each_recorder(self):
        for noun in ("samples", "waits", "allocations"):
            summary = read(f'{{"tool":"x","result":"recorded","text":"x: y","{noun}":70,"lost":5,"seconds":1.25}}\n')
            self.assertEqual((summary.count, summary.figures["lost"], summary.figures["seconds"]), (70, 5, 1.25))
            self.assertEqual((summary.is_whole, summary.is_empty), (True, False))

    def test_results(self):
        for result, is_whole in (("recorded", True), ("empty", True), ("incomplete", True), ("denied", False), ("failed", False), ("new", False)):
            summary = read(f'{{"result":"{result}","samples":0}}')
            self.assertEqual((summary.is_whole, summary.is_empty), (is_whole, is_whole), result)

    def test_a_failure_is_told_once_more(self):
        self.assertEqual(read('{"result":"failed","text":"pe-record: x: No space left on device"}').failure, "pe-record: x: No space left on device\n")
        for text in ('{"result":"empty","text":"pe-record: nothing was recorded"}', '{"result":"failed"}', ""):
            self.assertEqual(read(text).failure, "", text)

    def test_what_others_have_written_into_the_pipe(self):
        for text in ("", "\n", "x", "{", "[1]", "7", "null", '"x"', "[" * 60000, '{"samples":1e999}x', "\0", "\udcff".encode("utf-8", "surrogateescape").decode("latin-1")):
            self.assertEqual(read(text), recorder.Summary(), text[:20])
        for value in ('"7"', "-1", "null", "[]", "{}", "NaN", "Infinity", "1e300", "-Infinity"):
            summary = read(f'{{"result":"recorded","text":{value},"samples":{value},"lost":{value}}}')
            self.assertEqual((summary.count, *summary.figures), (0,), value)
            self.assertEqual(summary.without_text(["7 x"]), ["7 x"] if value != '"7"' else [], value)
        self.assertFalse(read('{"result":["recorded"]}').is_whole)

    def test_the_last_line_counts(self):
        self.assertEqual(read('{"samples":9}\n{"result":"recorded","samples":7}\n').count, 7)

    def test_the_line_for_people_is_found_even_if_its_text_is_cut(self):
        lines = ["offcpu: a note\n", "offcpu: nothing was recorded: the target slept\n"]
        for text in ("offcpu: nothing was recorded: the target slept", "offcpu: nothing was rec"):
            self.assertEqual(read(f'{{"text":"{text}"}}').without_text(lines), lines[:1])
        self.assertEqual(recorder.Summary().without_text(lines), lines)


class Pipes(unittest.TestCase):
    def recorded(self, action, **more):
        """Runs a recorder that does this with the descriptor `fd`; returns its status and summary."""
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/recorder", "w", opener=lambda path, flags: os.open(path, flags, 0o700), encoding="utf-8") as file:
                file.write(f"#!{sys.executable}\nimport os, subprocess, sys\nfd = int(sys.argv[sys.argv.index('--summary') + 1])\n{action}\n")
            started = recorder.start(pipeline.Tools("/nowhere", {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}), ["recorder"], **more)
            return pipeline.wait_for(started.process), started.summary

    def test_each_recorder_has_a_pipe_of_its_own(self):
        for as_user in (False, True):
            self.assertEqual(self.recorded("os.write(fd, b'{\"samples\":3}\\n'); sys.exit(9)", as_user=as_user), (9, recorder.Summary({}, {"samples": 3})))

    def test_a_recorder_that_is_killed_has_no_summary(self):
        self.assertEqual(self.recorded("os.kill(os.getpid(), 9)"), (137, recorder.Summary()))

    def test_nobody_waits_for_what_a_recorder_has_left_behind(self):
        action = "print(subprocess.Popen(['sleep', '1000'], pass_fds=[fd], stdout=subprocess.DEVNULL).pid, flush=True); os.write(fd, b'{\"waits\":1}')"
        with tempfile.TemporaryFile() as printed:
            self.assertEqual(self.recorded(action, stdout=printed), (0, recorder.Summary({}, {"waits": 1})))
            printed.seek(0)
            os.kill(int(printed.read()), 9)

    def test_no_descriptor_is_left_open(self):
        before = os.listdir("/proc/self/fd")
        self.recorded("pass")
        with self.assertRaises(Failure):
            recorder.start(pipeline.Tools("/nowhere", {"PATH": "/nowhere"}), ["recorder"])
        self.assertEqual(os.listdir("/proc/self/fd"), before)


if __name__ == "__main__":
    unittest.main()
