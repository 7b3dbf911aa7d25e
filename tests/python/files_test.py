"""Tests that files are new, complete, and in the right place."""
import os
import stat
import tempfile
import threading
import unittest
import unittest.mock

from stackpipe import files
from stackpipe.messages import Failure


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def names(self):
        return sorted(os.listdir(self.folder))

    def content(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)


class Draft(InFolder):
    def test_is_not_there_until_it_is_kept(self):
        with files.Draft(self.path("a")) as draft:
            draft.file.write(b"text")
            self.assertFalse(os.path.exists(self.path("a")))
            draft.keep()
        self.assertEqual(self.names(), ["a"])
        self.assertEqual(self.content("a"), "text")

    def test_leaves_nothing_and_the_old_file_as_it_was_if_it_is_not_kept(self):
        self.write("a", "old")
        for error in (None, ValueError):
            with self.subTest(error=error):
                try:
                    with files.Draft(self.path("a")) as draft:
                        draft.file.write(b"half")
                        if error:
                            raise error
                except ValueError:
                    pass
                self.assertEqual(self.names(), ["a"])
                self.assertEqual(self.content("a"), "old")

    def test_replaces_a_link_and_leaves_what_it_leads_to(self):
        self.write("precious", "precious")
        os.symlink("precious", self.path("a"))
        files.write_file(self.path("a"), "new")
        self.assertFalse(os.path.islink(self.path("a")))
        self.assertEqual((self.content("a"), self.content("precious")), ("new", "precious"))

    def test_is_of_the_mode_that_the_users_mask_says(self):
        old = os.umask(0o027)
        try:
            files.write_file(self.path("a"), "text")
        finally:
            os.umask(old)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("a")).st_mode), 0o640)

    def test_writes_a_pipe_of_ours_as_it_is(self):
        os.mkfifo(self.path("pipe"))
        seen = []

        def take():
            with open(self.path("pipe"), "rb") as file:
                seen.append(file.read())

        reader = threading.Thread(target=take)
        reader.start()
        files.write_file(self.path("pipe"), b"text")
        reader.join()
        self.assertEqual(seen, [b"text"])
        self.assertEqual(self.names(), ["pipe"])

    def test_writes_a_device_as_it_is(self):
        files.write_file("/dev/null", "text")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        with self.assertRaisesRegex(Failure, "^/dev/full: No space left on device$"):
            files.write_file("/dev/full", "text")

    @unittest.skipUnless(os.geteuid() == 0, "gives a pipe to another user")
    def test_refuses_a_pipe_of_another_user(self):
        os.mkfifo(self.path("pipe"))
        os.chown(self.path("pipe"), 12345, 12345)
        for act in (files.check_writable, lambda path: files.write_file(path, "text")):
            with self.assertRaisesRegex(Failure, "pipe: is another user's pipe$"):
                act(self.path("pipe"))

    def test_refuses_a_folder_and_a_folder_that_is_not_there(self):
        for act in (files.check_writable, lambda path: files.write_file(path, "text")):
            with self.assertRaisesRegex(Failure, "^" + self.folder + ": Is a directory$"):
                act(self.folder)
            with self.assertRaisesRegex(Failure, "none/a: No such file or directory$"):
                act(self.path("none/a"))
        self.assertEqual(self.names(), [])


