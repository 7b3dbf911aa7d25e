"""Tests the command line of profile-push, and the inputs that it rejects."""
import gzip
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

from stackpipe import pipeline
from stackpipe.push import profile_push, spool
from stackpipe.messages import Failure, UsageError


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "s")
        self.said = []
        patch = unittest.mock.patch("stackpipe.push.profile_push.say", lambda text: self.said.append(text))
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(os.umask, os.umask(0o077))

    def run_it(self, *arguments, data=b""):
        stdin = unittest.mock.Mock(buffer=io.BytesIO(data))
        with unittest.mock.patch.object(sys, "stdin", stdin):
            return profile_push.main(["--spool", self.folder, *arguments], pipeline.Tools("/nowhere"))

    def refuses(self, text, *arguments, data=b"", kind=Failure):
        with self.assertRaises(kind) as caught:
            self.run_it(*arguments, data=data)
        self.assertEqual(str(caught.exception), text)

    def names(self):
        return sorted(name for name in os.listdir(self.folder) if name.endswith(".gz"))

    def test_a_profile_goes_into_the_spool(self):
        data = gzip.compress(b"a profile")
        self.assertEqual(self.run_it("--from", "1700000000.5", "--until", "1700000060", "--name", "app", "--label", "env=test", data=data), 0)
        self.assertEqual(self.names(), ["1700000000500-1700000060000-0.pprof.gz"])
        with open(os.path.join(self.folder, self.names()[0]), "rb") as file:
            profile = spool.parse_content(file.read())
        self.assertEqual((profile.pprof, profile.rate_hz), (data, 0))
        self.assertRegex(profile.series, r"^app\{env=test,hostname=[A-Za-z0-9_./-]+\}$")

    def test_what_is_no_profile_is_refused(self):
        self.refuses("stdin: not a compressed pprof profile: stackfold --to pprof writes one", data=b"main;work 1\n")
        self.refuses("/nowhere: No such file or directory", "/nowhere")
        self.assertFalse(os.path.exists(self.folder))

    def test_a_profile_that_was_cut_off_or_damaged_is_refused(self):
        whole = gzip.compress(b"a" * 5000 + b"a profile")
        for size in (len(whole) - 1, len(whole) // 2, 10, 2):
            self.refuses("stdin: not a complete profile: the gzip data is cut off", data=whole[:size])
        for place in (len(whole) - 6, len(whole) // 2):
            damaged = bytearray(whole)
            damaged[place] ^= 1
            self.refuses("stdin: not a complete profile: the gzip data is damaged", data=bytes(damaged))
        self.refuses("stdin: not a complete profile: the gzip data is damaged", data=whole + b"more")
        self.assertFalse(os.path.exists(self.folder))

    def test_wrong_options(self):
        for text, arguments in (
                ("--name: not a name of letters, digits, '-', '.', '/' and '_': 'a b'", ["--name", "a b"]),
                ("--label: not KEY=VALUE with a KEY of letters, digits, '.' and '_', and a VALUE without ',' and '}': 'a'", ["--label", "a"]),
                ("--label: a label is given twice: 'a'", ["--label", "a=1", "--label", "a=2"]),
                ("--label: name and labels are longer than 4096 bytes", [f"--label={key}={'x' * 2000}" for key in "abc"]),
                ("--from: later than --until", ["--from", "5", "--until", "4"]),
                ("--until: not a number of seconds up to 9999999999: '10000000000'", ["--until", "10000000000"]),
                ("--from: not a number of seconds up to 9999999999: '-1'", ["--from", "-1"]),
                ("--rate: not a number of samples per second: '0'", ["--rate", "0"]),
                ("--spool-size: not a number of bytes up to 1024G, such as 256M: '0'", ["--spool-size", "0"]),
                ("--spool-size: not a number of bytes up to 1024G, such as 256M: '1025G'", ["--spool-size", "1025G"]),
                ("--spool: not a folder: ''", ["--spool", ""]),
                ("--follow: only with --url", ["--follow"]),
                ("--token-file: only with --url", ["--token-file", "x"]),
                ("--name: cannot be combined with --url", ["--url", "localhost", "--name", "x"]),
                ("--url: sends the profiles in the spool, and accepts no FILE", ["--url", "localhost", "x.gz"]),
                ("--tenant: not a name of letters, digits and !-_.*'(): 'a\nb'", ["--url", "localhost", "--tenant", "a\nb"]),
                ("--timeout: not whole seconds from 1: '0'", ["--url", "localhost", "--timeout", "0"]),
                ("--timeout: not a number of seconds up to 3600: '4000'", ["--url", "localhost", "--timeout", "4000"]),
                ("one profile at a time", ["a.gz", "b.gz"])):
            with self.subTest(arguments=arguments):
                self.refuses(f"{text} (see --help)", *arguments, kind=UsageError)

    def test_sizes(self):
        for text, wanted in (("1", 1), ("1k", 1024), ("256M", 256 << 20), ("1024G", 1 << 40)):
            self.assertEqual(profile_push.read_bytes("x", text), wanted)

    def test_a_dry_run_reads_and_writes_nothing(self):
        token = os.path.join(os.path.dirname(self.folder), "token")
        with open(token, "w", encoding="utf-8") as file:
            file.write("secret\n")
        os.chmod(token, 0o400)
        self.assertEqual(self.run_it("--dry-run", data=b"no profile"), 0)
        self.assertEqual(self.run_it("--dry-run", "--url", "localhost", "--token-file", token), 0)
        self.assertFalse(os.path.exists(self.folder))
        self.refuses(f"{token}x: No such file or directory", "--dry-run", "--url", "localhost", "--token-file", f"{token}x")

    def test_an_empty_spool_is_done_at_once(self):
        self.assertEqual(self.run_it("--url", "http://localhost:1"), 0)
        self.assertEqual(self.said, ["0 profiles sent"])

    def test_a_server_that_is_not_there_leaves_it_in_the_spool(self):
        self.run_it(data=gzip.compress(b"a profile"))
        self.assertEqual(self.run_it("--url", "http://127.0.0.1:1"), 1)
        self.assertEqual(self.said, [f"{self.folder}: 1 profile from before",
                                     "http://127.0.0.1:1/ingest: Connection refused; unsent profiles stay in the spool",
                                     f"0 profiles sent; 1 profile not sent yet, in {self.folder}: the next run sends it"])
        self.assertEqual(len(self.names()), 1)


class Labels(unittest.TestCase):
    def test_are_a_key_and_a_value(self):
        self.assertEqual(profile_push.parse_label("_env.1=a=b {é"), ("_env.1", "a=b {é"))

    def test_that_would_end_early_are_refused(self):
        for text in ("", "a", "=b", "a=", "a-b=c", "1a=b", ".a=b", "a b=c", "a=b,c", "a=b}", "a=b\nc", "a=\x7f", "a=\udcff", "__name__=x",
                     "é=x", "a" * 1025 + "=b", "a=" + "b" * 2049, "a=" + "é" * 1025):
            self.assertIsNone(profile_push.parse_label(text), text[:20])

    def test_are_in_the_order_of_their_names(self):
        self.assertEqual(profile_push.series_text("app", {}), "app{}")
        self.assertEqual(profile_push.series_text("app", {"b": "2", "a": "1 2=3"}), "app{a=1 2=3,b=2}")
