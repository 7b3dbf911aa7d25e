"""Tests the parts of profile_run watch that need no recording."""
import contextlib
import io
import os
import tempfile
import unittest
import unittest.mock

from stackpipe import options, pipeline
from stackpipe.runs import profile_run, watch
from stackpipe.messages import Failure

TOOLS = pipeline.Tools("/nowhere", {**os.environ, "PATH": os.environ["PE_TOOLS"] + ":" + os.environ["PATH"]})


def settings(*arguments):
    return profile_run.Settings("watch", options.read(profile_run.OPTIONS, arguments))


class Watch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.said = []
        patch = unittest.mock.patch("stackpipe.runs.watch.say", lambda text: self.said.append(text))
        patch.start()
        self.addCleanup(patch.stop)

    def watch(self, *arguments):
        return watch.Watch(settings(*arguments), self.folder, self.folder, self.folder, TOOLS)

    def hours(self, *names):
        for name in names:
            with open(os.path.join(self.folder, f"{name}Z.folded"), "w", encoding="utf-8") as file:
                file.write("main;f 30\nmain;g 70\n")
        return os.path.join(self.folder, f"{names[-1]}Z.folded")

    def names(self):
        return sorted(name.removesuffix("Z.folded") for name in os.listdir(self.folder))

    def test_the_oldest_hours_go(self):
        hour = self.hours("2026-01-01T00", "2026-01-01T01", "2026-01-01T02")
        self.watch("--keep", "2")._remove_oldest(hour)
        self.assertEqual(self.names(), ["2026-01-01T01", "2026-01-01T02"])
        self.watch("--keep", "0")._remove_oldest(hour)
        self.assertEqual(self.names(), ["2026-01-01T01", "2026-01-01T02"])

    def test_hours_to_come_are_the_oldest_and_that_is_said_once(self):
        self.hours("2001-01-01T00", "2099-01-01T00", "2099-01-01T01")
        one = self.watch("--keep", "3")
        hour = self.hours("2026-01-01T00")
        one._remove_oldest(hour)
        one._remove_oldest(hour)
        self.assertEqual(self.names(), ["2001-01-01T00", "2026-01-01T00", "2099-01-01T01"])
        self.assertEqual(len(self.said), 1)
        self.assertIn("the clock was set back", self.said[0])

    def test_a_limit_alerts_once_for_an_hour(self):
        hour = self.hours("2026-01-01T00")
        one = self.watch("--limit", "f=20%", "--limit", "g=70", "--limit", "none=1%")
        one._check_limits(hour)
        one._check_limits(hour)
        self.assertEqual(self.said, [f"alert: f: 30.00 % of the samples, the limit is 20 %, in {hour}",
                                     "--limit none=1%: no function has this name so far"])

    def test_an_alert_that_fails_is_said(self):
        self.watch("--alert", "false")._alert("f", "1", "2", "hour", "why")
        self.watch("--alert", "/no/such x")._alert("f", "1", "2", "hour", "why")
        self.assertEqual(self.said[1::2][0], "--alert: false: exit status 1")
        self.assertEqual(self.said[-1], "--alert: /no/such: exit status 127")

    def test_messages_that_differ_in_numbers_are_the_same(self):
        once = watch.Once()
        once.forward("a 1\na 2\nb\n")
        once.say("a 33")
        self.assertEqual(self.said, ["a 1", "b"])

    def test_one_watch_a_folder_and_what_a_killed_one_left_goes(self):
        os.mkdir(os.path.join(self.folder, ".chunk-x"))
        first = watch.open_locked(self.folder)
        with self.assertRaisesRegex(Failure, "another profile_run is watching here"):
            watch.open_locked(self.folder)
        watch.remove_left_chunks(first)
        self.assertEqual((self.names(), len(self.said)), ([], 1))

    def test_what_an_alert_of_growth_tells_is_no_option(self):
        said = "flamediff: --fail-over: -oProxyCommand=x grew from 10 % to 20 %\n"
        run = unittest.mock.Mock(side_effect=[unittest.mock.Mock(**{"communicate.return_value": (b"", said.encode())}), None])
        one = self.watch("--alert", "/bin/mail")
        self.hours("2026-01-01T00")
        hour = self.hours("2026-01-01T01")
        with unittest.mock.patch.object(one._tools, "start", run), \
                unittest.mock.patch("stackpipe.runs.watch.pipeline.wait_for", side_effect=[3, 0]):
            one._check_growth(hour)
        self.assertEqual(run.call_args[0][0][1:3], ["growth", "function -oProxyCommand=x grew from 10 % to 20 %"])

    def test_the_name_of_a_process_is_one_of_pyroscope(self):
        self.assertEqual(watch.name_of("999999999"), "stackpipe")
        with unittest.mock.patch("builtins.open", return_value=io.BytesIO(b"a b{c}\xff\n")):
            self.assertEqual(watch.name_of("1"), "a_b_c__")


class WatchOn(unittest.TestCase):
    def looks(self, limit, most=5):
        count = []
        with contextlib.suppress(ZeroDivisionError):
            watch.watch_on(settings(*limit), lambda: count.append(1), lambda: len(count) >= most)
        return len(count)

    def test_until_it_is_stopped(self):
        self.assertEqual(self.looks([]), 5)

    def test_until_the_time_is_over_but_once_at_least(self):
        self.assertEqual(self.looks(["--duration=0"]), 1)

    def test_until_the_process_has_ended(self):
        self.assertEqual(self.looks(["--pid=999999999"]), 1)
        self.assertEqual(self.looks([f"--pid={os.getpid()}"]), 5)
