#!/bin/bash
# malloctrace counts exactly the allocations that the program made.
. "$(dirname "$0")/../lib.sh"

# weight EVENT PATTERN: prints the sum of the matching stacks in $dir/heap.pe
weight() {
  pe-symbolize -q "$dir/heap.pe" | stackfold --event "$1" 2>/dev/null |
    PATTERN=$2 awk '$0 ~ ENVIRON["PATTERN"] { sum += $NF } END { print sum + 0 }'
}
# counts LABEL PATTERN BYTES COUNT LIVE PEAK TEMPORARY
counts() {
  local event
  local wanted=("${@:3}")
  for event in alloc-bytes alloc-count live-bytes peak-bytes temporary; do
    expect "$1: $event" "${wanted[0]}" "$(weight "$event" "$2")"
    wanted=("${wanted[@]:1}")
  done
}
trace() { malloctrace -v -o "$dir/heap.pe" "$@" >"$dir/out" 2>"$dir/err"; }

trace -- "$PE_HEAP" leaks || fail "leaks: $(cat "$dir/err")"
counts 'freed at once' ';free_thousand_of_64;' 64000 1000 0 0 1000
counts 'kept' ';keep_ten_of_100;' 1000 10 1000 1000 0
counts 'kept, others' ';keep_three_of_1000;' 3000 3 3000 3000 0
# While realloc moves a block, two exist, but the program asked for one.
expect 'realloc: bytes' 2032 "$(weight alloc-bytes 'double_until_1024')"
expect 'realloc: allocations' 7 "$(weight alloc-count 'double_until_1024')"
expect 'realloc: kept' 1024 "$(weight live-bytes 'double_until_1024')"
counts 'before main' ';before_main;' 333 1 333 333 0
grep -Eq '^malloctrace: [0-9]+ allocations in [0-9.]+ s, [0-9]+ bytes, peak [0-9]+ bytes, [0-9]+ bytes in [0-9]+ blocks not freed$' "$dir/err" ||
  fail "closing line: $(cat "$dir/err")"
grep -Eq 'failed|not counted|unknown|cut|not walked|contradicted|refused' "$dir/err" && fail "losses: $(cat "$dir/err")"

# A folder whose path has a blank, which LD_PRELOAD cannot hold, also for programs that the command starts.
mkdir "$dir/a b"
cp "$PE_TOOLS"/{malloctrace,libmalloctrace_preload.so} "$dir/a b/"
# shellcheck disable=SC2016 # of that shell
"$dir/a b/malloctrace" -v -o "$dir/heap.pe" -- sh -c '"$0" leaks; :' "$PE_HEAP" >"$dir/out" 2>"$dir/err" || fail "below a path with a blank: $(cat "$dir/err")"
counts 'below a path with a blank' ';keep_ten_of_100;' 1000 10 1000 1000 0

trace -- "$PE_HEAP" kinds || fail kinds
counts 'every kind' ';every_kind_of_77' 558 7 558 558 0
grep -q '; 1 allocation failed' "$dir/err" || fail "a refused allocation is not told: $(cat "$dir/err")"

trace -- "$PE_HEAP" peak || fail peak
counts 'peak' ';peak_of_10000;' 10000 10 0 10000 "$(weight temporary ';peak_of_10000;')"
expect 'after the peak' 0 "$(weight peak-bytes ';keep_ten_of_100;')"

trace -- "$PE_HEAP" threads || fail threads
counts 'threads' ';work_of_thread;' 192000 4000 0 "$(weight peak-bytes ';work_of_thread;')" 4000

# A child has a heap of its own.  If it frees its parent's blocks, these frees are counted.
trace -- "$PE_HEAP" fork || fail fork
counts 'the child' ';keep_of_child;' 700 1 700 700 0
counts 'the parent' ';keep_of_parent;' 500 1 500 500 0
grep -q ': 2 processes;' "$dir/err" || fail "processes: $(cat "$dir/err")"
grep -q '1 free of blocks from before a fork' "$dir/err" || fail "inherited free: $(cat "$dir/err")"
trace --no-follow -- "$PE_HEAP" fork || fail no-follow
expect 'not followed' 0 "$(weight alloc-bytes ';keep_of_child;')"

