"""Tests the lines about the times of a recording."""
import tempfile
import unittest

from stackpipe import times


class Summary(unittest.TestCase):
    FACTS = {"command": "x", "sleep": "0.000 s", "elapsed": "2.000 s", "on-cpu": "1.500 s", "io": "0.250 s", "parallelism": "1.50 threads while any ran, 0.75 over all time"}

    def test_has_the_times_that_are_known(self):
        self.assertEqual(times.summary(self.FACTS, ["f: I/O 0.250 s"]), [
            "wall time 2.000 s; all threads: CPU 1.500 s, I/O 0.250 s",
            "parallelism: 1.50 threads while any ran, 0.75 over all time",
            "largest reasons to wait: f: I/O 0.250 s"])
        self.assertEqual(times.summary({"lock": "1.000 s"}, []), ["all threads: lock 1.000 s"])
        self.assertEqual(times.summary({}, []), [])

    def test_facts_end_where_stacks_begin(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"# command: \xff\x1b[1m x\n# lock: 1.000 s\nmain;f 3\n# io: 9.000 s\n")
            file.flush()
            self.assertEqual(dict(times.facts_of(file.name)), {"command": "\udcff\x1b[1m x", "lock": "1.000 s"})
