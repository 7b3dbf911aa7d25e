"""Tests the parts of profile_run watch that need no recording: hourly files, alerts, and the intervals between them."""
import io
import os
import subprocess
import tempfile
import time
import unittest
import unittest.mock

from stackpipe import options, pipeline
from stackpipe.messages import Failure, UsageError
from stackpipe.runs import hours, profile_run, watch
from stackpipe.watch import store

TOOLS = pipeline.Tools("/nowhere", {**os.environ, "PATH": os.environ["PE_TOOLS"] + ":" + os.environ["PATH"]})


def settings(*arguments):
    return profile_run.Settings("watch", options.read(profile_run.OPTIONS, arguments))


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.said = []
        patch = unittest.mock.patch("stackpipe.watch.log.say", self.said.append)
        patch.start()
        self.addCleanup(patch.stop)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text="main;f 30\nmain;g 70\n"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def hours(self, *arguments):
        return hours.Hours(settings(*arguments), self.folder, self.folder, TOOLS)

    def alerts(self, *arguments):
        return hours.Alerts(settings(*arguments), self.hours(*arguments), self.folder, TOOLS)

    def make(self, *names):
        """Writes files of hours, and returns the path of the last one."""
        for name in names:
            self.write(f"{name}Z.folded")
        return self.path(f"{names[-1]}Z.folded")

    def names(self):
        return sorted(name.removesuffix("Z.folded") for name in os.listdir(self.folder) if name != "files")


class Hours(Folder):
    def test_the_oldest_hours_go(self):
        hour = self.make("2026-01-01T00", "2026-01-01T01", "2026-01-01T02")
        self.hours("--keep", "2").remove_oldest(hour)
        self.assertEqual(self.names(), ["2026-01-01T01", "2026-01-01T02"])
        self.hours("--keep", "0").remove_oldest(hour)
        self.assertEqual(self.names(), ["2026-01-01T01", "2026-01-01T02"])

    def test_hours_of_others_and_similar_names_stay(self):
        hour = self.make("2026-01-01T05")
        one = self.hours("--keep", "1")  # from now on there is a list
        for name in ("2026-01-01T00Z.folded", "2026-backupZ.folded", "2025-01-01T00Z.folded.bak", "2025-01-01T00Z.folded"):
            self.write(name)
        one.remove_oldest(hour)
        self.hours("--keep", "1").remove_oldest(hour)
        self.assertEqual(len(self.names()), 5)

    def test_hours_beyond_the_size_go_but_not_the_current_one(self):
        hour = self.make("2026-01-01T00", "2026-01-01T01", "2026-01-01T02")
        one = self.hours("--keep-size", "45")
        one.remove_oldest(hour)
        self.assertEqual(self.names(), ["2026-01-01T01", "2026-01-01T02"])
        self.hours("--keep-size", "1").remove_oldest(hour)
        self.assertEqual(self.names(), ["2026-01-01T02"])

    def test_hours_to_come_are_the_oldest_and_that_is_said_once(self):
        hour = self.make("2001-01-01T00", "2099-01-01T00", "2099-01-01T01", "2026-01-01T00")
        one = self.hours("--keep", "3")
        one.remove_oldest(hour)
        one.remove_oldest(hour)
        self.assertEqual(self.names(), ["2001-01-01T00", "2026-01-01T00", "2099-01-01T01"])
        self.assertEqual(len(self.said), 1)
        self.assertIn("the clock was set back", self.said[0])

    def test_samples_are_added(self):
        one = self.hours()
        began = 1767225600  # 2026-01-01T00
        hour = one.add(self.write("chunk", "main;f 1\n"), began)
        self.assertEqual(one.add(self.write("chunk", "main;f 2\nmain;h 5\n"), began + 3599), hour)
        one.add(self.write("chunk", ""), began)
        self.assertEqual(self.read("2026-01-01T00Z.folded"), "main;f 3\nmain;h 5\n")
        self.assertEqual(self.hours()._own.names(), ["2026-01-01T00Z.folded"])

    def test_a_damaged_hour_is_moved_aside(self):
        began = 1767225600
        self.write("2026-01-01T00Z.folded", "\0" * 4096)
        self.hours().add(self.write("chunk", "main;f 1\n"), began)
        self.assertEqual(self.read("2026-01-01T00Z.folded"), "main;f 1\n")
        self.assertEqual(self.read("2026-01-01T00Z.folded.damaged"), "\0" * 4096)
        self.assertEqual(len(self.said), 1)
        self.assertIn("cannot be read; it is now", self.said[0])
        os.unlink(self.path("2026-01-01T00Z.folded"))
        os.symlink("/dev/null", self.path("2026-01-01T00Z.folded"))
        self.hours().add(self.path("chunk"), began)
        self.assertTrue(os.path.islink(self.path("2026-01-01T00Z.folded.damaged1")))
        self.assertEqual(self.read("2026-01-01T00Z.folded"), "main;f 1\n")

    def test_an_hour_is_on_disk_before_it_has_its_name(self):
        calls = []
        real = {name: getattr(os, name) for name in ("fsync", "rename")}
        with unittest.mock.patch("os.fsync", lambda file: (calls.append("fsync"), real["fsync"](file))), \
                unittest.mock.patch("os.rename", lambda *names, **more: (calls.append("rename"), real["rename"](*names, **more))):
            self.hours().add(self.write("chunk", "main;f 1\n"), 1767225600)
        self.assertEqual(calls[:3], ["fsync", "rename", "fsync"])