class Planted(InFolder):
    """Another user changes what the names lead to while a command runs."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o777)
        self.write("precious", "precious")

    def plant(self, name, target="precious"):
        """Puts a link at a name, in place of anything that is there."""
        os.symlink(self.path(target), self.path("link"))
        os.rename(self.path("link"), self.path(name))

    def test_a_link_that_takes_the_place_of_a_pipe_is_not_written(self):
        os.mkfifo(self.path("a"))
        held = os.open(self.path("a"), os.O_RDWR)
        with files.Draft(self.path("a")) as draft:
            draft.file.write(b"text")
            self.plant("a")
            draft.keep()
        self.assertEqual((self.content("precious"), os.read(held, 9)), ("precious", b"text"))
        os.close(held)

    def test_a_link_that_takes_the_name_is_replaced(self):
        with files.Draft(self.path("a")) as draft:
            draft.file.write(b"text")
            self.plant("a")
            draft.keep()
        self.assertEqual((self.content("precious"), self.content("a")), ("precious", "text"))
        self.assertFalse(os.path.islink(self.path("a")))

    def test_a_link_is_replaced_wherever_it_leads(self):
        os.mkfifo(self.path("pipe"))
        for target in ("precious", "/dev/null", "/dev/stdout", "pipe", "none"):
            self.plant("a", target)
            self.assertFalse(files.is_written_in_place(self.path("a")))
            files.check_writable(self.path("a"))
            self.assertTrue(os.path.islink(self.path("a")))
            files.write_file(self.path("a"), "text")
            self.assertEqual((target, os.path.islink(self.path("a")), self.content("a")), (target, False, "text"))
        self.assertEqual(self.names(), ["a", "pipe", "precious"])

    def test_another_folder_in_place_of_ours_gets_nothing(self):
        os.mkdir(self.path("folder"))
        os.mkdir(self.path("elsewhere"))
        with files.Draft(self.path("folder/a")) as draft:
            os.rename(self.path("folder"), self.path("moved"))
            self.plant("folder", "elsewhere")
            draft.keep(on_disk=True)
        self.assertEqual((os.listdir(self.path("elsewhere")), os.listdir(self.path("moved"))), ([], ["a"]))

    def test_another_folder_in_place_of_a_temporary_one_gets_and_loses_nothing(self):
        folder = files.temporary_folder(self.folder, "work-")
        os.mkdir(self.path("elsewhere"))
        self.write("elsewhere/precious", "precious")
        name = files.name_of_folder(folder)
        os.rename(self.path(name), self.path("moved"))
        self.plant(name, "elsewhere")
        files.write_new(os.path.join(folder, "a"), "text")
        self.assertEqual((os.listdir(self.path("elsewhere")), os.listdir(self.path("moved"))), (["precious"], ["a"]))
        files.remove_folder(folder)
        self.assertEqual(self.content("elsewhere/precious"), "precious")
        self.assertFalse(os.path.exists(self.path("moved")))

    def test_a_folder_that_only_we_can_rename_has_its_name(self):
        self.assertTrue(files.temporary_folder(self.folder).startswith("/proc/"))
        os.chmod(self.folder, 0o1777)
        self.assertTrue(files.temporary_folder(self.folder).startswith(self.folder))
        os.mkdir(self.path("ours"))
        self.assertEqual(files.open_folder(self.path("ours")), self.path("ours"))
        os.chmod(self.folder, 0o777)
        self.assertTrue(files.open_folder(self.path("ours")).startswith("/proc/"))

    def test_a_link_that_others_can_change_is_not_part_of_the_name(self):
        with tempfile.TemporaryDirectory() as ours:
            self.plant("way", ours)
            folder = files.open_folder(self.path("way"))
            self.plant("way", ".")
            files.write_new(os.path.join(folder, "a"), "text")
            self.assertEqual((os.listdir(ours), self.names()), (["a"], ["precious", "way"]))
            files.close_folder(folder)

    def test_a_folder_is_removed_with_its_folders_but_not_where_links_lead(self):
        folder = files.temporary_folder(self.folder)
        os.mkdir(os.path.join(folder, "b"))
        files.write_new(os.path.join(folder, "b/c"), "text")
        os.mkdir(self.path("elsewhere"))
        os.symlink(self.path("elsewhere"), os.path.join(folder, "d"))
        files.remove_folder(folder)
        self.assertEqual(self.names(), ["elsewhere", "precious"])

    @unittest.skipUnless(os.geteuid() == 0, "makes a device")
    def test_a_disk_is_refused(self):
        os.mknod(self.path("a"), stat.S_IFBLK | 0o600, os.makedev(7, 1_000_000))
        for act in (files.check_writable, files.is_written_in_place, lambda path: files.write_file(path, "text")):
            with self.assertRaisesRegex(Failure, "a: is a block device$"):
                act(self.path("a"))

    def test_descriptors_have_fixed_names(self):
        with open(self.path("a"), "w+b") as file:
            for name in (f"/dev/fd/{file.fileno()}", f"/proc/self/fd/{file.fileno()}"):
                self.assertTrue(files.is_written_in_place(name))
                files.write_file(name, "text")
        self.assertEqual(self.content("a"), "texttext")
        with self.assertRaisesRegex(Failure, "^/dev/fd/987654: Bad file descriptor$"):
            files.write_file("/dev/fd/987654", "text")

    def test_only_a_file_is_read_and_nothing_waits(self):
        os.mkfifo(self.path("pipe"))
        self.plant("a")
        for name, follows in (("pipe", True), ("", True), ("a", False), ("none", True)):
            with self.assertRaises(OSError):
                files.open_regular(self.path(name), follows)
        with files.open_regular(self.path("a")) as file:
            self.assertEqual(file.read(), b"precious")


class Create(InFolder):
    def test_refuses_what_is_there_be_it_a_link_that_leads_nowhere(self):
        os.symlink("nowhere", self.path("a"))
        with self.assertRaises(FileExistsError):
            files.create(self.path("a"))
        self.assertEqual(self.names(), ["a"])

    def test_tries_another_name_where_one_is_taken(self):
        self.write("a.000000", "theirs")
        names = [bytes(6), b"random"]
        with unittest.mock.patch("os.urandom", side_effect=lambda count: names.pop(0)):
            files.write_file(self.path("a"), "ours")
        self.assertEqual(self.names(), ["a", "a.000000"])
        self.assertEqual(self.content("a.000000"), "theirs")

    def test_a_draft_is_known_by_its_name_which_may_be_as_long_as_names_may_be(self):
        for name in ("a.svg", "n" * 255):
            with files.Draft(self.path(name)) as draft:
                [draft_name] = self.names()
                self.assertEqual(files.replaced_by(draft_name), name[:248])
                draft.keep(on_disk=True)
            self.assertEqual(self.names(), [name])
            os.unlink(self.path(name))
        for name in ("a.svg", "a.12345", "a.1234567", ".AbC123", "a.AbC12_"):
            self.assertEqual(files.replaced_by(name), "")

    def test_a_new_one_takes_the_place_of_a_pipe(self):
        os.mkfifo(self.path("a"))
        with files.Draft(self.path("a"), is_new=True) as draft:
            draft.keep()
        self.assertTrue(os.path.isfile(self.path("a")))

    def test_names_are_not_foreseen(self):
        self.assertNotEqual(files.temporary_folder(self.folder), files.temporary_folder(self.folder))

    def test_a_temporary_folder_is_for_its_owner(self):
        path = files.temporary_folder(self.folder)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o700)
        with self.assertRaisesRegex(Failure, "none: No such file or directory$"):
            files.temporary_folder(self.path("none"))


class WhyNotWritten(InFolder):
    def test_says_nothing_where_something_can_be_written(self):
        self.assertEqual(files.why_not_written(self.folder), "")
        self.assertEqual(self.names(), [])

    def test_says_why(self):
        self.assertIn("No such file or directory", files.why_not_written(self.path("none")))