# A program that the shell starts is a process of its own.
for follow in --follow --no-follow; do
  # shellcheck disable=SC2016 # for the shell that runs it
  trace $follow -- sh -c '"$0" leaks; exit 3' "$PE_HEAP"
  expect "$follow: status of the shell" 3 $?
  kept=0
  [ $follow = --no-follow ] || kept=1000
  expect "$follow: what a shell begins" "$kept" "$(weight alloc-bytes ';keep_ten_of_100;')"
done

# The same holds if the program builds its environment itself.
for how in execve execle execvpe fexecve execveat execv execvp execl execlp; do
  trace -- "$PE_BEGINS" $how "$PE_HEAP" leaks || fail "$how: status $?"
  expect "$how" 1000 "$(weight live-bytes ';keep_ten_of_100;')"
done
for how in posix_spawn posix_spawnp vfork-execve vfork-execvp fork-execle; do
  for follow in --follow --no-follow; do
    trace $follow -- "$PE_BEGINS" $how "$PE_HEAP" leaks || fail "$how $follow: status $?"
    kept=0
    [ $follow = --no-follow ] || kept=1000
    expect "$how $follow" "$kept" "$(weight live-bytes ';keep_ten_of_100;')"
  done
done
trace -- "$PE_BEGINS" execve "$dir/absent" x; expect 'no such program to become' 99 $?
trace --no-follow -- "$PE_BEGINS" execve "$PE_HEAP" leaks || fail 'execve --no-follow'
expect 'the same process, not followed' 1000 "$(weight live-bytes ';keep_ten_of_100;')"
trace -- "$PE_BEGINS" posix_spawn /usr/bin/env -0 || fail env
expect 'what it finds' 'KEPT LD_PRELOAD MALLOCTRACE' "$(tr '\0' '\n' <"$dir/out" | sed 's/=.*//' | sort | xargs)"
# shellcheck disable=SC2016 # of the shell that is traced
trace -- sh -c 'LD_PRELOAD=libm.so.6 "$0" leaks' "$PE_HEAP"
expect 'another library before the program' 1000 "$(weight live-bytes ';keep_ten_of_100;')"

# A program that drops its privileges is still traced, because it has the key.  Connections of other users are
# refused.
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --clear-groups test -x "$PE_HEAP"; then
  trace -- setpriv --reuid=65534 --clear-groups "$PE_HEAP" leaks || fail 'another user'
  expect 'another user' 1000 "$(weight live-bytes ';keep_ten_of_100;')"
  # shellcheck disable=SC2016 # of the shell that is traced
  trace -- sh -c 'MALLOCTRACE=$(echo "$MALLOCTRACE" | sed s/,key=[^,]*//) exec setpriv --reuid=65534 --clear-groups "$0" leaks' "$PE_HEAP"
  grep -q '1 connection of another user refused' "$dir/err" || fail "another user without the key: $(cat "$dir/err")"
else
  echo 'other users not tested: needs root, and a build folder that others may read'
fi

# Memory that the program maps itself is counted, if the user asks for it.
trace --mmap -- "$PE_HEAP" maps || fail maps
expect 'mapped: bytes' 24576 "$(weight alloc-bytes ';map_three_of_8192')"
expect 'mapped: kept' 16384 "$(weight live-bytes ';map_three_of_8192')"
trace -- "$PE_HEAP" maps || fail maps
expect 'mapped, not asked for' 0 "$(weight alloc-bytes ';map_three_of_8192')"
# The report then sums it up, and shows the resident size.
malloctrace --report -q -- "$PE_HEAP" maps >"$dir/report" 2>"$dir/err" || fail "maps: $(cat "$dir/err")"
grep -Eq '^mapped     24,576 bytes in 3 mappings outside malloc, at most 24,576 bytes at once; 24,576 of them by map_three_of_8192 ' "$dir/report" ||
  fail "mapped, in the report: $(grep mapped "$dir/report")"
grep -Eq '^resident   at most [0-9,]+ bytes; malloc.s peak is [0-9.]+ % of it$' "$dir/report" || fail 'the report lacks what was resident'
# Python uses an allocator of its own for most objects.  It does not count if the user asks Python for it by
# name.  The resident size is the same as the process itself reports.
python='import sys; kept = [bytearray(200) for i in range(200000)]
print(next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))'
PYTHONMALLOC=pymalloc trace -- /usr/bin/python3 -c "$python" || fail "python3: $(cat "$dir/err")"
grep -q 'bytes (.* %) were mapped outside malloc; Python has its own allocator: run it with PYTHONMALLOC=malloc$' "$dir/err" ||
  fail "python3: $(cat "$dir/err")"
