"""Tests the spool: it yields each profile once, in order, and complete; it counts the others."""
import gzip
import os
import stat
import tempfile
import unittest

from stackpipe.push import spool
from stackpipe.messages import Failure

NAME = "1763809200000-1763809260000-7.pprof.gz"
ROOM = 1 << 30


def content_of(text):
    """Returns a profile's content of more than 100 bytes."""
    return spool.Profile(f"app{{x={text * 50}}}", 99, gzip.compress(text.encode(), mtime=0)).content()


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "a/b/spool")

    def make(self, room=ROOM):
        return spool.Spool(self.folder, room)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def put(self, one, minute, text="a"):
        return one.put(minute * 60000, (minute + 1) * 60000, content_of(text))

    def outbox(self, one):
        box = spool.Outbox.open(one)
        self.addCleanup(box.close)
        return box

    def minute(self, outgoing):
        return outgoing[0].from_ms // 60000


class Names(unittest.TestCase):
    def test_have_the_times(self):
        name = spool.parse_name(NAME)
        self.assertEqual(name, (1763809200000, 1763809260000, 7))
        self.assertEqual(name.text, NAME)

    def test_sort_by_age_and_then_number(self):
        names = [spool.SpoolName(5, 7, 3), spool.SpoolName(6, 6, 0), spool.SpoolName(6, 6, 10)]
        self.assertEqual(sorted(reversed(names)), names)
        self.assertLess(names[0].text, names[1].text)

    def test_what_is_none_is_left_alone(self):
        for name in ("", "counts", "sending", "1763809200000-1763809260000-7.pprof", "a-b-c.pprof.gz",
                     "1763809200000-1763809260000-07.pprof.gz", "1763809200000-1763809260000-.pprof.gz",
                     "1763809200000-1763809260000.pprof.gz", "176380920000-1763809260000-7.pprof.gz",
                     "1763809260000-1763809200000-7.pprof.gz", "1763809200000-1763809260000-+7.pprof.gz",
                     "1763809200000-1763809260000-99999999999.pprof.gz", "../17638092000-1763809260000-7.pprof.gz",
                     "1763809200000-1763809260000-7.pprof.gz.AbC123", NAME + "\n", NAME.replace("7.", "٧.")):
            self.assertIsNone(spool.parse_name(name), name)


class Content(unittest.TestCase):
    def test_comes_back(self):
        profile = spool.Profile("app{a=b c,d=é}", 99, gzip.compress(b"a profile"))
        self.assertEqual(spool.parse_content(profile.content()), profile)

    def test_readers_of_gzip_see_the_profile_alone(self):
        self.assertEqual(gzip.decompress(spool.Profile("app{}", 0, gzip.compress(b"a profile")).content()), b"a profile")

    def test_what_we_have_not_written_is_nothing(self):
        whole = spool.Profile("app{}", 1, b"").content()
        self.assertIsNotNone(spool.parse_content(whole))
        for size in range(len(whole)):
            self.assertIsNone(spool.parse_content(whole[:size]), size)
        for other in (gzip.compress(b"a profile"), spool.Profile("", 1, b"x").content(), whole.replace(b"push 1 1", b"push 1 x"),
                      whole.replace(b"push 1", b"push 2"), b"x" + whole):
            self.assertIsNone(spool.parse_content(other))

    def test_any_bytes_are_read_without_an_error(self):
        whole = spool.Profile("app{}", 1, b"profile").content()
        for place in range(len(whole)):
            for byte in (0, 1, 0x31, 0x80, 0xFF):
                changed = whole[:place] + bytes([byte]) + whole[place + 1:]
                profile = spool.parse_content(changed)
                if profile:
                    self.assertEqual(profile.content(), changed)


