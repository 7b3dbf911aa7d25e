"""Tests the loop of a watch with tools that only pretend: what it writes, removes, and survives."""
import os
import signal
import subprocess
import tempfile
import unittest
import unittest.mock

from stackpipe import options, pipeline
from stackpipe.messages import Failure, UsageError
from stackpipe.watch import command, draw, dumps, triggers, watched, watching
from stackpipe.watch.keeper import Plan
from stackpipe.watch.watching import Settings
from watched_test import RECORDER, until

# Stands for `stackpipe watch --dump`: writes its words into the output.
DRAWER = """#!/bin/sh
[ ! -e "$FAKE/cannot" ] || { echo 'stackpipe: cannot draw' >&2; exit 1; }
[ ! -e "$FAKE/hang" ] || { touch "$FAKE/hangs"; exec sleep 1000; }
words=$*
while [ "$1" != -o ]; do shift; done
echo "$words" >"$2"
"""


class Condition(triggers.Trigger):
    """A trigger for a test."""

    reason = "test"
    every_s = 0.01

    def __init__(self):
        super().__init__()
        self.text = ""

    def check(self):
        text, self.text = self.text, ""
        return text


class Watching(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name, text in (("pe-record", RECORDER), ("stackpipe", DRAWER)):
            path = os.path.join(self.folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o700)
        self.touch("mode", "run")
        self.tools = pipeline.Tools(self.folder, {**os.environ, "PATH": self.folder + ":" + os.environ["PATH"], "FAKE": self.folder})
        self.said = []
        for patch in (unittest.mock.patch("stackpipe.messages.say", self.said.append), unittest.mock.patch("stackpipe.watch.keeper._FIRST_PAUSE_S", 0.02),
                      unittest.mock.patch("stackpipe.watch.keeper._LONGEST_PAUSE_S", 0.02),
                      unittest.mock.patch("stackpipe.watch.watching._LOOK_S", 0.02), unittest.mock.patch("stackpipe.watch.dumps.LATE_S", 0.0),
                      unittest.mock.patch("stackpipe.watch.dumps._POLL_S", 0.01)):
            patch.start()
            self.addCleanup(patch.stop)
        self.condition = Condition()
        self.arrived = []

    def touch(self, name, text=""):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def watching(self, target=None, **settings):
        target = target or watched.Watched("pid", str(os.getpid()))
        target.look()
        given = {"before_s": 2, "after_s": 0, "rest_s": 0, **settings}
        one = watching.Watching(Settings("w", **given), target, Plan(), [self.condition], os.path.join(self.folder, "base"), self.tools)
        self.addCleanup(one._keeper.end_recorder)
        return one

    def steps(self, one, condition):
        until(condition, lambda: self.assertTrue(one._go_on(self.arrived)))

    def dumps(self):
        try:
            return sorted(os.listdir(self.path("dumps")))
        except FileNotFoundError:
            return []

    def path(self, *names):
        return os.path.join(self.folder, "base", "w", *names)

    def has_said(self, text):
        return any(text in line for line in self.said)

    def trigger(self, one, count):
        """Triggers, and waits until there have been this many dumps."""
        self.condition.text = "happened"
        self.steps(one, lambda: one._dumps.written == count)

    def test_a_trigger_writes_one_file_that_covers_it(self):
        one = self.watching()
        self.trigger(one, 1)
        name, = self.dumps()
        self.assertRegex(name, r"^w-[0-9]{8}T[0-9]{6}-test\.svg$")
        with open(self.path("dumps", name), encoding="utf-8") as file:
            words = file.read().split()
        begin, end = map(float, words[words.index("--time") + 1].split(","))
        self.assertAlmostEqual(end - begin, 2, places=5)
        self.assertEqual(words[:3], ["watch", "--dump", "w"])
        self.assertTrue(self.has_said("w: test: happened"))
        self.assertTrue(self.has_said(f"w: test: wrote {self.path('dumps', name)}"))

    def test_the_latest_files_stay_and_those_of_people_too(self):
        one = self.watching(most_files=2)
        os.makedirs(self.path("dumps"), 0o700, exist_ok=True)
        person = self.path("dumps", "w-20200101T000000-test.svg")
        with open(person, "w", encoding="utf-8") as file:
            file.write("mine")
        for count in range(1, 6):
            self.trigger(one, count)
        self.assertEqual(len(self.dumps()), 3)
        self.assertIn("w-20200101T000000-test.svg", self.dumps())
        self.assertEqual(len(set(self.dumps())), 3)

    def test_a_trigger_rests(self):
        one = self.watching(rest_s=3600)
        self.trigger(one, 1)
        self.condition.text = "happened again"
        self.steps(one, lambda: not self.condition.text)
        self.assertTrue(one._dumps.is_idle)
        self.assertFalse(self.has_said("happened again"))

    def test_sigusr1_writes_a_file(self):
        one = self.watching()
        self.arrived.append(signal.SIGUSR1)
        self.steps(one, lambda: one._dumps.written == 1)
        self.assertRegex(self.dumps()[0], r"-dump\.svg$")

    def test_sigterm_ends_the_recorder_and_returns_0(self):
        one = self.watching()
        self.steps(one, lambda: one._keeper.pid)
        pid = one._keeper.pid
        self.arrived.append(signal.SIGTERM)
        reading, writing = os.pipe()
        try:
            self.assertEqual(one.run(reading, self.arrived), 0)
        finally:
            os.close(reading)
            os.close(writing)
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)

    def test_what_is_not_drawn_at_the_end_can_be_drawn_by_hand(self):
        one = self.watching(after_s=1000)
        self.condition.text = "happened"
        self.steps(one, lambda: not one._dumps.is_idle)
        one._dumps.stop()
        self.assertTrue(self.has_said("w: test: not drawn; to draw it: stackpipe watch --dump w --time "))

    def test_a_drawing_that_fails_or_hangs_is_a_line(self):
        one = self.watching()
        self.touch("cannot")
        self.condition.text = "happened"
        self.steps(one, lambda: one._dumps.failed == 1)
        self.assertTrue(self.has_said("w: test: not drawn: stackpipe: cannot draw"))
        os.unlink(os.path.join(self.folder, "cannot"))
        self.touch("hang")
        with unittest.mock.patch("stackpipe.watch.dumps._MOST_S", 0.1):
            self.condition.text = "happened"
            self.steps(one, lambda: one._dumps.failed == 2)
        os.unlink(os.path.join(self.folder, "hang"))
        self.trigger(one, 1)

    def test_drafts_of_a_drawing_that_was_killed_go(self):
        os.makedirs(self.path("dumps"), 0o700)
        os.chmod(self.path(), 0o700)
        for name in ("w-20260101T000000-test.svg.abcDEF", "w-20260101T000000-test.svg", "person.svg.abcDEF"):
            with open(self.path("dumps", name), "w", encoding="utf-8"):
                pass
        self.watching()
        self.assertEqual(self.dumps(), ["person.svg.abcDEF", "w-20260101T000000-test.svg"])

    def test_a_folder_that_vanishes_is_made_again(self):
        one = self.watching()
        self.steps(one, lambda: one._keeper.pid)
        first = one._keeper.started
        os.rename(self.path(), self.path() + ".gone")
        self.steps(one, lambda: one._keeper.started > first and os.path.isdir(self.path("segments")))
        self.assertTrue(self.has_said("was removed, and is made again"))
        self.trigger(one, 1)
        self.assertEqual(len(self.dumps()), 1)

    def test_a_process_that_ends_ends_the_watch_after_its_drawings(self):
        child = subprocess.Popen(["sleep", "1000"])
        one = self.watching(watched.Watched("pid", str(child.pid)), after_s=0.2)
        self.steps(one, lambda: one._keeper.pid)
        self.condition.text = "happened"
        self.steps(one, lambda: not one._dumps.is_idle)
        child.kill()
        self.touch("mode", "full")
        os.kill(one._keeper.pid, signal.SIGTERM)  # as the recorder ends with its target
        until(lambda: not one._go_on(self.arrived))
        self.assertEqual(len(self.dumps()), 1)
        self.assertTrue(self.has_said(f"process {child.pid} has ended; what is kept is in"))
        child.wait()

    def test_a_full_disk_does_not_end_it(self):
        one = self.watching()
        self.steps(one, lambda: one._keeper.pid)
        with unittest.mock.patch("stackpipe.files.create", side_effect=OSError(28, "No space left on device")):
            self.condition.text = "happened"
            self.steps(one, lambda: one._dumps.failed == 1)
            one._state_due = 0
            self.assertTrue(one._go_on(self.arrived))
        self.assertTrue(self.has_said("No space left on device"))
        self.trigger(one, 1)

    def test_descriptors_are_closed(self):
        one = self.watching()
        self.trigger(one, 1)
        before = len(os.listdir("/proc/self/fd"))
        for count in range(2, 12):
            self.trigger(one, count)
            self.steps(one, lambda: one._keeper.pid)
            started = one._keeper.started
            os.kill(one._keeper.pid, signal.SIGKILL)
            self.steps(one, lambda: one._keeper.pid and one._keeper.started > started)
            if count % 3 == 0:
                os.rename(self.path(), f"{self.path()}.gone{count}")
                self.steps(one, lambda: one._keeper.pid and os.path.isdir(self.path("segments")))
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_two_watches_of_one_name(self):
        self.watching()
        with self.assertRaisesRegex(Failure, "another watch uses this folder; give one of them another --name"):
            self.watching()

    def test_a_clock_that_is_set_back_gives_no_file_a_taken_name(self):
        one = self.watching()
        with unittest.mock.patch("time.localtime", return_value=__import__("time").gmtime(0)):
            for count in (1, 2, 3):
                self.trigger(one, count)
        self.assertEqual(self.dumps(), ["w-19700101T000000-test-2.svg", "w-19700101T000000-test-3.svg", "w-19700101T000000-test.svg"])


