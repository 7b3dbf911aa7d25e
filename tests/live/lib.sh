# Every end-to-end test sources this file.  It puts the tools on PATH, makes a folder for the test, and reports
# failures.  The harness sets PE_TOOLS (the tools' build folder) and PE_WORKLOAD (tests/data/src/workload, built).
# shellcheck shell=bash
set -u
PATH=$PE_TOOLS:$PATH
dir=$(mktemp -d)
HOME=$(mktemp -d "$dir.home.XXXX"); export HOME  # tools keep binaries below it
failed=0
paranoid=  # the value of perf_event_paranoid before the test changed it
# Cleans up in this shell only.  bash also runs the trap in a child that a signal ends before the child starts
# its command.
clean_up() {
  [ "$BASHPID" = $$ ] || return
  [ -z "$paranoid" ] || echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid
  rm -rf "$dir" "$dir".home.*
  pkill -P $$ 2>/dev/null
}
trap clean_up EXIT

fail() { echo "FAILED: $*"; failed=1; }
skip() { echo "skipped: $*"; exit 77; }
finish() { exit "$failed"; }

# in_slice NUMBER: true for a fifth of the numbers, chosen by scripts/test; for all with PE_ALL
in_slice() { [ -n "${PE_ALL:-}" ] || [ $(($1 % 5)) = "${PE_SLICE:-0}" ]; }

# expect LABEL WANTED GOT
expect() { [ "$2" = "$3" ] || fail "$1: $3, not $2"; }

# until_so LABEL COMMAND...: waits until the command succeeds, up to 30 seconds
until_so() {
  local label=$1 i; shift
  for ((i = 0; i < 600; ++i)); do "$@" && return; sleep 0.05; done
  fail "$label: never"
}

# share PATTERN FILE: the percentage of the weight of all folded stacks that the matching ones have
share() {  # passed in the environment, because -v would remove backslashes
  PATTERN=$1 awk '/^# / { next } { all += $NF; if ($0 ~ ENVIRON["PATTERN"]) hit += $NF }
    END { printf "%.1f\n", all ? 100 * hit / all : 0 }' "$2"
}

# within LABEL WANTED GOT POINTS
within() {
  awk -v w="$2" -v g="$3" -v t="$4" 'BEGIN { d = w - g; exit !(d <= t && -d <= t) }' || fail "$1: $3, not $2 within $4"
}
# at_least LABEL WANTED GOT
at_least() { awk -v w="$2" -v g="$3" 'BEGIN { exit !(g >= w) }' || fail "$1: $3, not at least $2"; }

# samples_near LABEL EXPECTED SAMPLES LOST: allows a deviation of five times the square root of the expected
# number.  Not all lost records need be samples.
samples_near() {
  local spread
  spread=$(awk -v n="$2" 'BEGIN { print 5 * sqrt(n > 1 ? n : 1) }')
  at_least "$1: samples and losses" "$(awk -v n="$2" -v s="$spread" 'BEGIN { print n - s }')" $(($3 + $4))
  at_least "$1: the most samples" "$3" "$(awk -v n="$2" -v s="$spread" 'BEGIN { print n + s }')"
}

# await FILE: waits until the file exists
await() {
  for _ in $(seq 1200); do [ -e "$1" ] && return; sleep 0.05; done
  fail "$1 did not come"
}

# await_text TEXT FILE: waits until the file contains the text.  The caller must first remove a file of an
# earlier command: a command in the background opens its file only when it starts, and the test may run on
# before that.
await_text() {
  for _ in $(seq 1200); do grep -q -- "$1" "$2" 2>/dev/null && return; sleep 0.05; done
  fail "no '$1' in $2"
}

# await_program PID NAME: waits until the process runs this program
await_program() {
  for _ in $(seq 1200); do [ "$(cat "/proc/$1/comm" 2>/dev/null)" = "$2" ] && return; sleep 0.02; done
  fail "$1 is not $2"
}

# tid_of PID NAME: prints the ID of the process's thread of that name, once there is one
tid_of() {
  local found
  for _ in $(seq 1200); do
    found=$(grep -lxF -- "$2" "/proc/$1/task"/*/comm 2>/dev/null | head -1 | cut -d/ -f5)
    [ -z "$found" ] || { echo "$found"; return; }
    sleep 0.02
  done
  fail "$1 has no thread $2" >&2
}

# fake_sanitizer LIBRARY SOURCE PROGRAM: builds a program with a library that has the name of
# AddressSanitizer's.  The program does not start (status 9) if LD_PRELOAD names LIBRARY.
fake_sanitizer() {
  cc -shared -fPIC -Wl,-soname,libasan.so.8 -o "$dir/libasan.so.8" -x c - <<END
#include <stdlib.h>
#include <string.h>
__attribute__((constructor)) static void first(void) {
  const char* others = getenv("LD_PRELOAD");
  if (others && strstr(others, "$1"))
    _Exit(9);
}
END
  cc -Wl,--no-as-needed -Wl,-rpath,"$dir" -o "$3" "$2" "$dir/libasan.so.8"
}

# used_ms PID: prints the CPU time so far of all threads of the process (proc_pid_stat(5): in hundredths of a
# second)
used_ms() { awk '{ sub(/.*\) /, ""); print 10 * ($12 + $13) }' "/proc/$1/stat"; }

# await_used MS PID: waits until the process has used MS more CPU time, or has ended
await_used() {
  local until_ms
  until_ms=$(($(used_ms "$2") + $1))
  while kill -0 "$2" 2>/dev/null && [ "$(used_ms "$2")" -lt $until_ms ]; do sleep 0.02; done
}

# until_used MS PID PROGRAM...: runs a recorder of the process until the process has used MS more CPU time.
# PROGRAM must not be a shell function: the signal would end only the subshell.
until_used() {
  local recorder until_ms
  until_ms=$(($(used_ms "$2") + $1))
  "${@:3}" & recorder=$!
  while kill -0 $recorder 2>/dev/null && [ "$(used_ms "$2")" -lt $until_ms ]; do sleep 0.02; done
  kill -TERM $recorder 2>/dev/null
  wait $recorder
}

# load_while FILE COMMAND...: runs a recorder of a process, which it names to the command by -p, and writes to
# FILE.  The process loads a plugin once the recorder has read its mappings.
load_while() {
  local file=$1 target recorder; shift
  mkfifo "$dir/go"
  "$PE_WORKLOAD" "plugin=$PE_PLUGIN" 1 <"$dir/go" & target=$!
  exec 3>"$dir/go"
  "$@" -p $target -o "$file" 3>&- & recorder=$!
  until [ -s "$file" ]; do kill -0 $recorder || break; sleep 0.02; done
  exec 3>&-
  wait $recorder
}

# can_record OPTION...: succeeds if pe-record can record with these options
can_record() { pe-record -q -e cpu-clock -F 997 "$@" -o "$dir/can_record.pe" -- "$PE_WORKLOAD" shares 0.1; }

# record_by_perf OPTION...: runs perf record.  While another recorder of the whole system asks for build ids, Linux marks
# all recorders' mappings as having one (pe-record(1), CAVEATS), and perf 6.1 aborts if they have none: so it asks, too.
record_by_perf() { perf record -q --buildid-mmap "$@"; }
# record_by_perf_without_ids FILE OPTION...: the same for build ids at the end of the file.  If perf aborts, it has another try.
record_by_perf_without_ids() {
  for _ in $(seq 20); do perf record -q -o "$@" 2>/dev/null && return; done
  fail "perf record -o $*"
}

# fold STREAM...: runs the middle of the pipeline
fold() { pe-symbolize -q "$1" | stackfold "${@:2}"; }
