#!/bin/bash
# Fifty, thirty and twenty per cent of the time are found in the right functions, of a command and of a
# running process.
. "$(dirname "$0")/../lib.sh"

check_shares() {  # LABEL FOLDED
  within "$1: fifty" 50 "$(share ';main;work;fifty' "$2")" 5
  within "$1: thirty" 30 "$(share ';main;work;thirty' "$2")" 5
  within "$1: twenty" 20 "$(share ';main;work;twenty' "$2")" 5
}

pe-record -F 997 -o "$dir/command.pe" -- "$PE_WORKLOAD" shares 2 2>"$dir/err"
expect 'status of the command' 0 $?
fold "$dir/command.pe" >"$dir/command.folded"
check_shares command "$dir/command.folded"
at_least 'samples in 2 s at 997 Hz' 1500 "$(awk '{ n += $NF } END { print n }' "$dir/command.folded")"
grep -Eq '^pe-record: [0-9]+ samples in [0-9.]+ s, 0 lost, [0-9.]+ % of stacks complete, recorder: [0-9.]+ % of a CPU$' "$dir/err" ||
  fail "closing line: $(cat "$dir/err")"

"$PE_WORKLOAD" shares 30 &
target=$!
until_used 2000 $target pe-record -F 997 -p $target 2>"$dir/err" | pe-symbolize | stackfold >"$dir/running.folded"
kill $target
check_shares 'running process' "$dir/running.folded"
expect 'root frame' workload "$(cut -d';' -f1 "$dir/running.folded" | cut -d' ' -f1 | sort -u)"

# The stream has what the closing line says about stacks, and the engine.
fact() { sed -n "s/^# $1: //p" "$dir/facts"; }
for engine in perf bpf signal ptrace; do
  can_record --engine $engine 2>/dev/null || continue
  pe-record --engine $engine -e cpu-clock -F 997 -o "$dir/engine.pe" -- "$PE_WORKLOAD" shares 0.3 2>"$dir/err"
  stackfold -q --annotate "$dir/engine.pe" >"$dir/facts"
  expect 'engine' $engine "$(fact engine)"
  told=$(sed -n 's/^pe-record: .* \([0-9.]* %\) of stacks complete.*/\1/p' "$dir/err")
  [ -n "$told" ] || fail "$engine: closing line: $(cat "$dir/err")"
  expect "$engine: complete stacks" "$told" "$(fact complete-stacks)"
done
finish
