"""Tests that stackpipe finds its commands, and that an option means the same in all of them."""
import importlib
import subprocess
import sys
import unittest

from stackpipe import front
from stackpipe.runs import commands, profile_run
from stackpipe.messages import UsageError


class Commands(unittest.TestCase):
    def modules(self):
        return {name: importlib.import_module(f"stackpipe.{module}") for name, (module, *_) in front.COMMANDS.items()}

    def test_every_command_has_a_module(self):
        for name, module in self.modules().items():
            self.assertTrue(callable(module.main), name)

    def test_an_option_has_the_same_letter_in_all_commands(self):
        letters, names = {}, {}
        for module in [*self.modules().values(), profile_run]:
            for option in getattr(module, "OPTIONS", ()):
                self.assertEqual(letters.setdefault(option.name, option.letter), option.letter, option.name)
                if option.letter:
                    self.assertEqual(names.setdefault(option.letter, option.name), option.name, option.letter)

    def test_names_the_commands_that_there_are(self):
        with self.assertRaisesRegex(UsageError, "^unknown command 'rcord'; the commands are record, waits, "):
            front.main(["rcord"], None)
        with self.assertRaisesRegex(UsageError, "^unknown option '--all'; "):
            front.main(["--all"], None)

    def test_a_program_in_place_of_a_command(self):
        with self.assertRaisesRegex(UsageError, "^unknown command '/bin/sh'; to record a program: stackpipe record -- /bin/sh "):
            front.main(["/bin/sh", "-c", ":"], None)
        with self.assertRaisesRegex(UsageError, "^unknown command '/etc/passwd'; the commands are "):
            front.main(["/etc/passwd"], None)

    def test_runs_names_its_commands(self):
        with self.assertRaisesRegex(UsageError, "^runs: unknown command 'dance'; the commands are capture, "):
            commands.main(["dance"], None)

    def test_a_recording_starts_without_the_modules_that_it_may_need_later(self):
        # Together they took a sixth of the CPU time before the recorder starts.
        late = ("concurrent.futures", "json", "textwrap", "urllib.parse", "webbrowser")
        script = f"import sys, stackpipe.command, stackpipe.front, stackpipe.record; print([m for m in {late} if m in sys.modules])"
        shown = subprocess.run([sys.executable, "-BS", "-c", script], capture_output=True, check=True, text=True).stdout
        self.assertEqual(shown, "[]\n")
