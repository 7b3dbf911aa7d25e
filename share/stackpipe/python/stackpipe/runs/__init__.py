"""The commands that keep profiles as runs: profile_run(1), stackpipe runs."""
