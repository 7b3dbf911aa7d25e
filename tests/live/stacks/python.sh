#!/bin/bash
# The functions of a Python program that was started without any flag have names, between the native functions
# that call them and that they call: in shares, recursion, callbacks from C, generators and threads.
. "$(dirname "$0")/../lib.sh"
python=$(PATH=/usr/bin:/bin command -v python3) || skip 'no python3'
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case $version in 3.11 | 3.12 | 3.13) ;; *) skip "frames of Python $version are not known" ;; esac
cat >"$dir/work.py" <<'END'
import ctypes, sys, threading, time, zlib

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(i * i for i in range(100))

def fifty(s): spin(s * .5)
def thirty(s): (lambda t: spin(t))(s * .3)
class Twenty:
    def method(self, s): spin(s * .2)

def shares(s):
    for _ in range(5):
        fifty(s / 5); thirty(s / 5); Twenty().method(s / 5)

def deep(n, s): return deep(n - 1, s) if n else spin(s)
def recursion(s):
    sys.setrecursionlimit(10000)
    deep(2000, s)

def compresses(s):
    end = time.thread_time() + s
    while time.thread_time() < end:
        zlib.compress(bytes(range(256)) * 400, 9)

def by_value(a, b):
    spin(0.0005)
    return a[0] - b[0]
def sorts(s):
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.POINTER(ctypes.c_int)] * 2)
    end = time.thread_time() + s
    while time.thread_time() < end:
        ctypes.CDLL(None).qsort((ctypes.c_int * 20)(*range(20)), 20, 4, kind(by_value))

def generate(s):
    end = time.thread_time() + s
    while time.thread_time() < end:
        yield spin(0.001)
def generates(s): list(generate(s))

def threads(s):
    all = [threading.Thread(target=f, args=(s,)) for f in (fifty, thirty)]
    for thread in all: thread.start()
    for thread in all: thread.join()

globals()[sys.argv[1]](float(sys.argv[2]))
END
# record KIND SECONDS: records it by $engine into $dir/folded
record() {
  pe-record -v --engine "$engine" -F 499 -o "$dir/py.pe" -- "$python" "$dir/work.py" "$@" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
  pe-symbolize -q "$dir/py.pe" | stackfold --annotate >"$dir/folded"
}
s='_\[s\];'  # the end of a function's name
engines=ptrace
pe-record -q --engine bpf -o "$dir/bpf.pe" -- true 2>/dev/null && engines="bpf ptrace"
for engine in $engines; do
  record shares 1
  within "$engine: fifty" 50 "$(share ";shares${s}fifty${s}spin_" "$dir/folded")" 5
  within "$engine: thirty" 30 "$(share ";thirty${s}thirty.<locals>.<lambda>${s}spin_" "$dir/folded")" 5
  within "$engine: twenty" 20 "$(share ";Twenty.method${s}spin_" "$dir/folded")" 5
  at_least "$engine: stacks with the first line, %" 95 "$(share '<module>_' "$dir/folded")"
  grep -Eq '[0-9]+ frames of Python, [0-9]+ unreadable' "$dir/err" || fail "$engine: details: $(cat "$dir/err")"
  expect "$engine: functions that perf reads" 1 "$(perf script -i "$dir/py.pe" 2>/dev/null | grep -c -m1 '\[python\] spin .*/work.py:3)')"
  expect "$engine: current lines" 1 "$(pe-symbolize -q --lines "$dir/py.pe" | stackfold --lines | grep -c -m1 ';fifty:work.py:8;spin:work.py:[56]')"
  record recursion 0.3
  at_least "$engine: whole recursion, %" 90 "$(share "<module>${s}recursion${s}(deep$s){2001}spin_" "$dir/folded")"
  record compresses 0.3
  at_least "$engine: native callees, %" 80 "$(share "<module>${s}compresses$s.*deflate" "$dir/folded")"
  record sorts 0.3
  at_least "$engine: callbacks from C, %" 80 "$(share "<module>${s}sorts$s.*qsort.*;by_value${s}spin_" "$dir/folded")"
  record generates 0.3
  at_least "$engine: generators, %" 80 "$(share "<module>${s}generates$s(.*;)?generate${s}spin_" "$dir/folded")"
  record threads 0.3
  at_least "$engine: threads, %" 80 "$(share "Thread.run$s.*(fifty|thirty.<locals>.<lambda>)${s}spin_" "$dir/folded")"
done
finish
