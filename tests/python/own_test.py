"""Tests the list of own files, and the folders of watches."""
import os
import tempfile
import unittest
import unittest.mock

from stackpipe.messages import Failure, UsageError
from stackpipe.watch import state, store
from stackpipe.watch.own import OwnFiles


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(self.path("dumps"))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text="text"):
        with open(self.path("dumps", name), "w", encoding="utf-8") as file:
            file.write(text)

    def own(self):
        return OwnFiles(self.path("dumps"), self.path("files"))


class Own(Folder):
    def test_the_oldest_own_files_go_and_the_files_of_others_stay(self):
        own = self.own()
        for name in ("a.svg", "mine.svg", "b.svg", "c.svg"):
            self.write(name)
            if name != "mine.svg":
                own.add(name)
        self.own().keep_latest(2)  # another process reads the list
        self.assertEqual(sorted(os.listdir(self.path("dumps"))), ["b.svg", "c.svg", "mine.svg"])
        self.assertEqual(self.own().names(), ["b.svg", "c.svg"])

    def test_a_file_that_was_changed_or_replaced_is_another_ones(self):
        own = self.own()
        for name in ("changed", "replaced", "link", "own"):
            self.write(name)
            own.add(name)
        self.write("changed", "other text")
        self.write("new", "text")
        os.rename(self.path("dumps", "new"), self.path("dumps", "replaced"))
        os.unlink(self.path("dumps", "link"))
        os.symlink("own", self.path("dumps", "link"))
        own.remove("changed")
        self.own().keep_latest(1)
        self.assertEqual(sorted(os.listdir(self.path("dumps"))), ["changed", "link", "own", "replaced"])

    def test_a_damaged_list_removes_nothing_outside(self):
        self.write("one")
        status = os.stat(self.path("dumps", "one"))
        identity = f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
        with open(self.path("files"), "w", encoding="utf-8") as file:
            file.write(f"{identity} ../dumps/one\n{identity} ..\nx y z one\n1 2\n{'9' * 30} 1 1 one\n\0\n{identity} one")
        self.assertEqual(self.own().names(), ["one"])

    def test_a_list_that_is_a_link_is_not_followed(self):
        self.write("list", "1 2 3 name\n")
        os.symlink("dumps/list", self.path("files"))
        self.assertNotIn("name", self.own())


