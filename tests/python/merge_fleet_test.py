"""Tests how merge_fleet handles its command line, stackfold's messages, and sums."""
import os
import resource
import tempfile
import unittest
from decimal import Decimal

from stackpipe import merge_fleet, options, pipeline
from stackpipe.messages import Failure, UsageError


def read(*arguments):
    return options.read(merge_fleet.OPTIONS, arguments)


def totals(read_count, written, lines=1, stacks=1):
    return merge_fleet.Totals(lines, Decimal(read_count), stacks, Decimal(written))


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
                self.assertEqual("".join(merge_fleet.unpacker_of(file.name)[:1]), wanted)


class Sums(unittest.TestCase):
    def test_of_any_size_are_exact(self):
        self.assertEqual(merge_fleet.check_sums([totals("18446744073709551615.25", 0, 2), totals("0.5", 0, 3)], totals(0, "18446744073709551615.75", 9, 4)),
                         totals("18446744073709551615.75", "18446744073709551615.75", 5, 4))

    def test_what_was_lost_is_told(self):
        with self.assertRaisesRegex(Failure, r"^a count of 12.5 was read, but of 12 written: something was lost$"):
            merge_fleet.check_sums([totals("12.50", 0)], totals(0, "12.00"))
        for first, last in (([None], totals(1, 1)), ([totals(1, 1)], None)):
            with self.assertRaisesRegex(Failure, "something was lost$"):
                merge_fleet.check_sums(first, last)

    def test_are_taken_from_what_stackfold_says(self):
        self.assertEqual(merge_fleet.tell("stackfold: read 1 line, a count of 2.5; wrote 3 stacks, a count of 4\n", {}),
                         totals("2.5", 4, 1, 3))
        self.assertIsNone(merge_fleet.tell("", {}))


class Jobs(unittest.TestCase):
    def test_a_merge_that_fails_has_the_status_of_the_tool_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = os.path.join(folder, "stackfold")
            with open(tool, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexit 3\n")
            os.chmod(tool, 0o755)
            temp = os.path.join(folder, "temp")
            os.mkdir(temp)
            with merge_fleet.Merger(pipeline.Tools(folder), temp, 2) as merger, self.assertRaises(Failure) as caught:
                merger.submit([tool], merger.new_path()).result()
            self.assertEqual(caught.exception.status, 3)
            self.assertEqual(os.listdir(temp), [])
