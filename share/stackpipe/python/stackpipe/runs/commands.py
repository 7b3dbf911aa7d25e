"""stackpipe runs: the commands of profile_run(1), and profile-push(1)."""
from typing import Sequence

from stackpipe.push import profile_push
from stackpipe.runs import profile_run
from stackpipe.pipeline import Tools

#: Other names of commands.
_ALSO = {"show": "analyze"}
#: All commands, for completions.
COMMANDS = sorted((*profile_run.COMMANDS, *_ALSO, "push"))


def main(arguments: Sequence[str], tools: Tools) -> int:
    """Runs one of the commands."""
    command, *rest = arguments or ["--help"]
    if command == "push":
        return profile_push.main(rest, tools)
    return profile_run.main([_ALSO.get(command, command), *rest], tools)
