"""Tests the command line of profile_run, and how its commands parse and write text."""
import os
import re
import tempfile
import unittest

from stackpipe import options, pipeline
from stackpipe.runs import capture, compare, modes, profile_run
from stackpipe.messages import Failure, UsageError


def read(command, *arguments):
    return profile_run.Settings(command, options.read(
        profile_run.OPTIONS, arguments, lambda name, value: profile_run.check_value(command, name, value)))


class Settings(unittest.TestCase):
    def test_what_is_not_given(self):
        settings = read("capture")
        self.assertEqual((settings.output, settings.svg, settings.fail_over, settings.top, settings.pid, settings.work),
                         ("profiles", "", "5%", 20, "", None))

    def test_no_program_takes_a_path_for_an_option(self):
        self.assertEqual((read("list", "--output", "-x").output, read("diff", "--svg=-y").svg), ("./-x", "./-y"))

    def test_a_workload_is_split_at_blanks_and_by_nothing_else(self):
        self.assertEqual(read("capture", "--workload", " a\t'b c' $d ").workload(), ["a", "'b", "c'", "$d"])
        self.assertEqual(read("capture", "--", "a b").workload(), ["a b"])
        with self.assertRaisesRegex(UsageError, "^--workload, --: cannot be combined"):
            read("capture", "--workload", "a", "--", "b").workload()

    def test_values_that_are_wrong(self):
        for command, name, value, wanted in (
                ("capture", "pid", "x", "not a process: 'x'"), ("capture", "pid", "01", "not a process"),
                ("capture", "duration", "-1", "not a number of seconds: '-1'"), ("capture", "duration", "1e3", "not a number"),
                ("capture", "duration", "1.", "not a number of seconds"), ("capture", "mode", "fast", "not one of default, quick, "),
                ("ci", "runs", "0", "not a number above 0: '0'"), ("ci", "fail-over", "x%", "not a percentage"),
                ("ci", "work", "(", "not a regular expression: '('"), ("ci", "work", "", "not a regular expression"),
                ("watch", "interval", "0.0", "not a number of seconds"), ("watch", "limit", "f", "not FUNCTION=PERCENT"),
                ("watch", "limit", "=3", "not FUNCTION=PERCENT"), ("watch", "limit", "f=1234", "not FUNCTION=PERCENT"),
                ("capture", "workload", " \t", "not a program"), ("list", "output", "", "not a folder"),
                ("list", "work", "x", "only with capture or ci"), ("capture", "limit", "f=3%", "only with watch"),
                ("watch", "runs", "1", "only with ci"), ("ci", "insecure-http", "", "only with watch")):
            with self.subTest(name=name, value=value), self.assertRaises(UsageError) as caught:
                read(command, f"--{name}={value}" if value or name != "insecure-http" else f"--{name}")
            self.assertTrue(str(caught.exception).startswith(f"--{name}: {wanted}"), str(caught.exception))

    def test_values_that_are_right(self):
        read("watch", "--limit", "a=b=3.5%", "--limit", "f=20", "--interval", "0.5", "--keep=0", "--insecure-http", "--fail-over=7%")
        read("capture", "--duration", "007", "--mode", "hotcold", "--work", "did ([[:digit:]]+) orders")

    def test_runs_need_no_options(self):
        for command, arguments, wanted in (
                ("diff", ["a", "b"], {"before": "a", "after": "b"}), ("diff", ["a"], {"before": "a"}),
                ("diff", ["a", "--after", "b"], {"before": "a", "after": "b"}),
                ("diff", ["--before", "a", "b"], {"before": "a", "after": "b"}), ("analyze", ["a"], {"run": "a"})):
            with self.subTest(command=command, arguments=arguments):
                line = profile_run.with_runs(command, options.read(profile_run.OPTIONS, arguments, lambda name, value: value))
                self.assertEqual(({name: line.last(name) for name in wanted}, line.operands), (wanted, []))
        for command, arguments, wanted in (("diff", ["a", "b", "c"], "diff: unexpected 'c'"), ("list", ["a"], "list: unexpected 'a'"),
                                           ("diff", ["a", "--before", "b", "--after", "c"], "diff: unexpected 'a'")):
            with self.subTest(command=command, arguments=arguments), self.assertRaises(UsageError) as caught:
                profile_run.main([command, *arguments], pipeline.Tools("/nowhere"))
            self.assertEqual(str(caught.exception), f"{wanted} (see --help)")

    def test_every_command_has_a_module_with_its_function(self):
        import importlib

        for command, (module, _) in profile_run.COMMANDS.items():
            self.assertTrue(callable(getattr(importlib.import_module(f"stackpipe.runs.{module}"), f"run_{command}")))

    def test_regular_expressions_know_the_classes_of_posix(self):
        regex = profile_run.compile_regex("^[[:alpha:]_]+ ([[:digit:].]+)$")
        self.assertEqual(regex.search("done_x 12.5")[1], "12.5")
        self.assertIsNone(regex.search("done-x 12"))


