"""Tests pipelines without a shell."""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from stackpipe import pipeline
from stackpipe.messages import Failure

TOOLS = pipeline.Tools("/nowhere", {"PATH": os.environ["PATH"], "LC_ALL": "xx_YY"})


class Pipe(unittest.TestCase):
    def test_stages_read_what_the_one_before_prints(self):
        self.assertEqual(TOOLS.read([["printf", "b\\na\\n"], ["sort"], ["tr", "a", "x"]]), ([0, 0, 0], b"x\nb\n"))

    def test_every_stage_has_a_status(self):
        self.assertEqual(TOOLS.pipe([["sh", "-c", "exit 3"], ["false"], ["true"]]), [3, 1, 0])

    def test_a_signal_is_told_as_a_shell_tells_it(self):
        self.assertEqual(TOOLS.pipe([["sh", "-c", "kill -KILL $$"], ["true"]]), [137, 0])

    def test_a_stage_hears_of_a_reader_that_has_gone(self):
        self.assertEqual(TOOLS.pipe([["yes"], ["true"]]), [128 + signal.SIGPIPE, 0])

    def test_arguments_are_no_shells(self):
        self.assertEqual(TOOLS.read([["printf", "%s", "$(touch x) `y` ; *"]])[1], b"$(touch x) `y` ; *")

    def test_a_tool_that_is_not_there_ends_what_runs_already(self):
        with self.assertRaisesRegex(Failure, "^no-such-tool is not installed$"):
            TOOLS.pipe([["sleep", "1000"], ["no-such-tool"]])

    def test_tools_get_the_c_locale_and_users_programs_what_the_user_has(self):
        self.assertEqual(TOOLS.read([["printenv", "LC_ALL"]])[1], b"C\n")
        process = TOOLS.start(["printenv", "LC_ALL"], as_user=True, stdout=subprocess.PIPE)
        self.assertEqual(process.communicate()[0], b"xx_YY\n")


class Signals(unittest.TestCase):
    def test_a_background_job_of_a_script_hears_sigint_but_not_what_nohup_ignores(self):
        script = """import os, signal
from stackpipe import pipeline
heard = []
pipeline.on_stop(lambda number, frame: heard.append(number))
for number in pipeline.STOP_SIGNALS:
    os.kill(os.getpid(), number)
print([int(number) for number in heard])
pipeline.listen_again(pipeline.Tools("/nowhere"))
os.kill(os.getpid(), signal.SIGINT)
"""
        shell = "trap '' HUP; \"$0\" -c \"$1\" & wait"  # a shell without job control ignores SIGINT in the background
        printed = subprocess.run(["sh", "-c", shell, sys.executable, script], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(printed, b"%s\n" % str([int(signal.SIGINT), int(signal.SIGTERM)]).encode())


    def test_keys_never_reach_what_is_started_after_the_recording(self):
        script = """import os, signal, threading
from stackpipe import pipeline
tools = pipeline.Tools("/nowhere")
pipeline.stop_listening(tools)
pipeline.on_stop(lambda number, frame: None)
is_over = threading.Event()
def type_keys():
    while not is_over.is_set():
        os.killpg(0, signal.SIGINT)
typist = threading.Thread(target=type_keys, daemon=True)  # it ends with this thread, however that ends
typist.start()
print({pipeline.wait_for(tools.start(["true"])) for _ in range(100)})
is_over.set()
typist.join()
"""
        printed = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True, start_new_session=True).stdout
        self.assertEqual(printed, b"{0}\n")


class Outcome(unittest.TestCase):
    def test_is_that_of_what_draws_if_all_before_it_succeeded(self):
        for statuses, wanted in (([0, 0], 0), ([0, 2], 2), ([0, 1], 1), ([0, 137], 1), ([1, 0], 1), ([2, 2], 1), ([0], 0)):
            self.assertEqual(pipeline.outcome([["stackfold"], ["flamesvg"]][-len(statuses):], statuses), wanted, statuses)

    def test_a_part_of_damaged_input_suffices_if_it_is_wanted(self):
        stages = [["pe-symbolize"], ["stackfold"], ["flamesvg"]]
        self.assertEqual(pipeline.outcome(stages, [1, 1, 0]), 1)
        self.assertEqual(pipeline.outcome(stages, [1, 1, 0], takes_part=True), 0)
        for statuses in ([2, 1, 0], [1, 139, 0], [1, 1, 1]):
            self.assertEqual(pipeline.outcome(stages, statuses, takes_part=True), 1, statuses)
        self.assertEqual(pipeline.outcome(stages, [1, 1, 2], takes_part=True), 2)

    def test_facts_alone_are_no_part(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stackfold")
            for text, wanted in (("# samples: 0 samples", 2), ("", 2), ("# samples: 1 sample\na 1", 0)):
                with open(path, "w", encoding="utf-8") as script:
                    script.write(f"#!/bin/sh\n[ -z '{text}' ] || printf '{text}\\n'\nexit 1\n")
                os.chmod(path, 0o700)
                tools = pipeline.Tools(folder, TOOLS.users)
                out = os.path.join(folder, "out.folded")
                self.assertEqual(pipeline.draw(tools, out, [["stackfold"]], takes_part=True), wanted, text)
                self.assertEqual(os.path.exists(out), wanted == 0, text)

    def test_a_wrong_command_line_of_another_tool_is_a_failure(self):
        self.assertEqual(pipeline.outcome([["pe-symbolize"], ["stackfold"]], [0, 2]), 1)


class Where(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def tool(self, place, name="stackfold"):
        os.makedirs(os.path.join(self.folder, place), exist_ok=True)
        path = os.path.join(self.folder, place, name)
        os.symlink("/bin/true", path)
        return path

    def find(self, path):
        return os.path.realpath(os.path.dirname(pipeline.Tools(os.path.join(self.folder, "bin"), {"PATH": path}).find("stackfold")))

    def test_beside_the_command_first(self):
        self.tool("bin")
        self.tool("path")
        self.assertEqual(self.find(os.path.join(self.folder, "path")), os.path.join(os.path.realpath(self.folder), "bin"))

    def test_then_in_path_and_in_the_build_folder_of_a_checkout(self):
        self.tool("build/tools")
        os.makedirs(os.path.join(self.folder, "bin"))
        self.assertEqual(self.find("/nowhere"), os.path.join(os.path.realpath(self.folder), "build/tools"))
        self.tool("path")
        self.assertEqual(self.find(os.path.join(self.folder, "path")), os.path.join(os.path.realpath(self.folder), "path"))


class Draw(unittest.TestCase):
    def test_keeps_the_old_picture_unless_every_stage_succeeded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.svg")
            for stages, wanted, content in (([["printf", "one"]], 0, b"one"), ([["false"], ["printf", "two"]], 1, b"one"),
                                            ([["sh", "-c", "printf three; exit 2"]], 1, b"one"),
                                            ([["true"], ["flamesvg"]], 2, b"one"),
                                            ([["true"], ["printf", "four"]], 0, b"four")):
                tools = pipeline.Tools("/nowhere", {"PATH": os.environ["PE_TOOLS"] + ":" + os.environ["PATH"]})
                self.assertEqual(pipeline.draw(tools, path, stages, subprocess.DEVNULL), wanted)
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), content)
                self.assertEqual(os.listdir(folder), ["a.svg"])
