"""Tests how recording commands read their target."""
import os
import unittest
from unittest import mock

from stackpipe import options, targets
from stackpipe.messages import UsageError


def read(*arguments):
    return targets.read_target(options.read(targets.OPTIONS, arguments, runs_command=True), "stackpipe record -- ./program")


class Target(unittest.TestCase):
    def test_a_command_keeps_its_own_options(self):
        for arguments in (["-d", "2", "--", "a", "-p", "b"], ["-d", "2", "a", "-p", "b"]):
            self.assertEqual(read(*arguments), ([], ["a", "-p", "b"], "a -p b", ["-d", "2"]))

    def test_warns_of_our_options_among_those_of_a_command(self):
        for arguments, warned in ((["a", "-o", "x.svg"], "-o x.svg"), (["a", "b", "-d", "2"], "-d 2"), (["a", "-o", "x.o"], ""),
                                  (["a", "-p"], ""), (["--", "a", "-o", "x.svg"], "")):
            with self.subTest(arguments=arguments), mock.patch("stackpipe.targets.say") as say:
                read(*arguments)
                self.assertEqual([call.args[0] for call in say.call_args_list],
                                 [f"'{warned}' was passed to a; put options of stackpipe before the command"] * bool(warned))

    def test_running_targets(self):
        self.assertEqual(read("-a"), (["-a"], [], "the whole system", []))
        self.assertEqual(read("-t", "1,2"), (["-t", "1,2"], [], "thread 1,2", []))
        self.assertEqual(read("-p", "999999999,1")[:3], (["-p", "999999999,1"], [], "process 999999999,1"))

    def test_the_title_of_a_process_has_its_command_line(self):
        title = read("-p", str(os.getpid())).title
        self.assertTrue(title.startswith(f"process {os.getpid()} ("), title)
        self.assertIn("unittest", title)

    def test_refuses_wrong_command_lines(self):
        for wanted, arguments in (("nothing to record: give a command or -p PID; for example: stackpipe record -- ./program", []),
                                  ("--pid, --all: choose one of them", ["-p", "1", "-a"]),
                                  ("--all, a command: choose one of them", ["-a", "--", "b"]),
                                  ("--pid: give a process or thread", ["-p", ""]),
                                  *((f"--duration: not a number of seconds above 0: '{wrong}'", ["-d", wrong, "--", "b"])
                                    for wrong in ("0", "0.0", "x", "-1", "1e3", "", "."))):
            with self.subTest(arguments=arguments), self.assertRaises(UsageError) as caught:
                read(*arguments)
            self.assertTrue(str(caught.exception).startswith(wanted), str(caught.exception))
