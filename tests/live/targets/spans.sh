#!/bin/bash
# The calls of functions, as the program itself knows them: slow ones, and all that end without a return.
. "$(dirname "$0")/../lib.sh"
[ -e /sys/bus/event_source/devices/uprobe ] || skip 'this kernel has no uprobes'
[ "$(id -u)" = 0 ] || skip 'probes need root'

pe-record -F 4000 --span handle --span jumps_on --span recurse --span leaves --span throws --span ends_inside \
  --span exits_inside -o "$dir/c.pe" -- "$PE_CALLS" >"$dir/said" 2>"$dir/err" || fail "pe-record: $(cat "$dir/err")"
expect 'exceptions are caught' 'caught 10' "$(tail -1 "$dir/said")"
grep -q ' 0 lost' "$dir/err" || skip "records were lost: $(cat "$dir/err")"

# value FUNCTION COLUMN: prints a number of the table
stacktop --spans --tsv "$dir/c.pe" >"$dir/spans.tsv" 2>"$dir/notes"
value() {
  awk -F '\t' -v f="$1" -v c="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == c) at = i } $NF == f { print $at }' "$dir/spans.tsv"
}
expect 'calls of handle' 1000 "$(value handle calls)"
expect 'calls of jumps_on' 10 "$(value jumps_on calls)"
expect 'recursive calls are one' '10 50' "$(value recurse calls) $(value recurse recursive)"
expect 'longjmp' '20 10' "$(value leaves calls) $(value leaves left)"
expect 'exceptions' '20 10' "$(value throws calls) $(value throws left)"
expect 'threads that end inside' '3 3' "$(value ends_inside calls) $(value ends_inside ended_with_thread)"
expect 'a process that ends inside' '1 1' "$(value exits_inside calls) $(value exits_inside ended_with_thread)"
at_least 'a last step that is a jump is a part of the call, ns' 2000000 "$(value jumps_on p50_ns)"
at_least 'the longest call, ns' 20000000 "$(value handle max_ns)"

# slow_calls FUNCTION ALL LIMIT: stackfold finds as many slow calls as the program
slow_calls() {
  local found least most
  read -r _ least most fast_us < <(grep "^$1 " "$dir/said")
  found=$(sed -nE "s/.* $1: ([0-9]+) of $2 calls took longer than $3.*/\1/p" "$dir/err")
  [ -n "$found" ] || fail "slow calls: $(cat "$dir/err")"
  at_least "slow calls of $1" "$least" "$found"
  at_least "slow calls of $1, at most" "$found" "$most"
}

# Only samples of slow calls are kept, and all of these are in the slow part.  The limit is longer than the system
# mostly interrupts a fast call for.
pe-symbolize <"$dir/c.pe" >"$dir/c.sym" 2>/dev/null
stackfold --span handle --longer 15ms "$dir/c.sym" >"$dir/slow" 2>"$dir/err"
slow_calls handle 1000 '15 ms'
at_least 'slow calls' 30 "$(sed -n 's/^handle \([0-9]*\) .*/\1/p' "$dir/said")"
at_least 'per cent of slow calls in the slow part' 99 "$(share ';slow_part[; ]' "$dir/slow")"
grep -qvE '^handle \[[0-9]+-[0-9]+ m?s\];' "$dir/slow" && fail "other roots: $(cut -c1-80 "$dir/slow")"
grep -q ';jumps_on\|;recurse' "$dir/slow" && fail 'other functions are kept'

# Waits, with the same marks.  A call that is not meant to be slow has another sleep.
# check_waits LABEL COMMAND...: records the program's sleeps by that command
check_waits() {
  local all_us
  "${@:2}" --span sleeps -o "$dir/w.pe" -- "$PE_CALLS" sleep >"$dir/said" 2>"$dir/err" || { fail "$1: $(cat "$dir/err")"; return; }
  stackfold --span sleeps --longer 10ms <(pe-symbolize <"$dir/w.pe" 2>/dev/null) >"$dir/waits" 2>"$dir/err"
  slow_calls sleeps 10 '10 ms'
  all_us=$(awk '{ n += $NF } END { print n }' "$dir/waits")
  at_least "$1: microseconds of waits in slow calls" 60000 "$all_us"
  at_least "$1: per cent in the long sleep" "$(awk -v all="$all_us" -v fast="$fast_us" 'BEGIN { print 99 - 100 * fast / all }')" \
    "$(share ';long_sleep[; ]' "$dir/waits")"
}
check_waits perf offcpu --engine perf
if offcpu -q --engine bpf -o "$dir/try.pe" -- sleep 0.1 2>/dev/null; then
  check_waits bpf offcpu --engine bpf
  check_waits 'with wakers' offcpu --wakers
  check_waits 'CPU time and waits' pe-record --event cpu,waits --wakers --locks
  grep -q ';long_sleep;.*;\[sleep\];--;' "$dir/waits" || fail "no waker: $(cat "$dir/waits")"
  # What the slow calls did, from the front door: the waits are as in the picture, and the rest of the time is CPU time.
  "$PE_SCRIPTS/stackpipe" record --span sleeps --longer 10ms -o "$dir/slow.folded" -- "$PE_CALLS" sleep >"$dir/said" 2>"$dir/err" ||
    fail "stackpipe: $(cat "$dir/err")"
  slow_calls sleeps 10 '10 ms'
  slept_ms=$(awk '!/^#/ && /;\[sleep\]/ { n += $NF } END { print n / 1000 }' "$dir/slow.folded")
  at_least 'ms of slow calls' 60 "$(sed -n 's/.*longer than 10 ms (0\.0*\([0-9]*\) s: .*sleep .*/\1/p' "$dir/err")"
  within 'ms of sleep as a fact' "$slept_ms" "$(awk '/^# sleep: / { print $3 * 1000 }' "$dir/slow.folded")" 1
fi

# Functions whose calls cannot be followed.
pe-record --span no_such_function -o "$dir/n.pe" -- "$PE_CALLS" 2>"$dir/err" && fail 'an unknown function was accepted'
grep -q "^pe-record: --span: .* no function 'no_such_function'" "$dir/err" || fail "unknown function: $(cat "$dir/err")"
if [ -n "${PE_GO:-}" ]; then
  pe-record --span main.main -o "$dir/g.pe" -- "$PE_GO" 2>"$dir/err" && fail 'a Go program was accepted'
  grep -q 'is written in Go' "$dir/err" || fail "Go: $(cat "$dir/err")"
fi
finish