resident=$(sed -n 's/.*: resident set at most \([0-9]*\) bytes, .*/\1/p' "$dir/err")
# The kernel counts pages per CPU, so its sum is only approximate.
within 'resident, by the process itself, MiB' "$(($(cat "$dir/out") >> 20))" "$((${resident:-0} >> 20))" 2
for setting in PYTHONMALLOC=malloc PYTHON=unset; do
  trace -- env "$setting" /usr/bin/python3 -c "$python" || fail "python3, $setting: $(cat "$dir/err")"
  grep -q PYTHONMALLOC "$dir/err" && fail "python3, $setting: $(cat "$dir/err")"
done

# Only the innermost frames.
trace --depth 2 -- "$PE_HEAP" leaks || fail depth
expect 'two frames' 1000 "$(weight live-bytes '^allocations;keep_ten_of_100;take ')"
grep -Eq '[0-9]+ stacks? cut' "$dir/err" || fail "cut stacks are not told: $(cat "$dir/err")"

# However a program ends, no allocation is lost.
trace -- "$PE_HEAP" killed; expect 'status of a killed program' 137 $?
counts 'killed' ';keep_ten_of_100;' 1000 10 1000 1000 0
trace -- "$PE_HEAP" leaves; expect 'status of _exit' 7 $?
counts '_exit' ';keep_three_of_1000;' 3000 3 3000 3000 0

# The trace is ended early: malloctrace writes the data so far, and ends the command.
rm -f "$dir/out" "$dir/err"
cp "$PE_HEAP" "$dir/waiter"
malloctrace -o "$dir/heap.pe" -- "$dir/waiter" waits >"$dir/out" 2>"$dir/err" & tracer=$!
await_text ready "$dir/out"
# First a snapshot, while the program runs.
kill -USR1 $tracer
await "$dir/heap.pe.1"
kill -TERM $tracer; wait $tracer; expect 'status after SIGTERM' 0 $?
counts 'interrupted' ';keep_ten_of_100;' 1000 10 1000 1000 0
mv "$dir/heap.pe.1" "$dir/heap.pe"
counts 'snapshot' ';keep_ten_of_100;' 1000 10 1000 1000 0
pgrep -f "^$dir/waiter" >/dev/null && fail 'the command was left running'

# Snapshots at intervals, each complete.  malloctrace reports a snapshot that it cannot write.
malloctrace --snapshot 0.2 -o "$dir/many.pe" -- "$PE_HEAP" waits >/dev/null 2>&1 & tracer=$!
await "$dir/many.pe.2"
kill -TERM $tracer; wait $tracer
mv "$dir/many.pe.2" "$dir/heap.pe"
counts 'second snapshot' ';keep_ten_of_100;' 1000 10 1000 1000 0
# A snapshot that cannot get its name leaves no file behind.
mkdir "$dir/taken.pe.1"
rm -f "$dir/out" "$dir/err"
malloctrace -o "$dir/taken.pe" -- "$PE_HEAP" waits >"$dir/out" 2>"$dir/err" & tracer=$!
await_text ready "$dir/out"
kill -USR1 $tracer
await_text 'no snapshot: ' "$dir/err"
kill -TERM $tracer; wait $tracer
grep -q 'no snapshot: .*taken.pe.1: ' "$dir/err" || fail "a snapshot without a name: $(cat "$dir/err")"
[ ! -e "$dir/taken.pe.1.part" ] || fail 'a failed snapshot was left'
rm -f "$dir/out" "$dir/err"
malloctrace -- "$PE_HEAP" waits >"$dir/heap.pe" 2>"$dir/err" & tracer=$!
await_text ready "$dir/err"
kill -USR1 $tracer
await_text 'no snapshot without --output' "$dir/err"
kill -TERM $tracer; wait $tracer; expect 'status after a refused snapshot' 0 $?
grep -q 'SIGUSR1: no snapshot without --output FILE' "$dir/err" || fail "SIGUSR1: $(cat "$dir/err")"

