#!/bin/bash
# Stacks that the kernel unwinds are as complete as copied stacks, however deep they are, and the shares are
# the same.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../stacks_lib.sh"
if ! can_record --engine bpf 2>"$dir/err"; then
  grep -Eq 'this build has no engine bpf|no BTF|pid namespace|Operation not permitted' "$dir/err" || fail "not refused, nor recorded: $(cat "$dir/err")"
  [ "$failed" = 0 ] || finish
  skip "$(cat "$dir/err")"
fi

# Nothing is lost; only stacks at the end of the programs are unwound from copies.
record_build() {  # MS BUILD CASE...
  local build=$2
  program_of "$build" || return
  pe-record --engine bpf -F 997 -o "$dir/$build.pe" -- "$program" "$1" "${@:3}" 2>"$dir/err" || fail "$build: $(cat "$dir/err")"
  [ -z "${PE_VERBOSE:-}" ] || tail -1 "$dir/err"
  grep -q ' 0 lost' "$dir/err" || fail "$build: $(cat "$dir/err")"
}
check_build() { record_build 250 "$@" && check_cases "$1" "$dir/$1.pe" 150 "${@:2}"; }
pool_build() { record_build 80 "$@" && pool_cases "$1" "$dir/$1.pe" 80 "${@:2}"; }
check_build o2 alloca realigned signal exception plt lazy thread=2 recursion recursion=1500 memcpy qsort vdso syscall tail noreturn
pool_build o0 alloca realigned signal exception thread=1 qsort
pool_build o3 realigned signal exception plt memcpy
pool_build clang alloca realigned signal exception thread=1 noreturn
pool_build nopie realigned exception qsort
pool_build static signal exception thread=1 vdso
check_pool
check_exceptions

# The stack has a megabyte, pages that were never written, or a function that a handler on another stack
# interrupted.  As soon as the kernel has the tables (alloca), these stacks are complete.
program_of o2 || finish
pe-record --engine bpf -F 997 -o "$dir/deep.pe" -- "$program" 500 alloca deep=1024 unwritten=48 altstack 2>"$dir/err" || fail "$(cat "$dir/err")"
[ -z "${PE_VERBOSE:-}" ] || tail -1 "$dir/err"
pe-symbolize -q "$dir/deep.pe" | stackfold | without_kernel_frames >"$dir/deep.folded"
for case in deep=1024 unwritten=48 altstack; do
  grep "^$case;" "$dir/deep.folded" >"$dir/case"
  at_least "$case: samples" 300 "$(awk '{ n += $NF } END { print n + 0 }' "$dir/case")"
  at_least "$case: complete stacks, %" 99 "$(share "^[^;]+;$main_root" "$dir/case")"
done

# A running process and its threads have the same shares.
check_shares() {  # LABEL FOLDED
  within "$1: fifty" 50 "$(share ';main;work;fifty' "$2")" 5
  within "$1: thirty" 30 "$(share ';main;work;thirty' "$2")" 5
  within "$1: twenty" 20 "$(share ';main;work;twenty' "$2")" 5
}
"$PE_WORKLOAD" shares 30 & target=$!
until_used 2000 $target pe-record --engine bpf -F 997 -p $target 2>"$dir/err" | pe-symbolize -q | stackfold >"$dir/running.folded"
check_shares 'running process' "$dir/running.folded"
pe-record --engine bpf -F 997 -d 1 -t $target -o "$dir/thread.pe" 2>"$dir/err" || fail "$(cat "$dir/err")"
fold "$dir/thread.pe" >"$dir/thread.folded"
at_least 'a thread: complete, %' 99 "$(share '^workload;_start;.*;main;work' "$dir/thread.folded")"

# The whole system: a process gets its tables after its first sample.
pe-record --engine bpf -F 997 -a -d 2 -o "$dir/all.pe" 2>"$dir/err" || fail "$(cat "$dir/err")"
fold "$dir/all.pe" >"$dir/all.folded"
grep '^workload;' "$dir/all.folded" | without_kernel_frames >"$dir/workload.folded"
at_least 'of everything, the workload: samples' 300 "$(awk '{ n += $NF } END { print n + 0 }' "$dir/workload.folded")"
at_least 'of everything, the workload: complete, %' 99 "$(share '^workload;_start;.*;main' "$dir/workload.folded")"
kill $target

