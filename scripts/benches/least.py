"""Reads Google Benchmark's JSON (standard input); prints each benchmark's name and least CPU time in ns, one a line."""
import json
import sys

NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
least = {}
for run in json.load(sys.stdin)["benchmarks"]:
    if run["run_type"] != "iteration" or run.get("error_occurred"):
        continue
    name, ns = run["run_name"], run["cpu_time"] * NS[run["time_unit"]]
    least[name] = min(ns, least.get(name, ns))
for name, ns in least.items():
    print(f"{name}\t{ns:.4g}" if ns < 1e4 else f"{name}\t{ns:.0f}")
