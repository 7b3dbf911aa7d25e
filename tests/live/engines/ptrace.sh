#!/bin/bash
# Stopping threads gives the same result as counters: the shares of a known program and of its threads; the
# libraries that it loads, the processes that it starts, and exec.  Stacks may be deep.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../stacks_lib.sh"
record() { pe-record -v --engine ptrace "$@" 2>"$dir/err"; }

check_shares() {  # LABEL FOLDED
  within "$1: fifty" 50 "$(share ';main;work;fifty' "$2")" 5
  within "$1: thirty" 30 "$(share ';main;work;thirty' "$2")" 5
  within "$1: twenty" 20 "$(share ';main;work;twenty' "$2")" 5
}
# has_enough FOLDED: on a busy machine, a sample may represent several periods.  The shares of fewer than 900 samples
# vary by more than five points, so more are recorded then.
has_enough() { [ "$(awk '{ n += $NF } END { print n + 0 }' "$1")" -ge 900 ]; }
for _ in 1 2 3 4; do
  record -F 499 -o "$dir/command.pe" -- "$PE_WORKLOAD" shares 2 || fail "a command: $(cat "$dir/err")"
  fold "$dir/command.pe" >>"$dir/command.folded"
  has_enough "$dir/command.folded" && break
done
check_shares command "$dir/command.folded"
grep -Eq '^pe-record: [0-9]+ samples in [0-9.]+ s, 0 lost, [0-9.]+ % of stacks complete' "$dir/err" || fail "closing line: $(cat "$dir/err")"
grep -Eq '^pe-record: 1 thread seen; own CPU .*; [0-9]+ stops, [0-9]+ of them without a sample, [0-9.]+ s in all, [0-9]+ us on average, [0-9]+ us at most' "$dir/err" ||
  fail "details: $(cat "$dir/err")"
# Samples represent CPU time, whatever else runs here: the weight of a sample is its share of the CPU time.
expect 'the event' cpu-clock "$(perf script -i "$dir/command.pe" -F event 2>/dev/null -G | sort -u | tr -d ' :')"
seconds=$(pe-symbolize -q "$dir/command.pe" | stackfold --weight period | awk '{ n += $NF } END { print n / 1e9 }')
within 'CPU seconds in all' 2.0 "$seconds" 0.2

"$PE_WORKLOAD" shares 60 & target=$!
for _ in 1 2 3 4; do
  until_used 2000 $target pe-record --engine ptrace -F 499 -p $target -o "$dir/running.pe" 2>"$dir/err" || fail "a process: $(cat "$dir/err")"
  fold "$dir/running.pe" >>"$dir/running.folded"
  has_enough "$dir/running.folded" && break
done
check_shares 'running process' "$dir/running.folded"
expect 'root frames' workload "$(cut -d';' -f1 "$dir/running.folded" | cut -d' ' -f1 | sort -u)"
kill $target

# Each thread has as much CPU time as the kernel counts for it.
"$PE_WORKLOAD" threads 60 & target=$!
left=$(tid_of $target left); right=$(tid_of $target right)
ran() { cut -d' ' -f1 "/proc/$target/task/$1/schedstat"; }
before="$(ran "$left") $(ran "$right")"
until_used 2000 $target pe-record --engine ptrace -F 499 -p $target -o "$dir/both.pe" 2>"$dir/err" || fail "threads: $(cat "$dir/err")"
had=$(echo "$before $(ran "$left") $(ran "$right")" | awk '{ l = $3 - $1; r = $4 - $2; printf "%.1f", 100 * l / (l + r) }')
fold "$dir/both.pe" --weight period >"$dir/both.folded"
within 'left of both' "$had" "$(share '^left;.*go_left' "$dir/both.folded")" 5
at_least 'left and right, %' 99 "$(share '^left;.*go_left|^right;.*go_right' "$dir/both.folded")"
record -F 499 -d 1 -t "$left" -o "$dir/left.pe" || fail "one thread: $(cat "$dir/err")"
fold "$dir/left.pe" >"$dir/left.folded"
expect 'share of the one thread asked for' 100.0 "$(share '^left;.*go_left' "$dir/left.folded")"
kill $target

