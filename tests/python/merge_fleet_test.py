"""Tests how merge_fleet handles its command line, its tree of merges, hosts, messages, and sums."""
import os
import resource
import tempfile
import unittest
import unittest.mock
from decimal import Decimal

from stackpipe import options, pipeline
from stackpipe.merge import dask as merge_dask, here as merge_here, merge_fleet, parallel as merge_parallel, tree as merge_tree
from stackpipe.messages import Failure, UsageError


def read(*arguments):
    return options.read(merge_fleet.OPTIONS, arguments)


def totals(read_count, written, lines=1, stacks=1):
    return merge_tree.Totals(lines, Decimal(read_count), stacks, Decimal(written))


class Numbers(unittest.TestCase):
    def test_a_number_and_what_is_none(self):
        self.assertEqual(merge_fleet.read_number(read("-j", "12"), "jobs", 1, "3"), 12)
        self.assertEqual(merge_fleet.read_number(read(), "jobs", 1, "3"), 3)
        for text in ("0", "-1", "01", "1e3", "", "1000000", "2 "):
            with self.assertRaisesRegex(UsageError, f"^--jobs: not a number above 0: '{text}'"):
                merge_fleet.read_number(read("--jobs", text), "jobs", 1, "3")
        with self.assertRaisesRegex(UsageError, "^--fan-in: not a number above 1: '1'"):
            merge_fleet.read_number(read("--fan-in=1"), "fan-in", 2, "3")

    def test_files_open_at_a_time_are_within_the_limit_of_descriptors(self):
        for limit, wanted in ((resource.RLIM_INFINITY, 100), (1024, 100), (220, 100), (120, 50), (24, 2), (3, 2)):
            self.assertEqual(merge_fleet.usual_fan_in(limit), wanted)


class Names(unittest.TestCase):
    def list_of(self, data):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return merge_fleet.read_list(file.name)

    def test_a_zero_byte_follows_each_and_may_lack_behind_the_last(self):
        self.assertEqual(self.list_of(b"a b\0c\nd\0"), ["a b", "c\nd"])
        self.assertEqual(self.list_of(b"a\0b"), ["a", "b"])
        self.assertEqual(self.list_of(b""), [])

    def test_they_may_be_no_utf8(self):
        self.assertEqual([os.fsencode(name) for name in self.list_of(b"\xff\0")], [b"\xff"])

    def test_what_begins_like_an_option_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            old = os.getcwd()
            os.chdir(folder)
            try:
                for name in ("-", "-n"):
                    with open(name, "w", encoding="utf-8"):
                        pass
                self.assertEqual(merge_fleet.read_names(read("--", "-", "-n")), ["./-", "./-n"])
                with self.assertRaisesRegex(Failure, "^1 of 2 files missing: nothing is written$"):
                    merge_fleet.read_names(read("-", "none"))
            finally:
                os.chdir(old)


class Unpacking(unittest.TestCase):
    def test_the_first_bytes_tell_and_not_the_name(self):
        for data, wanted in ((b"\x1f\x8b\x08", "gzip"), (b"\x28\xb5\x2f\xfd\x00", "zstd"), (b"\x28\xb5\x2f", ""), (b"a 1\n", ""), (b"", "")):
            with tempfile.NamedTemporaryFile(suffix=".gz") as file:
                file.write(data)
                file.flush()
                self.assertEqual("".join(merge_here.unpacker_of(file.name)[:1]), wanted)


class Sums(unittest.TestCase):
    def test_of_any_size_are_exact(self):
        self.assertEqual(merge_tree.check_sums([totals("18446744073709551615.25", 0, 2), totals("0.5", 0, 3)], totals(0, "18446744073709551615.75", 9, 4)),
                         totals("18446744073709551615.75", "18446744073709551615.75", 5, 4))

    def test_what_was_lost_is_told(self):
        with self.assertRaisesRegex(Failure, r"^a count of 12.5 was read, but of 12 written: something was lost$"):
            merge_tree.check_sums([totals("12.50", 0)], totals(0, "12.00"))
        for first, last in (([None], totals(1, 1)), ([totals(1, 1)], None)):
            with self.assertRaisesRegex(Failure, "something was lost$"):
                merge_tree.check_sums(first, last)

    def test_are_taken_from_what_stackfold_says(self):
        self.assertEqual(merge_here.tell("stackfold: read 1 line, a count of 2.5; wrote 3 stacks, a count of 4\n", {}),
                         totals("2.5", 4, 1, 3))
        self.assertIsNone(merge_here.tell("", {}))


