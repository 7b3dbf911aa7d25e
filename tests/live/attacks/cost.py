"""Runs a recorder, and prints what it costs: "cpu_ms=N peak_kib=N status=N".

usage: cost.py FILE COMMAND...

SIGTERM becomes SIGINT for the recorder.  One that runs on for 20 s after that, or for 40 s in all, is killed: its
status is "never".
"""
import resource
import signal
import subprocess
import sys

ALL_S, AFTER_S = 40, 20
recorder = subprocess.Popen(sys.argv[2:])


def end(*_):
    recorder.send_signal(signal.SIGINT)
    signal.alarm(AFTER_S)


def kill(*_):
    recorder.kill()
    global ended
    ended = 'never'


ended = None
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGALRM, kill)
signal.alarm(ALL_S)
status = recorder.wait()
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], 'w', encoding='ascii') as file:
    cpu_ms = int(1000 * (usage.ru_utime + usage.ru_stime))
    print(f'cpu_ms={cpu_ms} peak_kib={usage.ru_maxrss} status={ended or status}', file=file)
