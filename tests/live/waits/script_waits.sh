#!/bin/bash
# Waits of programs in Python, PHP and Ruby have the functions that waited, between the native functions.
. "$(dirname "$0")/../lib.sh"
offcpu -q -o "$dir/try.pe" -- sleep 0.1 2>"$dir/why" || skip "no eBPF here: $(cat "$dir/why")"
export PATH=/usr/bin:/bin:$PATH

cat >"$dir/waits.py" <<'END'
import os, threading, time

def sleeps():
    for _ in range(20):
        time.sleep(0.01)

def sorts():
    sorted(range(20), key=by_value)

def by_value(n):
    time.sleep(0.01)
    return n

def in_thread():
    sleeps()

def in_child():
    time.sleep(0.04)

def forks():
    for _ in range(5):
        child = os.fork()
        if child == 0:
            in_child()
            os._exit(0)
        os.waitpid(child, 0)

time.sleep(0.5)
sleeps()
sorts()
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
forks()
END
cat >"$dir/waits.php" <<'END'
<?php
function sleeps(): void { for ($i = 0; $i < 20; ++$i) usleep(10000); }
function sorts(): void { $a = range(1, 10); usort($a, 'by_value'); }
function by_value(int $a, int $b): int { usleep(10000); return $a - $b; }
function in_child(): void { usleep(40000); }
function forks(): void {
    for ($i = 0; $i < 5; ++$i) {
        $child = pcntl_fork();
        if ($child === 0) { in_child(); exit(0); }
        pcntl_waitpid($child, $status);
    }
}
usleep(500000);
sleeps();
sorts();
forks();
END
cat >"$dir/waits.rb" <<'END'
def sleeps = 20.times { sleep(0.01) }
def sorts = (1..20).sort_by { |n| by_value(n) }
def by_value(n)
  sleep(0.01)
  n
end
def in_thread = sleeps
def in_child = sleep(0.04)
def forks = 5.times { Process.wait(fork { in_child }) }
sleep(0.5)
sleeps
sorts
Thread.new { in_thread }.join
forks
END

# ms PATTERN: prints the milliseconds of the matching stacks
ms() { PATTERN=$1 awk '!/^#/ && $0 ~ ENVIRON["PATTERN"] { n += $NF } END { printf "%d\n", n / 1000 }' "$dir/folded"; }

# check PROGRAM SCRIPT FUNCTION...: each function has waited for 200 ms, or less where the sort chooses how often
# it calls back.  A late start loses the first waits.
check() {
  local program=$1 script=$2 function
  command -v "$program" >/dev/null || return
  offcpu -q -o "$dir/waits.pe" -- "$program" "$dir/$script" || fail "$script"
  pe-symbolize -q "$dir/waits.pe" | stackfold --annotate >"$dir/folded"
  for function in "${@:3}"; do
    at_least "$script: waits of $function, ms" 80 "$(ms ";${function}_\[s\]")"
  done
  at_least "$script: a callback's caller" 80 "$(ms ';sorts_\[s\];.*;by_value_\[s\];')"
  at_least "$script: readable, %" 90 "$(awk '!/^#/ { all += $NF; if (!/unreadable/) n += $NF } END { print 100 * n / all }' "$dir/folded")"
}
check python3 waits.py sleeps by_value in_thread in_child forks
check php waits.php sleeps by_value in_child forks
check ruby waits.rb sleeps by_value in_thread in_child forks

# CPU time in stackpipe waits has the functions, whatever starts the interpreter.
cat >"$dir/spins.py" <<'END'
import time

def spins():
    end = time.thread_time() + 1
    while time.thread_time() < end:
        sum(range(1000))

spins()
END
"$PE_SCRIPTS/stackpipe" waits -q -o "$dir/both.folded" -- sh -c "python3 '$dir/spins.py'; exit" 2>"$dir/err" || fail "stackpipe waits: $(cat "$dir/err")"
mv "$dir/both.folded" "$dir/folded"
at_least 'CPU time of spins, ms' 500 "$(ms ';spins_\[s\];')"
finish