class Tree(unittest.TestCase):
    def inputs_of(self, *arguments):
        return [[len(group) for group in level] for level in merge_tree.tree_of(*arguments)]

    def test_a_few_files_are_one_merge_unless_other_machines_have_them(self):
        self.assertEqual(self.inputs_of(16, 4, 100), [[16]])
        self.assertEqual(self.inputs_of(1, 4, 100, True), [[1], [1]])
        self.assertEqual(self.inputs_of(16, 4, 100, True), [[16], [1]])

    def test_the_first_level_uses_all_jobs_and_no_merge_exceeds_the_fan_in(self):
        self.assertEqual(self.inputs_of(86, 2, 100), [[43, 43], [2]])
        self.assertEqual(self.inputs_of(29, 3, 2)[0], [2] * 14 + [1])
        for count in (1, 2, 15, 16, 17, 99, 100, 101, 12345):
            for jobs, fan_in in ((1, 2), (3, 7), (64, 100)):
                levels = merge_tree.tree_of(count, jobs, fan_in)
                self.assertLessEqual(max(len(group) for level in levels for group in level), fan_in)
                for below, level in zip([range(count), *levels], levels):  # each result of a level is merged once
                    self.assertEqual([position for group in level for position in group], list(range(len(below))))
                self.assertEqual(len(levels[-1]), 1)

    def test_the_results_of_a_level_are_removed_after_the_next(self):
        events = []

        def merge_level(names, level):
            events.append(names)
            return ["".join(names[group.start:group.stop]) for group in level], [totals(len(level), 0)]

        levels = merge_tree.tree_of(5, 1, 2)[:-1]
        self.assertEqual(merge_tree.climb(list("abcde"), levels, merge_level, events.append), (["abcd", "e"], [totals(3, 0)]))
        self.assertEqual(events, [list("abcde"), ["ab", "cd", "e"], "ab", "cd", "e"])


class Reports(unittest.TestCase):
    def test_a_report_is_read_as_it_is_written(self):
        said = f"merge_fleet: {merge_tree.report_of(3, totals('18446744073709551615.50', 1, 7, 2))}\n"
        self.assertEqual(merge_tree.read_report(said, 3), totals("18446744073709551615.5", "18446744073709551615.5", 7, 2))

    def test_a_merge_of_fewer_files_or_without_a_report_does_not_count(self):
        said = f"merge_fleet: {merge_tree.report_of(3, totals(1, 1))}\n"
        self.assertIsNone(merge_tree.read_report(said, 4))
        self.assertIsNone(merge_tree.read_report("", 1))

    def test_a_report_of_another_machine_may_hold_anything(self):
        report = "merge_fleet: 3 files: read {} lines, a count of {}; wrote {} stacks\n"
        with unittest.mock.patch("stackpipe.merge.tree.say_lines"):
            for lines, count, stacks in (("9" * 5000, "1", "1"), ("1", "9" * 5000, "1"), ("1", "1", "9" * 5000), ("1", "..", "1"), ("1", ".", "1"),
                                         ("1", "1.2.3", "1"), ("\u0661", "1", "1"), ("1", "1e9", "1")):
                self.assertIsNone(merge_tree.read_report(report.format(lines, count, stacks), 3))

    def test_endless_messages_are_cut_and_the_report_stays(self):
        said = "x" * 100 + "\n"
        report = f"merge_fleet: {merge_tree.report_of(3, totals(1, 1))}\n"
        with unittest.mock.patch("stackpipe.merge.tree.say_lines") as forwarded:
            self.assertIsNotNone(merge_tree.read_report(said * 10000 + report, 3))
        [[text]] = [call[0] for call in forwarded.call_args_list]
        self.assertLess(len(text), 70000)
        self.assertRegex(text, r"^merge_fleet: [0-9]+ characters of messages left out\nx{100}\n")

    def test_a_file_of_endless_messages_is_not_read_as_a_whole(self):
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(1 << 40)
            file.seek(0, os.SEEK_END)
            file.write(b"\nlast\n")
            file.flush()
            text = merge_parallel._read(file.name)
        self.assertTrue(text.endswith("left out\nlast\n"), text[-100:])


