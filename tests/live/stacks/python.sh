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

open(sys.argv[1], 'w').close()
while True:
    shares(.2)
    for kind in recursion, compresses, sorts, generates, threads:
        kind(.05)
END
s='_\[s\];'  # the end of a function's name
# of KIND PATTERN: the percentage of matching stacks among those of a part of the program
of() { grep -E "(;|^)$1$s" "$dir/folded" >"$dir/part"; share "$2" "$dir/part"; }
engines=ptrace
pe-record -q --engine bpf -o "$dir/bpf.pe" -- true 2>/dev/null && engines='ptrace bpf'
"$python" "$dir/work.py" "$dir/ready" & target=$!
await "$dir/ready"
for engine in $engines; do
  until_used 2500 $target pe-record -v --engine "$engine" -F 499 -p $target -o "$dir/py.pe" 2>"$dir/err" || fail "$engine: $(cat "$dir/err")"
  grep -Eq '[0-9]+ frames of Python, [0-9]+ unreadable' "$dir/err" || fail "$engine: details: $(cat "$dir/err")"
  pe-symbolize -q "$dir/py.pe" | stackfold --annotate >"$dir/folded"
  within "$engine: fifty" 50 "$(of shares ";shares${s}fifty${s}spin_")" 5
  within "$engine: thirty" 30 "$(of shares ";thirty${s}thirty.<locals>.<lambda>${s}spin_")" 5
  within "$engine: twenty" 20 "$(of shares ";Twenty.method${s}spin_")" 5
  at_least "$engine: stacks with the first line, %" 97 "$(of '(shares|recursion|compresses|sorts|generates)' '<module>_')"
  at_least "$engine: whole recursion, %" 90 "$(of recursion "<module>${s}recursion${s}(deep$s){2001}spin_")"
  at_least "$engine: native callees, %" 80 "$(of compresses "<module>${s}compresses$s.*deflate")"
  at_least "$engine: callbacks from C, %" 80 "$(of sorts "<module>${s}sorts$s.*qsort.*;by_value${s}spin_")"
  at_least "$engine: generators, %" 80 "$(of generates "<module>${s}generates$s(.*;)?generate${s}spin_")"
  at_least "$engine: threads, %" 80 "$(of Thread.run "Thread.run$s.*(fifty|thirty.<locals>.<lambda>)${s}spin_")"
  expect "$engine: functions that perf reads" 1 "$(perf script -i "$dir/py.pe" 2>/dev/null | grep -c -m1 '\[python\] spin .*/work.py:3)')"
  expect "$engine: current lines" 1 "$(pe-symbolize -q --lines "$dir/py.pe" | stackfold --lines | grep -c -m1 ';fifty:work.py:8;spin:work.py:[56]')"
done
kill $target
finish
