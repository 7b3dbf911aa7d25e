"""Tests the folder of runs, with valid and invalid content."""
import json
import os
import stat
import tempfile
import unittest

from stackpipe import files
from stackpipe.runs import store
from stackpipe.messages import Failure


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = folder.name

    def make(self, name, stacks="a 1\n", **meta):
        folder = os.path.join(self.output, name)
        os.mkdir(folder)
        for file, text in (("meta.json", json.dumps({"format": 1, **meta})), ("stacks.folded", stacks)):
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                out.write(text)
        return store.Run(folder)

    def write(self, run, file, data):
        with open(run.path(file), "wb") as out:
            out.write(data)


class Reading(InFolder):
    def test_oldest_first_and_those_of_one_second_by_number(self):
        names = ["2026-01-02T03-04-04Z", "2026-01-02T03-04-04Z-2", "2026-01-02T03-04-04Z-10", "2026-01-02T03-04-05Z"]
        for name in reversed(names):
            self.make(name)
        os.mkdir(os.path.join(self.output, "watch"))
        self.assertEqual([run.name for run in store.read_runs(self.output)], names)
        self.assertEqual(store.read_runs(os.path.join(self.output, "none")), [])

    def test_folders_that_only_have_the_name_are_told_where_asked_for(self):
        os.mkdir(os.path.join(self.output, "2026-01-02T03-04-04Z"))
        self.assertEqual(store.read_runs(self.output), [])
        self.assertIn("2026-01-02T03-04-04Z   broken: no meta.json", store.table_of(store.read_runs(self.output, with_broken=True)))

    def test_what_is_no_number_is_no_figure(self):
        for number, value in enumerate(("7", True, None, [], -1, float("inf"), {})):
            run = self.make(f"200{number}-T-Z", samples=value)
            self.assertEqual(run.figure("samples"), "-", value)
        run = self.make("2026-T-Z", samples=7, seconds=1.50, lost=0.000000001)
        self.assertEqual([run.figure(key) for key in ("samples", "seconds", "lost")], ["7", "1.5", "0.000000001"])

    def test_a_file_that_is_no_json_is_a_broken_run_and_no_more(self):
        run = self.make("2026-01-02T03-04-04Z")
        for data in (b"", b"{", b"[]", b"7", b"[" * 100000, b'{"format": 0}', b'{"format": "1"}', b"\xff"):
            self.write(run, "meta.json", data)
            self.assertEqual(run.why_broken(), "meta.json cannot be read", data[:20])
            self.assertEqual((run.text("mode"), run.figure("samples"), run.unit), ("", "-", "samples"))
        self.write(run, "meta.json", b'{"format": 2}')
        self.assertEqual(run.why_broken(), "a later version of stackpipe made it")
        self.write(run, "meta.json", b'{"format": 1, "mode": "\x1b[1m"}')  # a control character, which JSON forbids
        self.assertEqual((run.why_broken(), run.text("mode")), ("", "\x1b[1m"))
        self.assertNotIn("\x1b", store.table_of([run]))


class Finding(InFolder):
    def test_the_latest_ones_have_samples(self):
        self.make("2026-01-01T00-00-00Z")
        self.make("2026-01-02T00-00-00Z")
        self.make("2026-01-03T00-00-00Z", stacks="")
        self.assertEqual(store.find_run(self.output, "latest", "--run").name, "2026-01-02T00-00-00Z")
        self.assertEqual(store.find_run(self.output, "previous", "--run").name, "2026-01-01T00-00-00Z")
        with self.assertRaisesRegex(Failure, "^--run: no latest run with samples in 'none'$"):
            store.find_run("none", "latest", "--run")

    def test_by_name_or_folder(self):
        run = self.make("2026-01-01T00-00-00Z")
        self.assertEqual(store.find_run(self.output, run.name, "x").folder, run.folder)
        self.assertEqual(store.find_run("none", run.folder + "/", "x").folder, run.folder)
        with self.assertRaisesRegex(Failure, "^--before: not a run: 'other'$"):
            store.find_run(self.output, "other", "--before")

    def test_runs_that_count_something_else_are_refused(self):
        with self.assertRaisesRegex(Failure, "^--before: 2026-T-Z counts bytes, not samples$"):
            store.must_count_alike("--before", self.make("2026-T-Z", mode="heap"), "samples")


class Keeping(InFolder):
    def test_a_name_that_is_taken_gets_a_number(self):
        self.make("stamp")
        self.make("stamp-2")
        opened = files.open_folder(self.output)
        draft = files.temporary_folder(opened, ".draft-")
        self.assertEqual(store.keep_run(draft, opened, self.output, "stamp").folder, os.path.join(self.output, "stamp-3"))
        self.assertEqual(sorted(os.listdir(self.output)), ["stamp", "stamp-2", "stamp-3"])

    def test_a_draft_whose_name_another_user_has_taken_changes_nothing_of_theirs(self):
        elsewhere = os.path.join(self.output, "elsewhere")
        os.mkdir(elsewhere, 0o700)
        os.chmod(self.output, 0o777)
        opened = files.open_folder(self.output)
        draft = files.temporary_folder(opened, ".draft-")
        name = os.path.join(self.output, files.name_of_folder(draft))
        os.rename(name, f"{name}.moved")
        os.symlink(elsewhere, name)
        store.keep_run(draft, opened, self.output, "stamp")
        self.assertEqual(stat.S_IMODE(os.stat(elsewhere).st_mode), 0o700)


class Hostile(InFolder):
    def test_figures_of_any_size_and_kind_are_no_figures(self):
        for text in ("1" * 400, "1" * 5000, "-" + "1" * 5000, "1e999", "NaN", "Infinity", "1" * 400 + ".5", '"5"', "[5]", "true", "null", "-1"):
            run = self.make(f"2026-T-Z{len(os.listdir(self.output))}")
            self.write(run, "meta.json", b'{"format": 1, "samples": %s}' % text.encode())
            self.assertEqual((text[:9], run.figure("samples"), run.why_broken()), (text[:9], "-", ""))
            self.assertIn(" - ", store.table_of([run]))

    def test_what_is_no_json_is_reported(self):
        for text in ("[" * 100000, '{"format": 1, "a": ' + "[" * 100000, "", "\xff", '{"format": "1"}', '{"format": 1, "format": 0}', "7"):
            run = self.make(f"2026-T-Z{len(os.listdir(self.output))}")
            self.write(run, "meta.json", text.encode("latin-1"))
            self.assertEqual((text[:20], run.why_broken()), (text[:20], "meta.json cannot be read"))

    def test_a_pipe_in_place_of_a_file_does_not_block(self):
        run = self.make("2026-T-Z")
        os.unlink(run.path("meta.json"))
        os.mkfifo(run.path("meta.json"))
        self.assertEqual(run.meta(), {})


class Programs(unittest.TestCase):
    def test_the_number_of_a_process_tells_nothing(self):
        self.assertEqual(store.program_of("process 12 (nginx)"), store.program_of("process 13 (nginx)"))
        self.assertNotEqual(store.program_of("process 12 (nginx)"), store.program_of("nginx"))