class Future:
    """The future of a result, or of an exception."""

    def __init__(self, result):
        self._result = result

    def result(self):
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result


class Workers(unittest.TestCase):
    """The workers of a Dask cluster return anything."""

    def setUp(self):
        self.cluster = merge_dask.Cluster.__new__(merge_dask.Cluster)
        self.cluster._address = "tcp://h:1"

    def test_what_is_no_sum_is_refused(self):
        self.assertEqual(self.cluster._sum_of(Future((b"sum", "said"))), b"sum")
        for result in (None, 7, b"sum", "sum", (), (b"sum",), ("sum", "said"), [[], []], {"0": b"sum"}):
            with self.assertRaisesRegex(Failure, "^--dask: tcp://h:1: a worker has returned no sum$"):
                self.cluster._sum_of(Future(result))

    def test_errors_are_short(self):
        for error in (RuntimeError(), RuntimeError(1, 2), RuntimeError("1", "2"), RuntimeError("x" * 100000), MemoryError("\n" * 100000),
                      RecursionError("x\n" * 100000), KeyError(b"x" * 100000)):
            with self.assertRaises(Failure) as caught:
                self.cluster._result_of(Future(error))
            self.assertLess(len(str(caught.exception)), 600)

    def test_messages_of_a_failed_merge_are_forwarded_and_cut(self):
        with unittest.mock.patch("stackpipe.merge.dask.say_lines") as forwarded, self.assertRaisesRegex(Failure, "a merge ended with status 3$"):
            self.cluster._result_of(Future(RuntimeError(3, "said\n" * 100000)))
        self.assertLess(len(forwarded.call_args[0][0]), 70000)


class Hosts(unittest.TestCase):
    def test_only_names_are_hosts(self):
        self.assertEqual(merge_parallel.read_hosts("a,root@b-1.example,a"), ["a", "root@b-1.example"])
        for text in ("", "a,", "-a", "a b", "2/a", "a:22", "a:b@c", "..", ":", "@a", "a;b", "a\n", "$(a)", "a@-b"):
            with self.assertRaisesRegex(UsageError, "^--ssh: not a host"):
                merge_parallel.read_hosts(text)

    def test_the_last_attempt_of_the_log_counts(self):
        header = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"
        log = header + "2\th1\t1.5\t0.1\t0\t9\t0\t0\tx\n1\th1\t1.5\t0.1\t0\t9\t255\t0\tx\n1\th2\t1.5\t0.1\t0\t9\t0\t9\tx\n"
        self.assertEqual(merge_parallel.read_log(log), {2: ("h1", 0), 1: ("h2", 137)})
        self.assertEqual(merge_parallel.read_log(header), {})
        self.assertEqual(merge_parallel.read_log(log + "3\th1\t1.5\t0.1\t0"), merge_parallel.read_log(log))

    def test_names_are_one_word_that_has_a_limit(self):
        self.assertRegex(merge_parallel.token_of(["a b", "\n';{}", "\udcff"]), "^[A-Za-z0-9+/=]+$")
        with self.assertRaisesRegex(Failure, "^/x+ and the 8 names after it .* use a smaller --fan-in$"):
            merge_parallel.token_of(["/" + "x" * 4000] * 9)


class Jobs(unittest.TestCase):
    def test_a_merge_that_fails_has_the_status_of_the_tool_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = os.path.join(folder, "stackfold")
            with open(tool, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexit 3\n")
            os.chmod(tool, 0o755)
            temp = os.path.join(folder, "temp")
            os.mkdir(temp)
            with merge_here.Merger(pipeline.Tools(folder), temp, 2) as merger, self.assertRaises(Failure) as caught:
                merger.submit([tool], merger.new_path()).result()
            self.assertEqual(caught.exception.status, 3)
            self.assertEqual(os.listdir(temp), [])
