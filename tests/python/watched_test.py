"""Tests the target of a watch, and what keeps its recorder going, with a recorder that only pretends."""
import os
import subprocess
import tempfile
import time
import unittest
import unittest.mock

from stackpipe import options, pipeline
from stackpipe.messages import Failure, UsageError
from stackpipe.watch import command, keeper, log, processes, watched
from stackpipe.watch.keeper import Keeper, Plan
from stackpipe.watch.processes import Process

# Writes its words to a file, and ends in the way that the file "mode" tells.
RECORDER = """#!/bin/sh
echo "$@" >>"$FAKE/started"
while [ "$1" != --summary ]; do shift; done
summary=$2
finish() { echo "{\\"result\\": \\"$1\\", \\"text\\": \\"pe-record: $2\\", \\"lost\\": 3}" >"/proc/self/fd/$summary"; }
report() { for word; do [ "$last" != --report ] || echo '{"function": "f", "ns": 9, "tid": 1, "time_ns": 5}' >"/proc/self/fd/$word"; last=$word; done; }
report "$@"
case $(cat "$FAKE/mode") in
  run) trap 'finish recorded done; exit 0' TERM; echo ready >>"$FAKE/ready"; while :; do sleep 0.02; done ;;
  full) echo "pe-record: write error: No space left on device" >&2; finish incomplete 'write error: No space left on device'; exit 1 ;;
  lacking) echo run >"$FAKE/mode"; finish 'denied", "lacks": "counters' 'no waits for you'; exit 1 ;;
  denied) finish denied 'belongs to another user'; exit 1 ;;
  usage) echo "pe-record: --freq: not a number (see --help)" >&2; exit 2 ;;
esac
"""


