"""Tests the triggers of a watch: made-up times and processes, and real commands."""
import os
import tempfile
import time
import unittest
import unittest.mock

from stackpipe import options, pipeline
from stackpipe.messages import UsageError
from stackpipe.watch import command, processes, triggers, watched
from stackpipe.watch.processes import TICKS, Process, Thread

TOOLS = pipeline.Tools("/nowhere", dict(os.environ))
TOOLS.hears_keys = False


def line(*words):
    return options.read(command.OPTIONS, words)


class Clock(unittest.TestCase):
    """Tests with a clock that stands still, and processes that do not exist."""

    def setUp(self):
        self.now = 100.0
        self.processes = {7: Process(7, "server", "R", 1, 0, 5)}
        self.threads = []
        for name, fake in (("time.monotonic", lambda: self.now), ("stackpipe.watch.processes.process_of", lambda pid: self.processes.get(pid)),
                           ("stackpipe.watch.processes.threads_of", self.threads_of)):
            patch = unittest.mock.patch(name, fake)
            patch.start()
            self.addCleanup(patch.stop)
        self.target = watched.Watched("pid", "7")
        self.look()

    def threads_of(self, pid, name=""):
        return [thread for thread in self.threads if name in ("", thread.name)]

    def look(self):
        self.target.everything = self.target.alive = dict(self.processes)

    def use(self, pid, ticks):
        self.processes[pid] = self.processes[pid]._replace(cpu_ticks=self.processes[pid].cpu_ticks + ticks)

    def step(self, trigger, seconds):
        self.now += seconds
        return trigger.check()