# The first interrupt goes to the command, once, whatever its source; the second ends the trace.
cat >"$dir/interrupted" <<'EOF'
trap 'echo interrupted >>"$1"' INT
echo ready
until [ -s "$1" ]; do sleep 0.05; done
sleep 0.3
exit 5
EOF
set -m  # so that jobs do not ignore it
rm -f "$dir/out" "$dir/err"
malloctrace -o "$dir/heap.pe" -- bash "$dir/interrupted" "$dir/got" >"$dir/out" 2>"$dir/err" & tracer=$!
await_text ready "$dir/out"
kill -INT $tracer; wait $tracer; expect 'interrupted: the status is that of the command' 5 $?
expect 'interrupts passed on' interrupted "$(cat "$dir/got")"
grep -q '^malloctrace: [0-9]* allocations in' "$dir/err" || fail "interrupted: closing line: $(cat "$dir/err")"
rm -f "$dir/out" "$dir/err"
malloctrace -o "$dir/heap.pe" -- bash -c 'trap "" INT; echo ready; while :; do sleep 0.1; done' >"$dir/out" 2>"$dir/err" & tracer=$!
await_text ready "$dir/out"
kill -INT $tracer
await_text 'another interrupt ends the trace' "$dir/err"
kill -INT $tracer; wait $tracer; expect 'interrupted twice' 0 $?
set +m
if command -v python3 >/dev/null; then
  rm -f "$dir/got"
  python3 - "$dir" <<'EOF' || fail "interrupted at a terminal: $(cat "$dir/got")"
import os, pty, sys
folder = sys.argv[1]
pid, terminal = pty.fork()
if pid == 0:
    os.execlp('malloctrace', 'malloctrace', '-o', folder + '/heap.pe', '--', 'bash', folder + '/interrupted', folder + '/got')
said = b''
while True:
    try:
        part = os.read(terminal, 1000)
    except OSError:
        break
    if not part:
        break
    if b'ready' in part and b'ready' not in said:
        os.write(terminal, b'\x03')
    said += part
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(status != 5 or open(folder + '/got').read() != 'interrupted\n')
EOF
fi

# The command ignores exactly the signals that the caller ignores.
for ignored in '' 'PIPE' 'XFSZ' 'PIPE INT HUP XFSZ USR1'; do
  for tool in malloctrace pe-record offcpu; do
    [ $tool = malloctrace ] || [ "$(id -u)" = 0 ] || continue
    (
      # shellcheck disable=SC2086 # names of signals
      [ -z "$ignored" ] || trap '' $ignored
      grep -E '^Sig(Ign|Blk)' /proc/self/status >"$dir/plain"
      $tool -q -o "$dir/heap.pe" -- grep -E '^Sig(Ign|Blk)' /proc/self/status >"$dir/traced" 2>"$dir/err"
    )
    cmp -s "$dir/plain" "$dir/traced" ||
      fail "$tool, ignored '$ignored': $(paste -sd, "$dir/traced"), not $(paste -sd, "$dir/plain"); $(cat "$dir/err")"
  done
done

# The library cannot be loaded into these programs.
if command -v ldconfig.real >/dev/null || [ -x /sbin/ldconfig ]; then
  trace -- /sbin/ldconfig --version; expect 'a static program' 125 $?
  grep -q 'is statically linked' "$dir/err" || fail "a static program: $(cat "$dir/err")"
fi
# For a script, its interpreter counts.
if [ -x /sbin/ldconfig ]; then
  printf '#! /sbin/ldconfig -p\n' >"$dir/script"; chmod +x "$dir/script"
  trace -- "$dir/script"; expect 'a script of a static program' 125 $?
  grep -q '/sbin/ldconfig: is statically linked' "$dir/err" || fail "a script of a static program: $(cat "$dir/err")"
fi
# These programs do not start if another library is loaded first.  A library with the name of
# AddressSanitizer's is enough for the test.
printf 'int main(void) { return 5; }\n' >"$dir/x.c"
fake_sanitizer malloctrace_preload "$dir/x.c" "$dir/sanitized"
trace -- bash -c "'$dir/sanitized'; exit \$?"; expect 'AddressSanitizer in a child' 5 $?
grep -q '1 connection of a process that is not recorded: built with AddressSanitizer: refused' "$dir/err" ||
  fail "AddressSanitizer in a child: $(cat "$dir/err")"
