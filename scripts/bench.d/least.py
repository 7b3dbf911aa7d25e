"""Of Google Benchmark's CSV (standard input): a line for each benchmark, its name and its least CPU time in ns."""
import csv
import sys

NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
lines = sys.stdin.read().splitlines()
start = next((i for i, line in enumerate(lines) if line.startswith("name,")), len(lines))
least = {}
for row in csv.DictReader(lines[start:]):
    name, unit = row["name"], row["time_unit"]
    if row["error_occurred"] or unit not in NS or name.rsplit("_", 1)[-1] in ("mean", "median", "stddev", "cv"):
        continue
    ns = float(row["cpu_time"]) * NS[unit]
    least[name] = min(ns, least.get(name, ns))
for name, ns in least.items():
    print(f"{name}\t{ns:.4g}" if ns < 1e4 else f"{name}\t{ns:.0f}")