class Target(unittest.TestCase):
    def test_what_can_be_recorded(self):
        self.assertEqual(capture.read_target(read("capture"), "default", ["a b", "c"])[:3], ([], ["a b", "c"], "'a b' c"))
        self.assertEqual(capture.read_target(read("capture"), "system", [])[:3], (["-a"], [], "the whole system"))
        self.assertEqual(capture.read_target(read("capture", "--pid", "999999999"), "quick", [])[:3],
                         (["-p", "999999999"], [], "process 999999999 ()"))

    def test_what_cannot(self):
        for arguments, mode, workload, wanted in (([], "default", [], "capture: nothing to record: give a program after --, --workload or --pid"),
                                                  (["--pid=1"], "default", ["a"], "--workload, --pid: cannot be combined"),
                                                  ([], "system", ["a"], "--mode system: cannot be combined"),
                                                  (["--pid=1"], "heap", [], "--mode heap: traces only a program that it starts")):
            with self.subTest(wanted=wanted), self.assertRaisesRegex(UsageError, "^" + re.escape(wanted)):
                capture.read_target(read("capture", *arguments), mode, workload)


class Modes(unittest.TestCase):
    def test_the_time_that_is_asked_for_counts(self):
        self.assertEqual(modes.mode_of("", "")[:4], ("default", "pe-record", 499, "10"))
        self.assertEqual(modes.mode_of("", "", "49")[:4], ("default", "pe-record", 49, "10"))
        self.assertEqual(modes.mode_of("heap", "").has_limit, False)
        self.assertEqual(modes.mode_of("quick", "0.0").has_limit, False)
        self.assertEqual(modes.mode_of("quick", "0.5").has_limit, True)
        self.assertEqual(modes.mode_of("quick", "3", is_command=True)[2:], (997, "3"))

    def test_a_command_is_recorded_to_its_end(self):
        for name in profile_run.MODES:
            self.assertFalse(modes.mode_of(name, "", is_command=True).has_limit, name)
        self.assertEqual(modes.mode_of("offcpu", "", is_command=True).hz, 0)

    def test_every_mode_is_in_the_help(self):
        self.assertEqual(set(profile_run.MODES), {modes.mode_of(name, "").name for name in profile_run.MODES})

    def test_the_scheduler_is_no_hot_spot(self):
        self.assertEqual(modes.without_scheduler(b"a;b;do_wait_[k];schedule_[k];__schedule_[k] 5\na;schedule_b;c 7\n"),
                         b"a;b;do_wait_[k] 5\na;schedule_b;c 7\n")
        self.assertEqual(modes.without_scheduler(b"a;f_[o];schedule_timeout_[o];schedule_[o];[I/O]_[o];[still waiting] 9\n"),
                         b"a;f_[o];[I/O]_[o];[still waiting] 9\n")


class Summary(unittest.TestCase):
    def test_a_cell_means_nothing_to_markdown_or_html(self):
        self.assertEqual(compare.cell("a|b<c>`d`\x1b[x](y)"), r"a b c  d  x1b x  y ")

    def test_no_line_ends_a_block(self):
        self.assertEqual(compare.block("a\n```\n\x1b\n"), "    a\n    ```\n    \\x1b\n")

    def test_verdicts(self):
        for status, shares, cost in ((0, "no share grew", "no function costs more"), (3, "shares grew", "functions cost more"),
                                     (1, "not compared", "not compared"), (139, "not compared", "not compared")):
            self.assertEqual(compare.verdict(compare.Compared([], "", "", status, 100)), shares)
            for option in ("--absolute", "--per"):
                self.assertEqual(compare.verdict(compare.Compared([option], "", "", status, 100)), cost)

    def test_runs_that_could_hide_growth_are_no_proof_that_there_is_none(self):
        said = "flamediff: b grew from 1% to 2%, but there are too few samples to tell this from noise (2 and 2)\n"
        wide = "count per run: before 115 samples, after 115: 0.00% (-49.00% .. +57.00%), noise\n"
        narrow = wide.replace("+57.00%", "+4.00%")
        unsure = "the runs are too few or too noisy to tell"
        for table, told, samples, wanted in (("", said, 1000, unsure), (wide, "", 1000, unsure), (narrow, "", 99, unsure),
                                             (narrow, "", 100, "no function costs more")):
            self.assertEqual(compare.verdict(compare.Compared(["--absolute"], table, told, 0, samples)), wanted)
            self.assertEqual(compare.verdict(compare.Compared(["--absolute"], table, told, 3, samples)), "functions cost more")