trace -- "$dir/sanitized"; expect 'AddressSanitizer' 125 $?
grep -q 'is built with AddressSanitizer: libasan.so.8 does not' "$dir/err" || fail "AddressSanitizer: $(cat "$dir/err")"
(
  ulimit -v 8000000
  trace -- true; expect 'a limit of addresses' 125 $?
  exit $failed
) || failed=1
grep -q 'limited to 8000000 KiB (ulimit -v)' "$dir/err" || fail "a limit of addresses: $(cat "$dir/err")"
trace -- /bin/sh -c '/sbin/ldconfig --version >/dev/null'; expect 'a static program of a script' 0 $?
trace -- "$dir/absent"; expect 'no such program' 127 $?
echo kept >"$dir/heap.pe"
trace -- absent; expect 'no such program anywhere' 127 $?
trace -- "$dir/heap.pe"; expect 'may not be executed' 126 $?
expect 'the file of a run that was not' kept "$(cat "$dir/heap.pe")"
cp /bin/true "$dir/heap.pe"; chmod +x "$dir/heap.pe"
trace -- "$dir/heap.pe"; expect 'the program in place of the output' 2 $?
cmp -s /bin/true "$dir/heap.pe" || fail 'the program was overwritten'
rm "$dir/heap.pe"
trace -- "$dir"; expect 'no program' 126 $?

# A process that goes on without the library is counted.  One that ends, or goes on with the library, is not.
gone='processe?s? killed, or executed a program that was not traced'
echo 'int main(void) { return 0; }' >"$dir/x.c"
cc -static -o "$dir/static" "$dir/x.c"
# shellcheck disable=SC2016 # of the shell that is traced
trace -- bash -c 'env "$0"; env -i "$0"; exit 0' "$dir/static"
grep -Eq "2 $gone" "$dir/err" || fail "gone on without the library: $(cat "$dir/err")"
# shellcheck disable=SC2016
trace -- bash -c '"$0" leaks; (env -u HOME "$0" leaks); env -i "$0" leaks; "$0" leaves; exec "$0" fork' "$PE_HEAP"
grep -Eq "$gone" "$dir/err" && fail "nobody went on without the library: $(cat "$dir/err")"

# perf reads the stream.
if command -v perf >/dev/null; then
  trace -- "$PE_HEAP" leaks
  perf script -i - <"$dir/heap.pe" >"$dir/perf" 2>"$dir/err" || fail "perf script: $(cat "$dir/err")"
  expect 'samples of perf: one for each event but temporary' 4 "$(grep -c 'keep_ten_of_100+' "$dir/perf")"
fi

# valgrind counts the same, if it does not free the memory that the libraries keep.
if command -v valgrind >/dev/null; then
  for command in "$PE_HEAP leaks" "$PE_HEAP peak" "$PE_HEAP kinds" "$PE_HEAP sizes" 'sort /etc/passwd'; do
    # shellcheck disable=SC2086 # words of a command
    valgrind --run-libc-freeres=no --run-cxx-freeres=no --log-file="$dir/valgrind" $command >/dev/null 2>&1
    # shellcheck disable=SC2086
    trace -- $command
    tr -d , <"$dir/valgrind" | sed -nE 's/.*total heap usage: ([0-9]+) allocs.* ([0-9]+) bytes allocated/\1 \2/p
      s/.*in use at exit: ([0-9]+) bytes in ([0-9]+) blocks/\1 \2/p' | sort >"$dir/wanted"
    sed -nE 's/^malloctrace: ([0-9]+) allocations? in [0-9.]+ s, ([0-9]+) bytes, peak [0-9]+ bytes, ([0-9]+) bytes? in ([0-9]+) blocks? not freed.*/\1 \2\n\3 \4/p' \
      "$dir/err" | sort >"$dir/got"
    [ "$(wc -l <"$dir/wanted")" = 2 ] || fail "valgrind $command: $(cat "$dir/valgrind")"
    cmp -s "$dir/wanted" "$dir/got" || fail "$command: $(paste -sd, "$dir/got"), of valgrind $(paste -sd, "$dir/wanted")"
  done
else
  echo 'not compared with valgrind, which is not installed'
fi

# With sampling, the figures are right on average.
trace -- "$PE_HEAP" sizes; truth=$(weight alloc-bytes ';many_sizes')
trace --sample 16K -- "$PE_HEAP" sizes; estimate=$(weight alloc-bytes ';many_sizes')
# With n samples, the relative error is within 5 / sqrt(n), except once in a million runs.
TRUTH=$truth GOT=$estimate awk 'BEGIN { n = ENVIRON["TRUTH"] / 16384; d = (ENVIRON["GOT"] - ENVIRON["TRUTH"]) / ENVIRON["TRUTH"]
  exit !(d * d * n < 25) }' || fail "sampled: $estimate bytes, not about $truth"