class Counted(unittest.TestCase):
    SOME = spool.Counts(sent=5, dropped=2, refused=1, damaged=4)

    def test_come_back_from_their_text(self):
        self.assertEqual(self.SOME.text(), "sent 5\ndropped 2\nrefused 1\ndamaged 4\n")
        self.assertEqual(spool.parse_counts(self.SOME.text()), self.SOME)

    def test_what_is_no_count_is_nothing(self):
        for text in ("", "sent -1\ndropped\nrefused 99999999999999999999\nodd 1\ndamaged x1", "sent 1 2\n", "sent ٧\n"):
            self.assertEqual(spool.parse_counts(text), spool.Counts(), text)
        self.assertEqual(spool.parse_counts("odd 3\nsent 7\n")["sent"], 7)

    def test_a_difference_is_never_negative(self):
        self.assertEqual(self.SOME.since(spool.Counts(sent=3, dropped=9, damaged=4)), spool.Counts(sent=2, refused=1))

    def test_losses_are_told_without_zeros(self):
        self.assertEqual(spool.Counts(sent=5).losses(), "")
        self.assertEqual(self.SOME.losses(), "2 dropped because the spool was full, 1 refused by the server, 4 half-written")


class Order(InFolder):
    def test_the_oldest_is_the_first(self):
        one = self.make()
        for number in (3, 1, 2):
            self.put(one, number, str(number))
        box = self.outbox(one)
        for number in (1, 2, 3):
            name, profile = box.take()
            self.assertEqual((name.from_ms, profile.content()), (number * 60000, content_of(str(number))))
            box.remove(name, "sent")
        self.assertIsNone(box.take())
        self.assertEqual((one.counts()["sent"], one.waiting()), (3, 0))

    def test_it_is_for_its_owner_alone(self):
        self.make()
        self.assertEqual(stat.S_IMODE(os.stat(self.folder).st_mode), 0o700)

    def test_what_is_given_back_is_the_next(self):
        one = self.make()
        self.put(one, 1)
        self.put(one, 2)
        box = self.outbox(one)
        for _ in range(3):
            outgoing = box.take()
            self.assertEqual(self.minute(outgoing), 1)
            box.release(outgoing[0])
        self.assertEqual(one.waiting(), 2)

    def test_profiles_of_the_same_time_are_two(self):
        one = self.make()
        self.put(one, 1, "a")
        box = self.outbox(one)
        first = box.take()
        self.put(one, 1, "b")  # while the other is being sent
        box.release(first[0])
        self.assertEqual(one.waiting(), 2)
        self.assertEqual([box.take()[1].content() for _ in range(2)], [content_of("a"), content_of("b")])


class Bounds(InFolder):
    SIZE = len(content_of("a"))

    def test_the_oldest_are_dropped_and_counted_when_it_is_full(self):
        one = self.make(3 * self.SIZE + 50)
        self.assertEqual(sum(self.put(one, number) for number in range(1, 6)), 2)
        self.assertEqual((one.counts()["dropped"], one.waiting()), (2, 3))
        self.assertEqual(self.minute(self.outbox(one).take()), 3)

    def test_what_is_on_its_way_is_spared_and_its_bytes_count(self):
        one = self.make(2 * self.SIZE + 50)
        self.put(one, 1)
        self.put(one, 2)
        box = self.outbox(one)
        first = box.take()
        self.assertEqual(self.put(one, 3), 1)
        box.remove(first[0], "sent")
        self.assertEqual(self.minute(box.take()), 3)
        self.assertEqual(one.counts(), spool.Counts(sent=1, dropped=1))

    def test_a_profile_larger_than_all_is_counted(self):
        one = self.make(self.SIZE - 1)
        with self.assertRaisesRegex(Failure, f"is dropped: there is room for {self.SIZE - 1}$"):
            self.put(one, 1)
        self.assertEqual((one.counts()["dropped"], one.waiting()), (1, 0))

    def test_counts_outlive_the_process(self):
        for run in (1, 2):
            one = self.make()
            self.put(one, 1)
            box = spool.Outbox.open(one)
            box.remove(box.take()[0], "refused")
            box.close()
            self.assertEqual(self.make().counts()["refused"], run)


