#!/bin/bash
# A recording without samples is a failure and reports the reason; no tool draws an empty flame graph.
. "$(dirname "$0")/../lib.sh"
# because LABEL STATUS REASON COMMAND...: checks the recorder's status and its last line, which starts with $prefix
because() {
  "${@:4}" >"$dir/out" 2>"$dir/err"; expect "$1: status" "$2" $?
  tail -n 1 "$dir/err" | grep -qE "^[a-z-]+: ${prefix-nothing was recorded: }$3\$" || fail "$1: $(cat "$dir/err")"
}
# is_in_state STATE PID: waits until the process is in this state
is_in_state() {
  for _ in $(seq 1200); do grep -q "^State:.$1" "/proc/$2/status" && return; sleep 0.02; done
  fail "$2 does not get into state $1"
}

sleep 600 & sleeper=$!
await_program $sleeper sleep
is_in_state S $sleeper
because asleep 1 'the target slept all the time' pe-record -p $sleeper -d 0.2 -o "$dir/r.pe"
because 'asleep, a thread' 1 'the target slept all the time' pe-record -t $sleeper -d 0.2 -o "$dir/r.pe"
because 'asleep, no other line' 1 'the target slept all the time' pe-record -q -p $sleeper -d 0.2 -o "$dir/r.pe"
because 'waits all the time' 1 'the target slept all the time' offcpu --engine perf -p $sleeper -d 0.2 -o "$dir/w.pe"
kill -STOP $sleeper
is_in_state T $sleeper
because stopped 1 'the target was stopped by a signal all the time' pe-record -p $sleeper -d 0.2 -o "$dir/r.pe"
{ kill -KILL $sleeper; wait $sleeper; } 2>/dev/null

# The stream is still complete, and every reader reports that it is empty.
pe-symbolize -q "$dir/r.pe" >"$dir/n.pe"; expect 'named: status' 0 $?
stackfold "$dir/n.pe" >"$dir/folded" 2>"$dir/err"; expect 'folded: status' 0 $?
grep -q '^stackfold: .*n.pe: 0 samples in it$' "$dir/err" || fail "folded: $(cat "$dir/err")"
for form in pprof speedscope firefox; do
  stackfold --to $form "$dir/n.pe" >"$dir/out" 2>"$dir/err"; expect "$form: status" 1 $?
  [ ! -s "$dir/out" ] || fail "$form: something is written"
done
flamesvg "$dir/folded" >/dev/null 2>&1; expect 'drawn: status' 2 $?

# The first process of a server sleeps, and its workers run.
# shellcheck disable=SC2016 # the program is to expand it
sh -c '"$0" shares 600 & "$0" shares 600 & echo >"$1"; wait' "$PE_WORKLOAD" "$dir/began" & parent=$!
await "$dir/began"
is_in_state S $parent
because 'its children' 1 'the target slept all the time; its 2 children ran for [0-9.]+ m?s: use --children or -a' \
  pe-record -p $parent -d 1 -o "$dir/r.pe"
pkill -P $parent
wait $parent

# The recorder returns the command's own status, unless that is success.
brief='0 samples: the command ran for less than one sampling period \([0-9.]+ ms of 1.00 s\); try -F '
prefix='' because 'a short command' 125 "$brief(4999|max)" pe-record -e cpu-clock -F 1 -o "$dir/r.pe" -- true
expect 'a short command: samples' '' "$(grep ' samples in ' "$dir/err")"
prefix='' because 'a short command that fails' 3 "$brief(4999|max)" pe-record -e cpu-clock -F 1 -o "$dir/r.pe" -- sh -c 'exit 3'
because 'another event' 125 'the target ran for .*, with too few events for a sample \(alignment-faults\)' \
  pe-record -e alignment-faults -o "$dir/r.pe" -- true
"$PE_SCRIPTS/flamegraph" -F 1 "$dir/a.svg" -- true 2>"$dir/err"; expect 'flamegraph: status' 125 $?
[ ! -e "$dir/a.svg" ] || fail 'flamegraph: an empty picture'
echo '<svg class="flamegraph">old' >"$dir/a.svg"
"$PE_SCRIPTS/flamegraph" -F 1 "$dir/a.svg" -- sh -c 'exit 3' 2>"$dir/err"; expect 'flamegraph: status of the command' 3 $?
expect 'flamegraph: the old flame graph' '<svg class="flamegraph">old' "$(cat "$dir/a.svg")"
grep -q 'a.svg: not written: nothing was recorded$' "$dir/err" || fail "flamegraph: $(cat "$dir/err")"

# An idle interval does not end a watch.
sleep 600 & sleeper=$!
await_program $sleeper sleep
is_in_state S $sleeper
"$PE_SCRIPTS/profile_run" watch --output "$dir/runs" --pid $sleeper --interval 0.2 --duration 0.5 >/dev/null 2>"$dir/err"; expect 'watch: status' 0 $?
kill $sleeper

# When a user executes a program with other privileges, the kernel removes the counters.
if [ "$(id -u)" = 0 ]; then
  mkdir "$dir/open"
  cp "$(command -v sleep)" "$dir/open/other"
  cp "$(command -v pe-record)" "$dir/open"
  chmod 4755 "$dir/open/other"
  chmod 777 "$dir" "$dir/open"
  because 'set-user-ID' 125 "'.*/other' got other privileges from its set-user-ID bit, .* \(CAP_PERFMON\) or --engine ptrace \(CAP_SYS_PTRACE\)" \
    setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/open/pe-record" --engine perf -e cpu-clock -o "$dir/open/r.pe" -- "$dir/open/other" 0.2
fi
finish