# The report has the same figures.
malloctrace --report -q -- "$PE_HEAP" leaks >"$dir/report" 2>"$dir/err" || fail "report: $(cat "$dir/err")"
[ ! -s "$dir/err" ] || fail "-q: $(cat "$dir/err")"
expect 'the head of the report' "$PE_HEAP leaks" "$(head -1 "$dir/report")"
# shellcheck disable=SC2016 # of the shell that is traced
malloctrace -v --report -- sh -c 'exec "$0" leaks' "$PE_HEAP" >"$dir/two" 2>"$dir/err"
grep -q ': 1 process (2 programs); ' "$dir/err" || fail "a process of two programs: $(cat "$dir/err")"
grep -q '^ *[0-9]* sh .*  executed another program$' "$dir/two" || fail 'the report does not tell that sh became another program'
grep -q ' % of the peak' "$dir/err" && fail "the share of a small peak: $(cat "$dir/err")"
grep -q '3,000 bytes in 3 blocks; first allocated' "$dir/report" || fail 'the report misses a leak'
grep -q '  keep_three_of_1000  \[allocations\]$' "$dir/report" || fail 'the report misses a name'

malloctrace --report --lines -q -- "$PE_HEAP" leaks >"$dir/report" 2>"$dir/err" || fail "lines: $(cat "$dir/err")"
grep -Eq '^        keep_three_of_1000  allocations\.cpp:[0-9]+  \[allocations\]$' "$dir/report" || fail 'the report misses a line'

# If no descriptor is left, new processes wait for one, and are still counted.  (The kernel limits the
# descriptors that users other than root have in transit.)
if [ "$(id -u)" = 0 ]; then
  (
    ulimit -n 40
    trace -- bash -c 'for i in {1..100}; do sleep 1 & done; wait'
  )
  grep -q ': 101 processes[ ;]' "$dir/err" || fail "few descriptors: $(tail -3 "$dir/err")"
fi

# The tables of this program lie before its code, and pages between them are free: glibc reports only the code.
cat >"$dir/apart.c" <<'END'
#include <stdlib.h>
void *kept;
__attribute__((noinline)) void innermost(void) { kept = malloc(1000); __asm__ volatile(""); }
__attribute__((noinline)) void inner(void) { char room[40]; __asm__ volatile("" ::"r"(room)); innermost(); __asm__ volatile(""); }
__attribute__((noinline)) void outer(void) { char room[72]; __asm__ volatile("" ::"r"(room)); inner(); __asm__ volatile(""); }
int main(void) { outer(); return 0; }
END
clang -O2 -fomit-frame-pointer -fuse-ld=lld -Wl,-z,max-page-size=65536 -o "$dir/apart" "$dir/apart.c"
malloctrace -q -o "$dir/apart.pe" -- "$dir/apart"
expect 'segments apart' 1 "$(pe-symbolize -q "$dir/apart.pe" | stackfold -q | grep -c '_start;.*;main;outer;inner;innermost 1000$')"

# Programs behave and print the same as without malloctrace.
same() {  # LABEL COMMAND...
  local label=$1 status
  shift
  "$@" >"$dir/plain" 2>"$dir/plain.err" </dev/null; status=$?
  malloctrace -q -o "$dir/same.pe" -- "$@" >"$dir/traced" 2>"$dir/traced.err" </dev/null
  expect "$label: status" $status $?
  cmp -s "$dir/plain" "$dir/traced" || fail "$label: other output"
  cmp -s "$dir/plain.err" "$dir/traced.err" || fail "$label: other messages: $(head -c 300 "$dir/traced.err")"
}
same sort sort /etc/passwd /etc/group
# shellcheck disable=SC2016 # of the shell that is traced
same bash bash -c 'for i in 1 2 3; do echo "$i $(printf %s x)"; done | sort -r; exit 4'
same 'no such file' ls /no/such/file
for program in python3 node clang; do
  command -v $program >/dev/null || continue
  case $program in
    python3) same python3 python3 -c 'import json, re; print(json.dumps(sorted(str(i) * 3 for i in range(20000)))[-100:])' ;;
    node) same node node -e 'const a = []; for (let i = 0; i < 1e5; i++) a.push({ i }); console.log(a.length)' ;;
    clang) printf '#include <stdio.h>\nint main(void) { return puts("x") < 0; }\n' >"$dir/x.c"
      same clang clang -O2 -S -o - "$dir/x.c" ;;
  esac
done
finish