class Busy(Clock):
    def test_above_the_share_of_one_cpu_for_a_second(self):
        busy = triggers.Busy(self.target, 90)
        told = []
        for _ in range(8):
            self.use(7, TICKS // 4 * 3 // 4)  # 75 %
            told.append(self.step(busy, 0.25))
        self.assertEqual(set(told), {""})
        told = []
        for _ in range(4):
            self.use(7, TICKS // 4)
            told.append(self.step(busy, 0.25))
        self.assertEqual(told[-1], "used 100 % of a CPU for 1.0 s")

    def test_children_count_and_a_process_that_is_new_does_not_count_for_its_past(self):
        busy = triggers.Busy(self.target, 90)
        busy.check()
        self.processes[8] = Process(8, "child", "R", 7, 100 * TICKS, 6)
        self.look()
        for _ in range(8):
            self.assertEqual(self.step(busy, 0.25), "")
        for _ in range(4):
            self.use(8, TICKS // 2)
            text = self.step(busy, 0.25)
        self.assertEqual(text, "used 200 % of a CPU for 1.0 s")

    def test_a_machine_that_was_asleep_is_not_busy(self):
        busy = triggers.Busy(self.target, 90)
        busy.check()
        self.use(7, TICKS)
        self.assertEqual(self.step(busy, 3600), "")


class Stall(Clock):
    def test_a_ready_thread_and_no_cpu_time(self):
        self.threads = [Thread(7, "main", "S", 1), Thread(8, "ready", "R", 5)]
        stall = triggers.Stall(self.target, 0.5)
        told = [self.step(stall, 0.1) for _ in range(8)]
        self.assertEqual(told[-1], "no thread of process 7 ran for 0.60 s, and one was ready")
        self.assertEqual(set(told[:5]), {""})

    def test_cpu_time_of_any_thread_starts_anew(self):
        self.threads = [Thread(8, "ready", "R", 5)]
        stall = triggers.Stall(self.target, 0.5)
        for number in range(40):
            self.use(7, 1 if number % 4 == 0 else 0)
            self.assertEqual(self.step(stall, 0.1), "")

    def test_a_thread_that_ran_for_less_than_a_tick_starts_anew(self):
        stall = triggers.Stall(self.target, 0.5)
        for number in range(40):
            self.threads = [Thread(8, "ready", "R", number // 4)]
            self.assertEqual(self.step(stall, 0.1), "")

    def test_a_target_that_sleeps_does_not_stall(self):
        self.threads = [Thread(7, "main", "S", 1), Thread(8, "disk", "D", 1), Thread(9, "stopped", "T", 1)]
        stall = triggers.Stall(self.target, 0.5)
        self.assertEqual({self.step(stall, 0.1) for _ in range(40)}, {""})

    def test_a_running_process_costs_no_look_at_its_threads(self):
        stall = triggers.Stall(self.target, 0.5)
        with unittest.mock.patch("stackpipe.watch.processes.threads_of", side_effect=AssertionError):
            for _ in range(10):
                self.use(7, 1)
                self.assertEqual(self.step(stall, 0.1), "")

    def test_a_named_thread_that_did_not_run(self):
        stall = triggers.ThreadStall(self.target, "heart beat", 0.5)
        self.assertEqual(stall.reason, "stall_heart_beat")
        for number in range(20):
            self.threads = [Thread(7, "main", "S", 1), Thread(8, "heart beat", "S", number // 4)]
            self.assertEqual(self.step(stall, 0.1), "")
        for _ in range(6):
            text = self.step(stall, 0.1)
        self.assertRegex(text, r"^thread heart beat did not run for 0\.[5-9][0-9] s$")

    def test_a_thread_that_has_ended_does_not_stall(self):
        stall = triggers.ThreadStall(self.target, "gone", 0.5)
        self.threads = [Thread(8, "gone", "S", 1)]
        stall.check()
        self.threads = []
        self.assertEqual({self.step(stall, 0.1) for _ in range(20)}, {""})


class Command(unittest.TestCase):
    def ended(self, text):
        """Returns what the trigger tells when the command has ended."""
        trigger = triggers.Command(text, TOOLS)
        trigger.check()
        os.waitid(os.P_PID, trigger._process.pid, os.WEXITED | os.WNOWAIT)
        return trigger.check()

    def test_a_command_that_fails(self):
        self.assertEqual(self.ended("exit 0"), "")
        self.assertEqual(self.ended("exit 3"), "'exit 3' ended with status 3")
        self.assertEqual(self.ended("kill -9 $$"), "'kill -9 $$' ended with status 137")

    def test_a_command_that_is_not_there_is_said_once_and_triggers_nothing(self):
        said = []
        with unittest.mock.patch("stackpipe.messages.say", said.append):
            self.assertEqual(self.ended("/no/such"), "")
        self.assertIn("exit status 127: the command could not be executed", said[0])

    def test_a_command_that_hangs_is_killed_with_all_that_it_started(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("stackpipe.watch.triggers._COMMAND_S", 0.2):
            child = os.path.join(folder, "child")
            trigger = triggers.Command(f"sleep 1000 & echo $! >{child}; wait", TOOLS)
            trigger.check()
            end = time.monotonic() + 60
            while not (os.path.exists(child) and os.path.getsize(child)) and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(0.2)
            self.assertIn("did not end within", trigger.check())
            with open(child, encoding="utf-8") as file:
                pid = int(file.read())
            while (process := processes.process_of(pid)) and process.is_alive and time.monotonic() < end:
                time.sleep(0.01)
            self.assertFalse(process and process.is_alive)


class Options(unittest.TestCase):
    def test_wrong_ones(self):
        target = watched.Watched("pid", "7")
        for words in (["--on-busy", "x"], ["--on-busy", "0"], ["--on-stall", "50"], ["--on-stall", "1ms"], ["--on-stall", "=x"]):
            with self.assertRaises(UsageError):
                triggers.read_triggers(line(*words), target, TOOLS)
        with self.assertRaises(UsageError):
            triggers.read_triggers(line("--on-stall", "1s"), watched.Watched("all", "machine"), TOOLS)
        for words in (["--on-slow", "f"], ["--longer", "1s"], ["--on-slow", "f", "--longer", "x"]):
            with self.assertRaises(UsageError):
                triggers.slow_options(line(*words))

    def test_slow_calls(self):
        self.assertEqual(triggers.slow_options(line("--on-slow", "f", "--on-slow", "libz.so.1:deflate", "--longer", "200ms")),
                         ["--span", "f", "--span", "libz.so.1:deflate", "--slow-calls", "200ms"])
        slow, = triggers.read_triggers(line("--on-slow", "f", "--longer", "200ms"), watched.Watched("pid", "7"), TOOLS)
        self.assertEqual(slow.check(), "")
        slow.take([{"function": "a::f", "ns": 300000000, "tid": 1, "time_ns": 1}, {"function": "a::f", "ns": 900000000, "tid": 2, "time_ns": 1}])
        self.assertEqual((slow.check(), slow.reason), ("a::f took 900 ms in thread 2", "slow_f"))
        self.assertEqual(slow.check(), "")

    def test_times(self):
        for text, seconds in (("500ms", 0.5), ("30s", 30), ("10m", 600), ("2h", 7200)):
            self.assertEqual(options.read_seconds("x", text), seconds)
            self.assertEqual(options.text_of_seconds(seconds), text)
        for text in ("", "5", "-5s", "5 s", "1.5s", "5d", "25h", "0s", "५s"):
            with self.assertRaises(UsageError):
                options.read_seconds("x", text)
        self.assertEqual(options.text_of_seconds(0.0), "0ms")