class Alerts(Folder):
    def test_a_limit_alerts_once_for_an_hour(self):
        hour = self.make("2026-01-01T00")
        one = self.alerts("--limit", "f=20%", "--limit", "g=70", "--limit", "none=1%")
        one.check(hour)
        one.check(hour)
        self.assertEqual(self.said, [f"alert: f: 30.00 % of the samples, the limit is 20 %, in {hour}",
                                     "--limit none=1%: no function has this name so far"])

    def test_an_alert_that_fails_is_said(self):
        self.alerts("--alert", "false")._alert("f", "1", "2", "hour", "why")
        self.alerts("--alert", "/no/such x")._alert("f", "1", "2", "hour", "why")
        self.assertEqual(self.said[1::2][0], "--alert: false: exit status 1")
        self.assertEqual(self.said[-1], "--alert: /no/such: exit status 127")

    def test_what_an_alert_of_growth_tells_is_no_option(self):
        said = "flamediff: --fail-over: -oProxyCommand=x grew from 10 % to 20 %\n"
        run = unittest.mock.Mock(side_effect=[unittest.mock.Mock(**{"communicate.return_value": (b"", said.encode())}), None])
        one = self.alerts("--alert", "/bin/mail")
        hour = self.make("2026-01-01T00", "2026-01-01T01")
        with unittest.mock.patch.object(one._tools, "start", run), \
                unittest.mock.patch("stackpipe.runs.hours.pipeline.wait_for", side_effect=[3, 0]):
            one._check_growth(hour)
        self.assertEqual(run.call_args[0][0][1:3], ["growth", "function -oProxyCommand=x grew from 10 % to 20 %"])


# Stands for pe-symbolize and stackfold: their stream is its range, and so is its folded text.
STREAM = """#!/bin/sh
[ ! -e "$FAKE/cannot" ] || { echo 'No space left on device' >&2; exit 1; }
case $0 in
  *symbolize) echo "$2" ;;
  *) case $1 in --annotate) echo "main;$(echo "$3" | tr , ';') 1" ;; *) while [ "$1" != -- ]; do shift; done; shift; cat "$@" ;; esac ;;
esac
"""


