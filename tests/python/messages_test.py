"""Tests that untrusted text is escaped before it is printed."""
import os
import unittest

from stackpipe import messages


class Printable(unittest.TestCase):
    def test_leaves_text_of_any_script(self):
        self.assertEqual(messages.printable("größe ключ 名前 'a'"), "größe ключ 名前 'a'")

    def test_escapes_what_steers_terminals(self):
        self.assertEqual(messages.printable("\x1b]0;x\x07\n\x7f\x9b"), r"\x1b]0;x\x07\x0a\x7f\xc2\x9b")

    def test_escapes_what_changes_the_direction_of_text_or_ends_lines(self):
        for character in "\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069":
            self.assertEqual(messages.printable(character), f"\\u{ord(character):04x}")

    def test_escapes_bytes_that_are_no_utf8(self):
        self.assertEqual(messages.printable(messages.text_of(b"a\xff\xc3")), r"a\xff\xc3")

    def test_keeps_lines_where_there_are_several(self):
        self.assertEqual(messages.printable_lines("a\x1b\nb\r\n"), "a\\x1b\nb\\x0d\n")


class OnATerminal(unittest.TestCase):
    def test_what_steers_it_is_escaped(self):
        ours, theirs = os.openpty()
        old = os.dup(1)
        try:
            os.dup2(theirs, 1)
            messages.print_out("a \x9b2J\u202eb\n")
        finally:
            os.dup2(old, 1)
            os.close(old)
            os.close(theirs)
        self.assertEqual(os.read(ours, 100), b"a \\xc2\\x9b2J\\u202eb\r\n")
        os.close(ours)


class Bytes(unittest.TestCase):
    def test_come_back_as_they_were(self):
        data = bytes(range(256)) + "名".encode()
        self.assertEqual(messages.bytes_of(messages.text_of(data)), data)


class PrintOut(unittest.TestCase):
    def print_into(self, descriptor):
        saved = os.dup(1)
        try:
            os.dup2(descriptor, 1)
            messages.print_out("text\n", 7)
        finally:
            os.dup2(saved, 1)
            os.close(saved)
            os.close(descriptor)

    def test_tells_of_a_full_disk(self):
        with self.assertRaises(messages.Failure) as caught:
            self.print_into(os.open("/dev/full", os.O_WRONLY))
        self.assertEqual((str(caught.exception), caught.exception.status), ("stdout: No space left on device", 7))

    def test_ends_in_silence_where_the_reader_has_gone(self):
        reading, writing = os.pipe()
        os.close(reading)
        with self.assertRaises(messages.Failure) as caught:
            self.print_into(writing)
        self.assertEqual((str(caught.exception), caught.exception.status), ("", 141))
