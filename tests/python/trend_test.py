"""Tests the shares of a function, and their chart."""
import os
import tempfile
import unittest
import xml.etree.ElementTree

from stackpipe import pipeline
from stackpipe.runs import trend

TOOLS = pipeline.Tools("/nowhere", {"PATH": os.environ["PE_TOOLS"] + ":" + os.environ["PATH"]})


def share_of(function, path):
    """Returns the shares by the names without what differs between builds."""
    return trend.share_of(function, path, trend.Reader(TOOLS))


class Shares(unittest.TestCase):
    def folded(self, text):
        file = tempfile.NamedTemporaryFile(delete=False)
        self.addCleanup(os.unlink, file.name)
        with file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return file.name

    def test_a_stack_counts_once_however_many_clones_are_in_it(self):
        path = self.folded("main;f.isra.0;f.part.1.cold 30\nmain;f [clone .x];g 20\nmain;h_[k] 50\n")
        self.assertEqual(share_of("f", path), (30, 50, True))
        self.assertEqual(share_of("f.isra.0", path), (30, 50, True))
        self.assertEqual(share_of("h", path), (50, 50, True))
        self.assertEqual(share_of("none", path), (0, 0, False))

    def test_numbers_of_lambdas_do_not_matter_unless_asked(self):
        path = self.folded("main;L$$Lambda$7.run_[j];L.lambda$main$3 30\nmain;L$$Lambda$9/0x00007f0a1c0d2000.run 20\nmain;x 50\n")
        self.assertEqual(share_of("L$$Lambda$469/0x00007f0a1c0d2999.run", path), (20, 50, True))
        self.assertEqual(share_of("L.lambda$main$4", path), (30, 30, True))
        kept = trend.Reader(TOOLS, strips_names=False)
        self.assertEqual(trend.share_of("L$$Lambda$7.run", path, kept), (0, 30, True))
        self.assertEqual(trend.share_of("L$$Lambda$8.run", path, kept), (0, 0, False))

    def test_a_profile_without_samples_has_none(self):
        self.assertIsNone(share_of("f", self.folded("")))
        self.assertIsNone(share_of("f", self.folded("no count\n\n")))

    def test_facts_are_no_stacks(self):
        self.assertEqual(share_of("f", self.folded("# host: nan\n# command: f inf\nf 1\ng 3\n")), (25, 25, True))

    def test_names_may_be_no_utf8(self):
        self.assertEqual(share_of("\udcff", self.folded(b"\xff 1\nb 1\n")).total_percent, 50)

    def test_near_names_are_the_hottest_first(self):
        path = self.folded("app::Work::thirty 3\napp::Work::thirteen.cold;x 5\nthings 1\n" + "n" * 300 + "thirt 9\n")
        self.assertEqual(trend.near_names("Other::thirt", path, trend.Reader(TOOLS)), ["n" * 200 + "...", "app::Work::thirteen", "app::Work::thirty"])


class Picture(unittest.TestCase):
    def rows(self, *shares):
        return [trend.Row(f"2026-01-0{number}T\u202e<", "7", trend.Share(share / 2, share, True)) for number, share in enumerate(shares)]

    def test_is_well_formed_whatever_the_names_are(self):
        for shares in ((0,), (100,), (3, 40), (0, 0, 0)):
            text = trend.picture_of("Share of <a>&\"\x1b\uffff", self.rows(*shares))
            xml.etree.ElementTree.fromstring(text)
            self.assertEqual(text.count("<circle"), 2 * len(shares))
            self.assertNotIn("\u202e", text)

    def test_blocks_are_between_0_and_the_largest(self):
        self.assertEqual(trend.sparkline([0, 50, 100]), "▁▅█")
        self.assertEqual(trend.sparkline([0, 0]), "▁▁")
        self.assertEqual(trend.sparkline([99, 100]), "██")


class Table(unittest.TestCase):
    def test_runs_without_samples_have_no_share(self):
        rows = [trend.Row("a", "0", None), trend.Row("b", "9", trend.Share(1, 30, True))]
        text = trend.table_of("f\x1b", rows)
        self.assertIn("share of f\\x1b in 2 runs\n\ntotal 30.00 to 30.00 %  █\n", text)
        self.assertIn(f"{'a':<22} {'0':>9} {'-':>8} {'-':>8}\n", text)