class Intervals(Folder):
    def setUp(self):
        super().setUp()
        bin_folder = tempfile.TemporaryDirectory()
        self.addCleanup(bin_folder.cleanup)
        self.fake = bin_folder.name
        for name in ("pe-symbolize", "stackfold"):
            path = os.path.join(self.fake, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(STREAM)
            os.chmod(path, 0o700)
        self.tools = pipeline.Tools("/nowhere", {**os.environ, "PATH": self.fake + ":" + os.environ["PATH"], "FAKE": self.fake})
        os.chmod(self.folder, 0o700)
        self.opened = store.Store(self.folder)
        self.addCleanup(self.opened.close)
        with open(os.path.join(self.opened.make(store.SEGMENTS), "0000000001.pe"), "w", encoding="utf-8") as file:
            file.write("content")
        self.keep_s = 600
        self.all = hours.Hours(settings(), self.folder, self.folder, self.tools)

    def intervals(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        return watch.Intervals(self.opened, scratch.name, self.tools, self.keep_s)

    def ranges(self):
        """Returns the ranges that are in the hourly files, in microseconds."""
        found = []
        for hour in hours.hours_of(self.folder):
            with open(hour, encoding="utf-8") as file:
                found += [tuple(round(float(number) * 1e6) for number in line.split(" ")[0].split(";")[1:]) for line in file]
        return sorted(found)

    def test_no_time_is_between_two_intervals_also_of_two_watches(self):
        began = int(time.monotonic() * 1e6)
        one, now = self.intervals(), time.monotonic() + 1
        one.fold(now, self.all, None)
        one.fold(now + 1.5, self.all, None)
        with unittest.mock.patch("time.monotonic", return_value=now + 100):
            self.intervals().fold(now + 100, self.all, None)  # the first watch was killed
        found = self.ranges()
        self.assertEqual(len(found), 3)
        self.assertGreaterEqual(found[0][0], began)
        for (_, end), (begin, _) in zip(found, found[1:]):
            self.assertEqual(begin, end + 1)
        self.assertEqual(found[-1][1], int((now + 100) * 1e6))

    def test_a_moment_without_disk_space_loses_nothing(self):
        one, now = self.intervals(), time.monotonic() + 1
        one.fold(now, self.all, None)
        with open(os.path.join(self.fake, "cannot"), "w", encoding="utf-8"):
            pass
        self.assertEqual(one.fold(now + 1, self.all, None), "")
        self.assertTrue(one.is_behind)
        os.unlink(os.path.join(self.fake, "cannot"))
        with unittest.mock.patch("stackpipe.files.create", side_effect=OSError(28, "No space left on device")):
            self.assertEqual(one.fold(now + 2, self.all, None), "")
        self.assertTrue(one.fold(now + 3, self.all, None))
        self.assertFalse(one.is_behind)
        self.assertEqual(self.ranges()[1], (int(now * 1e6) + 1, int((now + 3) * 1e6)))
        self.assertEqual(one.missing, 0)
        self.assertEqual(self.said, ["No space left on device", "watch: No space left on device"])

    def test_without_segments_there_is_nothing_to_fold(self):
        os.unlink(self.opened.path_of("segments/0000000001.pe"))
        one = self.intervals()
        self.assertEqual(one.fold(time.monotonic() + 1, self.all, None), "")
        self.assertFalse(one.is_behind)

    def test_what_is_no_longer_kept_is_missing(self):
        self.keep_s = 10
        one, now = self.intervals(), time.monotonic()
        with open(os.path.join(self.fake, "cannot"), "w", encoding="utf-8"):
            pass
        one.fold(now + 11, self.all, None)
        self.assertEqual(one.missing, 1)

    def test_a_position_of_another_boot_or_a_damaged_one_is_not_used(self):
        now = time.monotonic()
        for text in ('{"boot": "other", "us": 5}', '{"us": "x"}', "{", '{"boot": "BOOT", "us": 1e99}', '{"boot": "BOOT", "us": -7}'):
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                self.write("position.json", text.replace("BOOT", file.read().strip()))
            self.assertGreaterEqual(self.intervals()._begin_us, int(now * 1e6), text)

    def test_a_list_that_cannot_be_written_does_not_add_samples_twice(self):
        one, now = self.intervals(), time.monotonic() + 1
        real = self.all._own.add
        with unittest.mock.patch.object(self.all._own, "add", side_effect=Failure("files: No space left on device")):
            one.fold(now, self.all, None)
        self.assertEqual(self.all._own.add, real)
        one.fold(now + 1, self.all, None)
        self.assertEqual(len(self.ranges()), 2)


class Folders(Folder):
    def test_one_watch_a_folder_which_only_its_owner_enters(self):
        os.mkdir(self.path("watch"), 0o755)  # of an earlier version
        first = watch.open_folder(self.folder)
        self.assertEqual(os.stat(self.path("watch")).st_mode & 0o777, 0o700)
        with self.assertRaisesRegex(Failure, "another profile_run is watching here"):
            watch.open_folder(self.folder)
        os.mkdir(first.path_of(".chunk-x"))
        watch.remove_left_chunks(first.folder)
        self.assertEqual(os.listdir(self.path("watch")), [])
        first.close()

    def test_a_link_is_not_followed(self):
        os.symlink("/tmp", self.path("watch"))
        with self.assertRaises(Failure):
            watch.open_folder(self.folder)


class Targets(unittest.TestCase):
    def test_targets(self):
        self.assertEqual(watch.read_target(settings()).kind, "all")
        self.assertEqual(watch.read_target(settings("--pid", "nginx")).kind, "name")
        self.assertEqual(watch.read_target(settings("--pid", str(os.getpid()))).kind, "pid")
        for words in (["--workload", "x"], ["--mode", "heap"], ["--push-name", "x"]):
            with self.assertRaises(UsageError):
                watch.read_target(settings(*words))

    def test_a_zombie_is_not_there(self):
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        with self.assertRaisesRegex(Failure, f"no process {child.pid}"):
            watch.read_target(settings("--pid", str(child.pid)))
        child.wait()

    def test_the_name_of_a_process_is_one_of_pyroscope(self):
        self.assertEqual(watch.name_of("999999999"), "stackpipe")
        self.assertEqual(watch.name_of("my server"), "my_server")
        self.assertEqual(watch.name_of(""), "stackpipe")
        with unittest.mock.patch("builtins.open", return_value=io.BytesIO(b"a b{c}\xff\n")):
            self.assertEqual(watch.name_of("1"), "a_b_c__")


class Push(unittest.TestCase):
    def push(self, sent, spooled):
        one = watch.Push.__new__(watch.Push)
        one._spooled, one._unspooled = spooled, 0
        one._sender = unittest.mock.Mock()
        one._before = unittest.mock.Mock()
        one._spool = unittest.mock.Mock(**{"counts.return_value.since.return_value": {"sent": sent}})
        with unittest.mock.patch("stackpipe.runs.watch.pipeline.wait_for", return_value=0):
            return one.end()

    def test_a_push_that_never_sent_is_a_failure(self):
        self.assertFalse(self.push(0, 3))
        self.assertTrue(self.push(1, 3))
        self.assertTrue(self.push(0, 0))  # there was nothing to send