def until(condition, act=lambda: None):
    """Acts until the condition holds."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("this never came")
        act()
        time.sleep(0.01)


def line(*words):
    return options.read(command.OPTIONS, words)


class Targets(unittest.TestCase):
    def test_command_lines(self):
        for words, kind, text in ((["-p", "12"], "pid", "12"), (["-p", "nginx"], "name", "nginx"), (["-a"], "all", "machine")):
            read = watched.read_watched(line(*words), False)
            self.assertEqual((read.kind, read.text), (kind, text))
        for words in ([], ["-a", "-p", "1"], ["-p", ""], ["-p", "a,b"], ["-p", "0"], ["-p", "99999999999"], ["-p", "/bin/x"]):
            with self.assertRaises(UsageError):
                watched.read_watched(line(*words), False)

    def test_a_zombie_is_gone_and_so_is_another_process_with_its_number(self):
        child = subprocess.Popen(["sleep", "100"])
        target = watched.Watched("pid", str(child.pid))
        target.look()
        self.assertTrue(target.is_there)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        target.look()
        self.assertTrue(target.is_over)
        child.wait()
        other = watched.Watched("pid", str(os.getpid()))
        other.look()
        other._start_ticks -= 1
        other.look()
        self.assertTrue(other.is_over)

    def test_processes_of_a_name_or_a_program_file(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "a_name_of_more_than_15_bytes")
            with open("/bin/sleep", "rb") as source, open(program, "wb") as target:
                target.write(source.read())
            os.chmod(program, 0o700)
            child = subprocess.Popen([program, "100"])
            try:
                target = watched.Watched("name", os.path.basename(program))
                until(lambda: target.alive, target.look)
                self.assertEqual(list(target.alive), [child.pid])
                self.assertEqual(target.options(), ["-p", str(child.pid), "--children"])
            finally:
                child.kill()
                child.wait()
            target.look()
            self.assertFalse(target.is_there)
            self.assertFalse(target.is_over)

    def test_a_recorder_has_the_processes_that_its_own_have_started(self):
        def process(pid, parent, name="x"):
            return Process(pid, name, "S", parent, 0, pid)

        target = watched.Watched("name", "x")
        target.everything = {1: process(1, 0, "init"), 10: process(10, 1), 11: process(11, 10, "other")}
        target.alive = {10: target.everything[10]}
        covered = watched.Covered(target)
        self.assertEqual(covered.missing(target), [])
        target.everything[12] = target.alive[12] = process(12, 11)
        self.assertEqual(covered.missing(target), [])
        del target.everything[11]  # 12 is init's now, but stays recorded
        target.everything[12] = target.alive[12] = process(12, 1)
        self.assertEqual(covered.missing(target), [])
        target.everything[20] = target.alive[20] = process(20, 1)
        self.assertEqual(covered.missing(target), [20])

    def test_names_of_threads_and_processes_may_hold_anything(self):
        data = b"7 (a) b (c\n) R 1 1 1 0 -1 0 0 0 0 0 5 6 0 0 20 0 1 0 99 0 0\n"
        with unittest.mock.patch("stackpipe.watch.processes._read", return_value=data):
            self.assertEqual(processes.process_of(7), Process(7, "a) b (c\n", "R", 1, 11, 99))
        with unittest.mock.patch("stackpipe.watch.processes._read", return_value=b""):
            self.assertIsNone(processes.process_of(7))


class Keeping(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        program = os.path.join(self.folder, "pe-record")
        with open(program, "w", encoding="utf-8") as file:
            file.write(RECORDER)
        os.chmod(program, 0o700)
        self.tools = pipeline.Tools("/nowhere", {**os.environ, "PATH": self.folder + ":" + os.environ["PATH"], "FAKE": self.folder})
        self.said = []
        for patch in (unittest.mock.patch("stackpipe.messages.say", self.said.append), unittest.mock.patch("stackpipe.watch.keeper._FIRST_PAUSE_S", 0.05),
                      unittest.mock.patch("stackpipe.watch.keeper._LONGEST_PAUSE_S", 0.1)):
            patch.start()
            self.addCleanup(patch.stop)
        self.mode("run")
        self.target = watched.Watched("pid", str(os.getpid()))
        self.target.look()

    def mode(self, mode):
        with open(os.path.join(self.folder, "mode"), "w", encoding="utf-8") as file:
            file.write(mode)

    def lines(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def started(self):
        return self.lines("started")

    def is_ready(self):
        """Does the first recorder handle signals?"""
        return bool(self.lines("ready"))

    def keeper(self, plan=Plan(), segments=lambda: "segments"):
        one = Keeper(self.tools, self.target, plan, segments)
        self.addCleanup(one.end_recorder)
        return one

    def has_said(self, text):
        return any(text in line for line in self.said)

    def test_a_recorder_that_is_killed_is_replaced(self):
        one = self.keeper(Plan(event="cpu,waits", options=["--keep", "10m"]))
        until(lambda: len(self.started()) == 1, one.poll)
        self.assertRegex(self.started()[0], rf"^--summary [0-9]+ -q --engine best -e cpu,waits --keep 10m -o segments -p {os.getpid()} --children$")
        os.kill(one.pid, 9)
        until(lambda: len(self.started()) == 2, one.poll)
        self.assertTrue(self.has_said("the recorder was killed (signal 9); the next recorder starts in"))
        self.assertGreater(one.without_s, 0)

    def test_a_full_disk_is_a_line_and_a_pause_that_grows(self):
        one = self.keeper()
        self.mode("full")
        until(lambda: len(self.started()) == 3, one.poll)
        self.mode("run")
        until(lambda: len(self.started()) >= 4 and one.pid, one.poll)
        self.assertTrue(self.has_said("write error: No space left on device; the next recorder starts in"))

    def test_a_folder_that_cannot_be_made_is_a_line(self):
        answers = iter([Failure("/x: No space left on device"), "segments"])

        def segments():
            answer = next(answers)
            if isinstance(answer, Failure):
                raise answer
            return answer

        one = self.keeper(segments=segments)
        until(lambda: one.pid, one.poll)
        self.assertTrue(self.has_said("/x: No space left on device; the next recorder starts in"))

    def test_sigterm_ends_the_recorder_in_good_order(self):
        one = self.keeper()
        until(self.is_ready, one.poll)
        one.end_recorder()
        self.assertEqual((one.pid, one.lost), (0, 3))

    def test_a_user_without_waits_gets_cpu_time(self):
        one = self.keeper(Plan(event="cpu,waits", may_lack_waits=True))
        self.mode("lacking")
        until(lambda: len(self.started()) == 2, one.poll)
        self.assertNotIn("-e", self.started()[1].split())
        self.assertTrue(self.has_said("records CPU time without waits: pe-record: no waits for you"))

    def test_a_user_who_may_not_record_this_is_told_at_once(self):
        self.mode("denied")
        for plan in (Plan(event="cycles"), Plan(event="cpu,waits", may_lack_waits=True)):
            one = self.keeper(plan)
            with self.assertRaises(Failure):
                until(lambda: False, one.poll)

    def test_a_wrong_option_is_told_at_once(self):
        one = self.keeper()
        self.mode("usage")
        with self.assertRaisesRegex(Failure, "--freq: not a number") as raised:
            until(lambda: False, one.poll)
        self.assertEqual(raised.exception.status, 2)

    def test_a_target_that_comes_back_is_followed(self):
        one = self.keeper()
        self.target.kind, self.target.text = "name", "server"
        until(self.is_ready, one.poll)
        before = self.target.alive
        self.target.alive = {}
        with unittest.mock.patch.object(self.target, "look"):
            os.kill(one.pid, 15)  # as if its target had ended
            until(lambda: not one.pid, one.poll)
            for _ in range(5):
                one.poll()
            self.assertEqual(len(self.started()), 1)
            self.target.alive = before
            until(lambda: len(self.started()) == 2, one.poll)
        told = [line.split(" ", 1)[1] for line in self.said]
        self.assertEqual(told, ["server: no process has this name any more: waiting for one", f"server: process {os.getpid()} has this name: recording goes on"])

    def test_reports_of_slow_calls(self):
        one = self.keeper(Plan(slow=["--span", "f", "--slow-calls", "200ms"]))
        calls = []
        until(lambda: calls, lambda: (one.poll(), calls.extend(one.take_slow_calls())))
        self.assertEqual(calls, [{"function": "f", "ns": 9, "tid": 1, "time_ns": 5}])
        for text in ("", "[]", "{}", '{"function": 1, "ns": 1, "tid": 1, "time_ns": 1}', '{"function": "f", "ns": -1, "tid": 1, "time_ns": 1}', "[" * 9999):
            self.assertIsNone(keeper.read_call(text))

    def test_every_line_has_the_time(self):
        log.say("text")
        self.assertRegex(self.said[0], r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[+-][0-9]{4} text$")

    def test_messages_that_differ_in_numbers_are_the_same(self):
        once = log.Once()
        once.forward("a 1\na 2\nb\n")
        once.say("a 33")
        self.assertEqual([line.split(" ", 1)[1] for line in self.said], ["a 1", "b"])
