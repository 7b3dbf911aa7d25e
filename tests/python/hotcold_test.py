"""Tests how hotcold parses its command line and converts folded text."""
import unittest

from stackpipe import hotcold, options
from stackpipe.messages import UsageError


class Folding(unittest.TestCase):
    def test_all_frames_that_wait_are_marked_but_the_first(self):
        self.assertEqual(hotcold.as_waiting(b"sh;main;a b", b"7"), b"sh;main_[o];a b_[o] 7\n")

    def test_a_stack_of_one_frame_is_marked_all_the_same(self):
        self.assertEqual(hotcold.as_waiting(b"sh", b"7"), b"sh_[o] 7\n")

    def test_nanoseconds_become_microseconds(self):
        self.assertEqual(hotcold.in_microseconds(b"sh;main", b"1500600"), b"sh;main 1501\n")


class Request(unittest.TestCase):
    def read(self, *arguments):
        return hotcold.read_request(options.read(hotcold.OPTIONS, arguments))

    def test_a_command_and_its_limit(self):
        request = self.read("a.svg", "-d", "1.5", "--", "b", "-d")
        self.assertEqual((request.out, request.command, request.limit, request.pid), ("a.svg", ["b", "-d"], ["-d", "1.5"], ""))

    def test_what_is_wrong(self):
        for wanted, arguments in (("the name of the picture is missing", ["-p", "1"]),
                                  ("a process or a command is missing", ["a.svg"]),
                                  ("a process or a command is missing", ["a.svg", "--"]),
                                  ("-p, --: only one of them", ["a.svg", "-p", "1", "--", "b"]),
                                  ("the command goes behind --", ["a.svg", "b", "--", "c"]),
                                  ("--keep: no folder '/nowhere'", ["a.svg", "--keep", "/nowhere", "--", "b"]),
                                  *(("--duration: not a number of seconds above 0: ", ["a.svg", "-d", wrong, "--", "b"])
                                    for wrong in ("0", "0.0", "x", "-1", "1e3", "", "."))):
            with self.subTest(arguments=arguments), self.assertRaises(UsageError) as caught:
                self.read(*arguments)
            self.assertTrue(str(caught.exception).startswith(wanted), str(caught.exception))