class Planted(InFolder):
    def test_another_folder_in_place_of_the_spool_gets_nothing(self):
        os.makedirs(os.path.dirname(self.folder))
        os.chmod(os.path.dirname(self.folder), 0o777)
        one = self.make()
        elsewhere = os.path.join(os.path.dirname(self.folder), "elsewhere")
        os.makedirs(os.path.join(elsewhere, "sending"))
        os.rename(self.folder, f"{self.folder}.moved")
        os.symlink(elsewhere, self.folder)
        self.put(one, 1)
        box = self.outbox(one)
        name, _ = box.take()
        box.remove(name, "sent")
        self.assertEqual((os.listdir(elsewhere), os.listdir(os.path.join(elsewhere, "sending"))), (["sending"], []))

    def test_a_link_in_place_of_a_folder_is_refused(self):
        os.makedirs(self.folder)
        os.symlink("/", self.path("sending"))
        with self.assertRaisesRegex(Failure, "/sending: not a folder of ours$"):
            self.make()


class Killed(InFolder):
    def test_two_cannot_send(self):
        one = self.make()
        box = spool.Outbox.open(one)
        self.assertIsNone(spool.Outbox.open(self.make()))
        box.close()
        self.outbox(self.make())

    def test_what_a_killed_sender_had_waits_again(self):
        one = self.make()
        self.put(one, 1)
        killed = spool.Outbox.open(one)
        killed.take()
        killed.close()
        self.assertTrue(os.path.exists(self.path("sending/0000000060000-0000000120000-0.pprof.gz")))
        self.assertEqual(self.outbox(one).take()[1].content(), content_of("a"))

    def test_half_written_profiles_go_and_are_counted(self):
        self.make()
        for name in ("0000000060000-0000000120000-0.pprof.gz.AbC123", "counts.AbC123", "notes.AbC123"):
            self.write(name, b"x")
        self.assertEqual(self.make().counts()["damaged"], 1)
        self.assertEqual(self.make().counts()["damaged"], 1)
        self.assertEqual(sorted(os.listdir(self.folder)), ["counts", "notes.AbC123", "sending"])

    def test_what_is_no_profile_goes_and_is_counted(self):
        one = self.make()
        self.write("0000000060000-0000000120000-0.pprof.gz", b"")
        self.write("target", content_of("a"))
        os.symlink("target", self.path("0000000060001-0000000120000-0.pprof.gz"))
        os.mkfifo(self.path("0000000060002-0000000120000-0.pprof.gz"))
        self.put(one, 2, "b")
        self.assertEqual(self.outbox(one).take()[1].content(), content_of("b"))
        self.assertEqual(one.counts()["damaged"], 3)
        self.assertTrue(os.path.exists(self.path("target")))

    def test_a_folder_called_like_a_profile_is_in_nobodys_way(self):
        one = self.make()
        os.mkdir(self.path("0000000060000-0000000120000-0.pprof.gz"))
        self.put(one, 2)
        box = self.outbox(one)
        box.remove(box.take()[0], "sent")
        self.assertIsNone(box.take())
        self.assertEqual(one.waiting(), 0)

    def test_counts_that_cannot_be_written_keep_no_profile_there(self):
        one = self.make()
        os.makedirs(self.path("counts/in_the_way"))  # so that the file cannot be replaced
        self.put(one, 1)
        box = self.outbox(one)
        box.remove(box.take()[0], "refused")
        self.assertEqual((one.waiting(), one.counts()["refused"]), (0, 1))
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("counts.")], [])

    def test_a_pipe_in_place_of_the_counts_is_not_waited_for(self):
        one = self.make()
        os.mkfifo(self.path("counts"))
        self.assertEqual(one.counts()["sent"], 0)
        self.put(one, 1)
        box = self.outbox(one)
        box.remove(box.take()[0], "sent")
        self.assertEqual(self.make().counts()["sent"], 1)
