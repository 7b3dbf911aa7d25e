"""Tests the grammar of command lines, which is the same as that of the tools."""
import unittest

from stackpipe import options
from stackpipe.messages import UsageError

TABLE = (options.Option("freq", "F", "HZ", "samples"), options.Option("label", "", "TEXT", "more"),
         options.Option("quiet", "q", "", "say nothing", also=("silent",)), options.HELP, options.VERSION)


def read(*arguments):
    return options.read(TABLE, arguments)


class Read(unittest.TestCase):
    def refuses(self, text, *arguments):
        with self.assertRaises(UsageError) as caught:
            read(*arguments)
        self.assertEqual(str(caught.exception), f"{text} (see --help)")
        self.assertEqual(caught.exception.status, 2)

    def test_values_in_all_spellings(self):
        for arguments in (["-F", "9"], ["-F9"], ["--freq", "9"], ["--freq=9"]):
            self.assertEqual(read(*arguments).last("freq"), "9")

    def test_a_value_may_look_like_an_option(self):
        self.assertEqual(read("--freq", "-1").last("freq"), "-1")
        self.assertEqual(read("--label", "--").last("label"), "--")

    def test_a_value_may_be_empty_and_may_hold_equal_signs(self):
        self.assertEqual(read("--label=").values["label"], [""])
        self.assertEqual(read("--label=a=b").last("label"), "a=b")

    def test_all_values_are_kept_and_the_last_one_counts(self):
        line = read("--label", "a", "-q", "--label=b")
        self.assertEqual(line.values["label"], ["a", "b"])
        self.assertEqual(line.last("label"), "b")
        self.assertTrue(line.has("quiet"))
        self.assertEqual(line.last("freq", "99"), "99")

    def test_operands_are_anywhere_in_front_of_the_command(self):
        line = read("a", "-F", "9", "-", "--", "b", "--freq")
        self.assertEqual(line.operands, ["a", "-"])
        self.assertEqual(line.command, ["b", "--freq"])
        self.assertIsNone(read("a").command)
        self.assertEqual(read("--").command, [])

    def test_an_older_name_counts_as_the_option(self):
        self.assertTrue(read("--silent").has("quiet"))
        self.assertNotIn("silent", options.describe(TABLE))

    def test_the_first_operand_may_start_a_command(self):
        for arguments in (["-q", "b", "--freq", "--", "c"], ["-q", "--", "b", "--freq", "--", "c"]):
            line = options.read(TABLE, arguments, runs_command=True)
            self.assertEqual((line.operands, line.command), ([], ["b", "--freq", "--", "c"]))
            self.assertEqual(line.has_dashes, arguments[1] == "--")

    def test_nothing_after_help_counts(self):
        self.assertTrue(read("--help", "--nonsense").has("help"))

    def test_refuses_abbreviations_and_what_is_not_in_the_table(self):
        for word in ("--fre", "--fre=9", "--nonsense", "-x", "-qF", "--quiet=yes", "---freq"):
            self.refuses(f"unrecognised option '{word}'", word)

    def test_refuses_a_missing_value(self):
        self.refuses("--freq: needs a value", "a", "--freq")
        self.refuses("-F: needs a value", "-F")

    def test_checks_values_in_their_order(self):
        seen = []
        options.read(TABLE, ["--label", "a", "-q", "-F1"], check=lambda *pair: seen.append(pair))
        self.assertEqual(seen, [("label", "a"), ("quiet", ""), ("freq", "1")])


class Describe(unittest.TestCase):
    def test_an_option_without_text_is_left_out(self):
        self.assertEqual(options.describe((TABLE[2]._replace(text=""), TABLE[2])), options.describe((TABLE[2],)))

    def test_a_line_each_in_80_columns(self):
        long = options.Option("a-very-long-option-indeed", "", "VALUE", "word " * 20)
        self.assertEqual(options.describe((TABLE[0], TABLE[2], long)),
                         "  -F, --freq HZ             samples\n"
                         "  -q, --quiet               say nothing\n"
                         "      --a-very-long-option-indeed VALUE  word word word word word word word word\n"
                         + "                            word word word word word word word word word word\n"
                         + "                            word word\n")