# Processes start, end, and load libraries while they run.
pe-record --engine bpf -F 997 -o "$dir/exec.pe" -- sh -c "'$PE_WORKLOAD' shares 0.5; exec '$PE_WORKLOAD' recursion 0.5" 2>"$dir/err"
fold "$dir/exec.pe" >"$dir/exec.folded"
at_least 'before the exec, %' 40 "$(share '^workload;_start;.*;work' "$dir/exec.folded")"
at_least 'after it, %' 40 "$(share '^workload;_start;.*;dive' "$dir/exec.folded")"
pe-record --engine bpf -F 997 -o "$dir/fork.pe" -- "$PE_WORKLOAD" fork 1 2>"$dir/err"
fold "$dir/fork.pe" >"$dir/fork.folded"
at_least 'the child in work(), %' 90 "$(share '^exe;_start;.*;main;work' "$dir/fork.folded")"
pe-record --engine bpf -F 997 -o "$dir/plugin.pe" -- "$PE_WORKLOAD" "plugin=$PE_PLUGIN" 1 </dev/null 2>"$dir/err"
fold "$dir/plugin.pe" >"$dir/plugin.folded"
at_least 'in the plugin, %' 80 "$(share '^workload;_start;.*;main;.*plugin_spin' "$dir/plugin.folded")"

# The kernel's frames are in the same place as in perf's copies, or are left out.
kernel=(dd if=/dev/zero of=/dev/null bs=1M count=3000)
pe-record --engine bpf -F 997 -o "$dir/kernel.pe" -- "${kernel[@]}" 2>/dev/null
fold "$dir/kernel.pe" --annotate >"$dir/kernel.folded"
at_least 'in the kernel, called by the program, %' 50 "$(share ';__libc_start_[^;]*;.*;read[^;]*;.*_\[k\]' "$dir/kernel.folded")"
pe-record --engine bpf --user-only -F 997 -o "$dir/user.pe" -- "${kernel[@]}" 2>/dev/null
fold "$dir/user.pe" --annotate >"$dir/user.folded"
expect 'user only: kernel frames, %' 0.0 "$(share '_\[k\]' "$dir/user.folded")"

# Two events, which threads inherit: each sample names its event.
pe-record --engine bpf -e cpu-clock,page-faults -F 997 -o "$dir/two.pe" -- "$PE_WORKLOAD" threads 1 2>/dev/null
if command -v perf >/dev/null; then
  perf script -i "$dir/two.pe" -F event,tid -G 2>"$dir/err" | sort | uniq -c | awk '{ print $NF }' | sort | uniq -c >"$dir/events"
  expect 'events that perf reads' '2' "$(grep -cE 'cpu-clock|page-faults' "$dir/events")"
  expect 'samples that perf script reads' "$(fold "$dir/o2.pe" | awk '{ n += $NF } END { print n }')" \
    "$(perf script -i "$dir/o2.pe" -F comm 2>/dev/null -G | grep -c .)"
fi

# A user without privileges gets the reason; the engine "auto" chooses perf.
chmod 755 "$dir"; mkdir -m 777 "$dir/w"
cp "$PE_WORKLOAD" "$(command -v pe-record)" "$dir/"
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all "$@"; }
if [ "$(id -u)" = 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
  nobody "$dir/pe-record" --engine bpf -o "$dir/w/x.pe" -- "$dir/workload" shares 0.1 2>"$dir/err"; expect 'as nobody' 125 $?
  grep -q '^pe-record: --engine bpf: eBPF: .*need root, or CAP_BPF and CAP_PERFMON' "$dir/err" || fail "as nobody: $(cat "$dir/err")"
  nobody "$dir/pe-record" --engine auto -o "$dir/w/x.pe" -- "$dir/workload" shares 0.1 2>"$dir/err"; expect 'auto as nobody' 0 $?
  grep -q '; recording user stacks only$' "$dir/err" || fail "auto as nobody: $(cat "$dir/err")"
fi
finish