class Store(Folder):
    def test_only_the_owner_may_enter_a_folder(self):
        os.mkdir(self.path("open"), 0o755)
        with self.assertRaisesRegex(Failure, "other users may enter it"):
            store.Store(self.path("open"))
        os.symlink("dumps", self.path("link"))
        with self.assertRaises(Failure):
            store.Store(self.path("link"))
        opened = store.create(self.folder, "new")
        self.assertEqual(os.stat(self.path("new")).st_mode & 0o777, 0o700)
        os.mkdir(opened.path_of("segments"), 0o755)
        os.chmod(opened.path_of("segments"), 0o750)
        with self.assertRaisesRegex(Failure, "segments: other users may enter it"):
            opened.make("segments")
        opened.close()

    def test_the_folder_of_another_user_is_refused(self):
        store.create(self.folder, "new").close()
        with unittest.mock.patch("os.geteuid", return_value=12345), self.assertRaisesRegex(Failure, "belongs to another user"):
            store.open_store(self.folder, "new")

    def test_one_watch_a_folder(self):
        first, second = store.create(self.folder, "new"), store.create(self.folder, "new")
        first.lock()
        with self.assertRaisesRegex(Failure, "another watch uses this folder"):
            second.lock()
        first.close()
        second.lock()
        second.close()

    def test_a_folder_that_was_replaced_is_not_the_same(self):
        opened = store.create(self.folder, "new")
        self.assertTrue(opened.is_there())
        os.rename(self.path("new"), self.path("old"))
        self.assertFalse(opened.is_there())
        os.mkdir(self.path("new"), 0o700)
        self.assertFalse(opened.is_there())
        opened.close()

    def test_names(self):
        self.assertEqual([store.name_for(text) for text in ("nginx", "/usr/bin/a b", "-x", "12")], ["nginx", "a_b", "_-x", "12"])
        for name in ("", "..", ".x", "a/b", "-x", "a\n", "x" * 65):
            with self.assertRaises(UsageError):
                store.check_name(name)

    def test_the_folder_of_watches(self):
        self.assertEqual(store.base_folder({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b", "XDG_STATE_HOME": "/x"}), "/var/lib/a")
        with unittest.mock.patch("os.geteuid", return_value=12345):
            self.assertEqual(store.base_folder({"XDG_STATE_HOME": "/x"}), "/x/stackpipe/watch")
            self.assertEqual(store.base_folder({"XDG_STATE_HOME": "x"}), os.path.expanduser("~/.local/state/stackpipe/watch"))
        with unittest.mock.patch("os.geteuid", return_value=0):
            self.assertEqual(store.base_folder({"XDG_STATE_HOME": "/x"}), "/var/lib/stackpipe/watch")

    def test_what_is_kept(self):
        opened = store.create(self.folder, "new")
        self.assertEqual(opened.kept(), store.Kept())
        opened.make("segments")
        for name, size, time in (("0000000001.pe", 5, 100), ("0000000002.pe", 7, 200), ("person.pe", 100, 1), ("00000000011.pe", 100, 1)):
            with open(opened.path_of(f"segments/{name}"), "wb") as file:
                file.write(bytes(size))
            os.utime(opened.path_of(f"segments/{name}"), (time, time))
        self.assertEqual(opened.kept(), store.Kept(12, 100, "0000000002.pe"))
        opened.close()


class State(Folder):
    def test_a_damaged_state_is_none(self):
        opened = store.create(self.folder, "new")
        self.assertEqual(state.read(opened), state.State())
        for text in ("", "{", "[1]", "7", "[" * 50000, '{"pid": "x", "since": true, "lost": 1e300, "dumps": -5, "target": 7, "start_ticks": null}'):
            with open(opened.path_of("state.json"), "w", encoding="utf-8") as file:
                file.write(text)
            self.assertEqual(state.read(opened), state.State(), text[:40])
        opened.close()

    def test_a_state_reads_back_and_knows_whether_its_watch_runs(self):
        from stackpipe.watch import processes

        opened = store.create(self.folder, "new")
        mine = processes.process_of(os.getpid())
        known = state.State(mine.pid, mine.start_ticks, "nginx", "cpu,waits", 1.5, True, 1, 2, 3, 4, 5.5)
        opened.write("state.json", known._asdict())
        self.assertEqual(state.read(opened), known)
        self.assertTrue(known.is_running)
        self.assertFalse(known._replace(start_ticks=mine.start_ticks + 1).is_running)  # the PID is used again
        opened.close()

    def test_the_list_escapes_names_and_shows_what_has_ended(self):
        opened = store.create(self.folder, "new")
        opened.write("state.json", state.State(1, 1, "evil\x1b[2J", "cpu", 0.0)._asdict())
        opened.close()
        os.mkdir(self.path("bad"), 0o755)
        printed = []
        with unittest.mock.patch("stackpipe.watch.state.print_out", printed.append), unittest.mock.patch("os.geteuid", return_value=os.geteuid()):
            with self.assertRaisesRegex(Failure, "other users may enter it"):
                state.print_list(self.folder)
        self.assertRegex(printed[0], r"(?m)^new +- ended +evil\\x1b\[2J")

    def test_counters_are_lines_of_prometheus_in_a_file_that_others_may_read(self):
        text = state.metrics("nginx", state.State(dumps=3, is_recording=True, without_s=1.25), store.Kept(2048, 0))
        for line in ('stackpipe_watch_dumps_total{watch="nginx"} 3', 'stackpipe_watch_recording{watch="nginx"} 1', 'stackpipe_watch_kept_bytes{watch="nginx"} 2048',
                     'stackpipe_watch_unrecorded_seconds_total{watch="nginx"} 1.250', "# TYPE stackpipe_watch_dumps_total counter"):
            self.assertIn(line + "\n", text)
        before = os.umask(0o077)
        try:
            state.write_metrics(self.path("watch.prom"), text)
        finally:
            os.umask(before)
        self.assertEqual(os.stat(self.path("watch.prom")).st_mode & 0o777, 0o644)