# The program starts processes, calls exec, and loads a library.
record -F 499 -o "$dir/fork.pe" -- "$PE_WORKLOAD" fork 1 || fail "fork: $(cat "$dir/err")"
fold "$dir/fork.pe" --pid --weight period >"$dir/fork.folded"
at_least 'the child in work(), %' 90 "$(share '^exe-[0-9]+;.*;main;work' "$dir/fork.folded")"
record -F 499 -o "$dir/exec.pe" -- sh -c "'$PE_WORKLOAD' shares 0.5; exec '$PE_WORKLOAD' recursion 0.5"
fold "$dir/exec.pe" --weight period >"$dir/exec.folded"
at_least 'before the exec, %' 40 "$(share '^workload;_start;.*;work' "$dir/exec.folded")"
at_least 'after it, %' 40 "$(share '^workload;_start;.*;dive' "$dir/exec.folded")"
load_while "$dir/plugin.pe" record -F 499 || fail "a plugin: $(cat "$dir/err")"
fold "$dir/plugin.pe" --annotate >"$dir/plugin.folded"
at_least 'in the plugin, %' 80 "$(share 'plugin_spin_\[l\]' "$dir/plugin.folded")"

# The recorder returns the status of the command.
record -o "$dir/s.pe" -- sh -c 'exit 7'; expect "the command's status" 7 $?
record -o "$dir/s.pe" -- sh -c 'kill -9 $$'; expect 'killed by a signal' 137 $?
record -o "$dir/s.pe" -- "$dir/none"; expect 'not found' 127 $?
expect message "pe-record: $dir/none: No such file or directory" "$(tail -1 "$dir/err")"
: >"$dir/plain"; record -o "$dir/s.pe" -- "$dir/plain"; expect 'not executable' 126 $?
record -o /dev/full -- true; expect 'own failure' 125 $?

# LeakSanitizer traces its own process when that ends, and would fail.  So pe-record refuses such a command.
# If another program has LeakSanitizer, it runs without the recorder.
printf 'int main(void) { return 3; }\n' >"$dir/main.c"
compilers="gcc"; ! command -v clang >/dev/null || compilers+=" clang"
for compiler in $compilers; do
  for sanitizer in address leak; do
    $compiler -fsanitize=$sanitizer -o "$dir/sanitized" "$dir/main.c"
    record -o "$dir/s.pe" -- "$dir/sanitized"; expect "$compiler, $sanitizer: the command" 125 $?
    grep -q 'LeakSanitizer in it does not work while it is traced' "$dir/err" || fail "$compiler, $sanitizer: $(cat "$dir/err")"
    record -o "$dir/s.pe" -- sh -c "'$dir/sanitized'; exit \$?"; expect "$compiler, $sanitizer: a child" 3 $?
    grep -q ': 1 program with LeakSanitizer, which fails when traced: not sampled: ' "$dir/err" ||
      fail "$compiler, $sanitizer: a child: $(cat "$dir/err")"
    record -o "$dir/s.pe" -- sh -c "exec '$dir/sanitized'"; expect "$compiler, $sanitizer: exec" 3 $?
    ASAN_OPTIONS=detect_leaks=0 LSAN_OPTIONS=detect_leaks=0 record -o "$dir/s.pe" -- "$dir/sanitized"
    expect "$compiler, $sanitizer: without a search for leaks" 3 $?
    grep -q LeakSanitizer "$dir/err" && fail "$compiler, $sanitizer: not looking for leaks: $(cat "$dir/err")"
  done
done

# Stacks of a megabyte and more.
program_of o2 || finish
record -F 499 -o "$dir/deep.pe" -- "$program" 500 deep=1024 alloca || fail "deep: $(cat "$dir/err")"
pe-symbolize -q "$dir/deep.pe" | stackfold >"$dir/deep.folded"
grep '^deep=1024;' "$dir/deep.folded" >"$dir/case"
at_least 'deep: complete stacks, %' 95 "$(share "^[^;]+;$main_root" "$dir/case")"

# With the wall clock, a thread that sleeps has as much time as a busy one.
record --clock wall -F 99 -o "$dir/wall.pe" -- sh -c 'sleep 1.5' || fail "wall: $(cat "$dir/err")"
fold "$dir/wall.pe" >"$dir/wall.folded"
within 'asleep, of two processes' 50 "$(share '^sleep;.*nanosleep' "$dir/wall.folded")" 10
at_least 'all asleep, %' 90 "$(share 'nanosleep|wait4' "$dir/wall.folded")"
finish