class Options(unittest.TestCase):
    def read(self, *words):
        return options.read(command.OPTIONS, words)

    def test_wrong_command_lines(self):
        tools = pipeline.Tools("/nowhere", {**os.environ, "STATE_DIRECTORY": "/nonexistent"})
        for words in (["-p", "1", "--open"], ["-p", "1", "--time", "1,2"], ["--dump", "--on-busy", "1%"], ["--list", "x"], ["--list", "--dump"], ["-p", "1", "x"],
                      ["-p", "1", "--", "true"], ["-p", "1", "--keep", "1"], ["-p", "1", "--size", "x"], ["-p", "1", "-F", "x"], ["--dump", "a", "b"],
                      ["--dump", "../x"], ["-p", "1", "--files", "0"], ["-p", "1", "--format", "x"], ["-p", "1", "--name", "a/b"], []):
            with self.assertRaises(UsageError, msg=words):
                command.main(words, tools)

    def test_a_dump_needs_a_watch(self):
        tools = pipeline.Tools("/nowhere", {**os.environ, "STATE_DIRECTORY": "/nonexistent"})
        with self.assertRaisesRegex(Failure, "no watch in /nonexistent"):
            command.main(["--dump"], tools)

    def test_ranges(self):
        self.assertEqual(draw.range_of(-1, 2.5), "0.000000,2.500000")
        with unittest.mock.patch("time.monotonic", return_value=100):
            self.assertEqual(draw.chosen_range(self.read("--last", "30s"), True)[:2], ("70.000000,100.000000", "100ms"))
            self.assertEqual(draw.chosen_range(self.read("--last", "10m"), True)[:2], ("0.000000,100.000000", "1s"))
        self.assertEqual(draw.chosen_range(self.read("--last", "500ms"), False)[0], "-0.5s")
        self.assertEqual(draw.chosen_range(self.read("--time", "14:05,14:10"), True), ("14:05,14:10", "1s", "14:05,14:10"))
        self.assertEqual(draw.chosen_range(self.read("--time", "1.000000,31.000000"), True)[1], "100ms")
        with self.assertRaises(UsageError):
            draw.chosen_range(self.read("--time", "1,2", "--last", "1s"), True)

    def test_reasons_are_parts_of_names(self):
        self.assertEqual([dumps.reason_of(text) for text in ("busy", "../x y", "::", "slow_" + "f" * 99)], ["busy", ".._x_y", "trigger", "slow_" + "f" * 35])
