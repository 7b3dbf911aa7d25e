#!/usr/bin/env python3
"""Spend known shares of the time in named functions, which native code calls and which call native code.

Usage: python_calls.py SECONDS [FILE].  SECONDS of CPU time for the shares, and a tenth for each other part.
With FILE the runtime notes who calls whom, as CALLER;CALLEE.
"""
import asyncio
import ctypes
import os
import re
import sys
import threading
import time
import zlib

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

now = time.thread_time


def spin(seconds):
    end = now() + seconds
    while now() < end:
        sum(i * i for i in range(100))


class Shares:
    def fifty(self, seconds):
        end = now() + seconds
        while now() < end:
            zlib.compress(bytes(range(256)) * 40, 9)

    def thirty(self, seconds):
        end = now() + seconds
        while now() < end:
            re.sub("a(b|c+)*d", self.replaced, "abcccbcbccd" * 20)

    def replaced(self, match):
        return match[0][1:]

    def twenty(self, seconds):
        end = now() + seconds
        while now() < end:
            sorted(range(200), key=lambda number: number * 7919 % 200)


def shares(seconds):
    for _ in range(10):
        Shares().fifty(seconds * 0.05)
        Shares().thirty(seconds * 0.03)
        Shares().twenty(seconds * 0.02)


def deep(more, seconds):
    return deep(more - 1, seconds) if more else spin(seconds)


def recursion(seconds):
    sys.setrecursionlimit(10000)
    deep(5000, seconds)


def by_value(one, other):
    spin(0.0005)
    return one[0] - other[0]


def sorts(seconds):
    compare = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.POINTER(ctypes.c_int)] * 2)(by_value)
    end = now() + seconds
    while now() < end:
        ctypes.CDLL(None).qsort((ctypes.c_int * 20)(*range(20)), 20, 4, compare)


def generate(seconds):
    end = now() + seconds
    while now() < end:
        yield spin(0.001)


def generates(seconds):
    list(generate(seconds))


async def inner(seconds):
    spin(seconds)
    await asyncio.sleep(0)


async def outer(seconds):
    for _ in range(10):
        await inner(seconds / 10)


def awaits(seconds):
    asyncio.run(outer(seconds))


def throws(seconds):
    spin(seconds / 2)
    raise ValueError


def handles(seconds):
    spin(seconds / 2)


def catches(seconds):
    try:
        throws(seconds)
    except ValueError:
        handles(seconds)


def executes(seconds):
    text = "def made(seconds): spin(seconds)\nmade(seconds)"
    exec(compile(text, "<made>", "exec"), {"spin": spin, "seconds": seconds})


def in_child(seconds):
    spin(seconds)


def forks(seconds):
    for _ in range(5):
        child = os.fork()
        if child == 0:
            in_child(seconds / 5)
            os._exit(0)
        os.waitpid(child, 0)


def in_thread(seconds):
    (lambda: spin(seconds))()


def threads(seconds):
    both = [threading.Thread(target=in_thread, args=(seconds,)) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()


def enters(seconds):
    text = f"""
import time
def inside(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(i * i for i in range(100))
inside({seconds})"""
    interpreter = interpreters.create()
    interpreters.run_string(interpreter, text)
    interpreters.destroy(interpreter)


def whole(seconds):
    shares(seconds)
    for part in recursion, sorts, generates, awaits, catches, executes, forks, threads, enters:
        part(seconds / 10)


def note_calls(path):
    # Those that happen where the runtime is not asked.
    calls = {("<module>", "whole"), ("<module>", "inside"), ("inside", "inside.<locals>.<genexpr>"),
             ("in_child", "spin"), ("forks", "in_child"), ("Thread._bootstrap", "Thread._bootstrap_inner")}

    def note(frame, event, _):
        if event == "call" and frame.f_back:
            calls.add((frame.f_back.f_code.co_qualname, frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    whole(0.1)
    sys.setprofile(None)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{caller};{callee}\n" for caller, callee in calls)


if len(sys.argv) > 2:
    note_calls(sys.argv[2])
else:
    whole(float(sys.argv[1]))
