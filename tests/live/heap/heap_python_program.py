"""A program that holds memory in functions with known names, and ends without freeing it.

Usage: heap_python_program.py trace|plain OUTPUT
With "trace", tracemalloc traces the program and writes a line for each line of this file: LINE BYTES.  Both words have
the same length and import the same modules, so that the tables of all names grow at the same places.
SPDX-License-Identifier: MIT
"""
import ctypes
import os
import sys
import threading
import tracemalloc
import zlib

kept = []
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p


class Node:
    def __init__(self, number):
        self.number = number + 100000
        self.text = f"node {number}"


def keep_nodes(count):
    kept.append([Node(i) for i in range(count)])


def make_record(number):
    return {"name": "x" * 20 + str(number), "values": [number, number + 100000, number * 1.5]}


def keep_records(count):
    for i in range(count):
        kept.append(make_record(i))


def keep_large():
    for i in range(50):
        kept.append(bytearray(10000 + i))


def grow():
    """The list is resized again and again."""
    numbers = []
    for i in range(30000):
        numbers.append(i * 1000)
    kept.append(numbers)


def free_all():
    for _ in range(20):
        [bytes(3000) for _ in range(100)]


def generate(count):
    for i in range(count):
        yield "generated %d" % i


def keep_generated():
    kept.extend(generate(5000))


def by_key(number):
    text = "key %d" % number
    kept.append(text)
    return text


def call_back():
    """The C function of sort calls back."""
    sorted(range(5000), key=by_key)


def keep_lambdas():
    kept.extend(map(lambda i: "lambda %d" % i, range(3000)))


def in_thread():
    for i in range(4000):
        kept.append("thread %d" % i)


def compile_code():
    """Its code object is gone when the program ends."""
    exec(compile("for i in range(3000):\n  kept.append('made %d' % i)", "<made>", "exec"), {"kept": kept})


def compress():
    kept.append(zlib.compress(os.urandom(300000)))


def without_lock():
    """C code allocates without the interpreter's lock; tracemalloc does not see that."""
    for _ in range(100):
        malloc(3000)


def recurse(depth):
    if depth > 0:
        kept.append("depth %d" % depth)
        recurse(depth - 1)


def main():
    keep_nodes(8000)
    keep_records(10000)
    keep_large()
    grow()
    free_all()
    keep_generated()
    call_back()
    keep_lambdas()
    for _ in range(2):
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()
    compile_code()
    compress()
    without_lock()
    recurse(800)


if sys.argv[1] == "trace":
    tracemalloc.start()
main()
if sys.argv[1] == "trace":
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    with open(sys.argv[2], "w", encoding="utf-8") as output:
        for statistic in snapshot.statistics("lineno"):
            frame = statistic.traceback[0]
            if frame.filename in (__file__, "<made>"):
                print(frame.lineno if frame.filename == __file__ else frame.filename, statistic.size, file=output)
os._exit(0)
