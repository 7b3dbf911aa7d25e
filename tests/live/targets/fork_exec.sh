#!/bin/bash
# A command forks and calls exec.  The samples of each program have that program's name.
# (The child runs /proc/self/exe, so the kernel calls it "exe".)
. "$(dirname "$0")/../lib.sh"
pe-record -F 997 -o "$dir/f.pe" -- "$PE_WORKLOAD" fork 1 2>/dev/null
expect status 0 $?
fold "$dir/f.pe" --pid >"$dir/f.folded"
at_least 'the child in work(), %' 90 "$(share '^exe-[0-9]+;.*;main;work' "$dir/f.folded")"

pe-record -F 997 -o "$dir/sh.pe" -- sh -c "'$PE_WORKLOAD' shares 0.5; exec '$PE_WORKLOAD' recursion 0.5" 2>/dev/null
fold "$dir/sh.pe" >"$dir/sh.folded"
at_least 'before the exec, %' 40 "$(share '^workload;.*;work' "$dir/sh.folded")"
at_least 'after it, %' 40 "$(share '^workload;.*;dive' "$dir/sh.folded")"

# These processes live less than a period.  The samples, and the time without samples in the closing line, add
# up to their CPU time.
# shellcheck disable=SC2016 # the inner shell's variables
pe-record -F 99 -o "$dir/short.pe" -- bash -c 'for ((i = 0; i < 300; ++i)); do /bin/true; done; times' 2>"$dir/err" >"$dir/times"
read -r samples lost < <(sed -nE 's/^pe-record: ([0-9]+) samples? in [0-9.]+ s, ([0-9]+) lost.*/\1 \2/p' "$dir/err")
without=$(sed -nE 's/.*: ([0-9.]+) of [0-9.]+ s CPU time without samples.*/\1/p' "$dir/err")
had=$(tr 'ms' '  ' <"$dir/times" | awk '{ sum += 60 * $1 + $2 + 60 * $3 + $4 } END { print sum }')
expected=$(awk -v had="$had" -v without="${without:-0}" 'BEGIN { print 99 * (had - without) }')
samples_near "short processes, $(cat "$dir/err")" "$expected" "${samples:-0}" "${lost:-0}"

pe-record -o "$dir/status.pe" -- sh -c 'exit 7' 2>/dev/null; expect "the command's status" 7 $?
pe-record -o "$dir/status.pe" -- sh -c 'kill -9 $$' 2>/dev/null; expect 'killed by a signal' 137 $?
pe-record -o "$dir/status.pe" -- "$dir/none" 2>"$dir/err"; expect 'not found' 127 $?
expect message "pe-record: $dir/none: No such file or directory" "$(tail -1 "$dir/err")"
: >"$dir/plain"; pe-record -o "$dir/status.pe" -- "$dir/plain" 2>/dev/null; expect 'not executable' 126 $?
pe-record -o /dev/full -- true 2>/dev/null; expect 'own failure' 125 $?
pe-record -o "$dir/none/x" -- true 2>/dev/null; expect 'own failure at the start' 125 $?

# The stream and the command's output never mix.
pe-record -- sh -c 'echo from the command' 2>"$dir/err" >"$dir/out"
grep -q 'from the command' "$dir/err" || fail "the command's output is not on standard error"
pe-symbolize -q "$dir/out" >/dev/null || fail 'the stream is damaged by the command'
expect 'output with -o' 'from the command' "$(pe-record -o "$dir/x.pe" -- sh -c 'echo from the command' 2>/dev/null)"
finish