class Appending(unittest.TestCase):
    def test_a_link_is_replaced_and_what_it_leads_to_is_not_read(self):
        with tempfile.TemporaryDirectory() as folder:
            secret, path = os.path.join(folder, "secret"), os.path.join(folder, "summary")
            for name in (secret, path):
                compare.append(name, "one\n")
                compare.append(name, "two\n")
            os.unlink(path)
            os.symlink(secret, path)
            compare.append(path, "three\n")
            texts = []
            for name in (secret, path):
                with open(name, encoding="utf-8") as file:
                    texts.append(file.read())
            self.assertEqual((texts, os.path.islink(path)), (["one\ntwo\n", "three\n"], False))


class Sides(unittest.TestCase):
    class Known:
        """A run that has every value that Sides reads."""

        def __init__(self, work, rate="499", **meta):
            self.work, self.rate, self.stacks = work, rate, f"{work}.folded"
            self.known = {"arguments": ["./program"], "seconds_asked": 0, "interrupted": False, **meta}

        def meta(self):
            return self.known

        def number(self, key):
            return self.known["seconds_asked"] if key == "seconds_asked" else self.work

        def figure(self, key):
            return self.rate if key == "rate_hz" else str(self.work)

        def text(self, key):
            return "default" if key == "mode" else "cycles"

    def test_costs_of_a_unit_are_compared_where_all_know_their_work(self):
        sides = compare.Sides([self.Known(1), self.Known(2)], [self.Known(3), self.Known(4)])
        self.assertEqual(sides.options(read("ci")), ["--per", "1+2,3+4"])
        self.assertEqual(sides.arguments(), ["--runs", "1.folded", "2.folded", "--", "3.folded", "4.folded"])

    def test_and_not_where_they_do_not(self):
        for other in (self.Known(None), self.Known(0), self.Known(3, "99")):
            sides = compare.Sides([self.Known(1)], [other])
            self.assertEqual(sides.options(read("ci")), [])
            with self.assertRaisesRegex(Failure, "^--work: not all runs have an amount of work"):
                sides.options(read("ci", "--work", "x"))
        self.assertEqual(compare.Sides([self.Known(1)], [self.Known(2)]).arguments(), ["--", "1.folded", "2.folded"])

    def test_a_gate_compares_the_cost_of_whole_runs(self):
        runs = [self.Known(None), self.Known(None)]
        self.assertEqual(compare.Sides(runs, runs).cost_options(read("ci")), ["--absolute"])
        self.assertEqual(compare.Sides(runs, runs).cost_options(read("ci", "--no-strip")), ["--no-strip", "--absolute"])
        self.assertEqual(compare.Sides(runs, runs).cost_options(read("ci", "--shares")), [])
        worked = [self.Known(1), self.Known(2)]
        self.assertEqual(compare.Sides(worked, worked).cost_options(read("ci")), ["--per", "1+2,1+2"])
        self.assertEqual(compare.Sides(worked, worked).cost_options(read("ci", "--shares")), [])

    def test_costs_that_mean_nothing_are_not_compared(self):
        for other in ({"arguments": []}, {"seconds_asked": 10}, {"interrupted": True}, {"interrupted": None}):
            sides = compare.Sides([self.Known(None), self.Known(None)], [self.Known(None, **other)])
            with self.assertRaisesRegex(Failure, "^ci: only programs that run to their end"):
                sides.cost_options(read("ci"))
            self.assertEqual(sides.cost_options(read("ci", "--shares")), [])
        with self.assertRaisesRegex(Failure, "^ci: the runs differ in rate"):
            compare.Sides([self.Known(None)], [self.Known(None), self.Known(None, "99")]).cost_options(read("ci"))

    def test_a_pair_of_runs_does_not_show_how_costs_differ(self):
        for work in (None, 1):
            sides = compare.Sides([self.Known(work)], [self.Known(work)])
            with self.assertRaisesRegex(Failure, "^ci: one run of each side"):
                sides.cost_options(read("ci"))
            self.assertEqual(sides.cost_options(read("ci", "--shares")), [])

    def test_the_limit_is_that_of_what_is_compared(self):
        self.assertEqual([compare.limit_of(read("ci", *given)) for given in ((), ("--shares",), ("--fail-over", "3"))], ["1%", "5%", "3%"])
