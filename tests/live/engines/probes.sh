#!/bin/bash
# Records probes of a program that counts how often it passes them, by each engine, and checks the weights, the
# filters and the messages.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'probes need root'
[ -e /sys/bus/event_source/devices/uprobe/type ] || skip 'this kernel has no uprobes (CONFIG_UPROBE_EVENTS)'
samples() { fold "$1" "${@:2}" 2>/dev/null | awk '{ n += $NF } END { print n + 0 }'; }
lost() { sed -n 's/.* s, \([0-9]*\) lost.*/\1/p' "$dir/err"; }
record() { pe-record -o "$dir/p.pe" "$@" 2>"$dir/err" || fail "$*: $(cat "$dir/err")"; }
# hits LABEL WANTED: all hits are samples, or counted as lost
hits() { expect "$1" "$2" $(($(samples "$dir/p.pe") + $(lost))); }
refused() {  # EVENT PATTERN
  pe-record -o "$dir/none.pe" -e "$1" -- "$PE_PROBED" 1 2>"$dir/err" && fail "$1: recorded"
  grep -q -- "$2" "$dir/err" || fail "$1: $(cat "$dir/err")"
}

# Each call is a hit, in each thread and child, with a complete stack.
for engine in auto perf; do
  record --engine $engine -e "uprobe:$PE_PROBED:counted" -- "$PE_PROBED" 1000 all
  hits "$engine: calls" 3000
  at_least "$engine: stacks from main or a thread to counted, %" 99 \
    "$(fold "$dir/p.pe" 2>/dev/null | share '^probed;.*(main|start_thread;in_thread);.*outer;counted ' /dev/stdin)"
done
record -e "uprobe:$PE_PROBED:counted" -- "$PE_PROBED" 100000
hits '100,000 calls' 100000
grep -q ' hits per second$' "$dir/err" || fail "no hits per second: $(cat "$dir/err")"

# The forms of a name, and several probes at once.
record -e uretprobe:outer -- "$PE_PROBED" 10 all
hits 'returns' 3
at_least 'stacks of returns from main or a thread to the function, %' 100 \
  "$(fold "$dir/p.pe" 2>/dev/null | share '(main|start_thread;in_thread);.*outer ' /dev/stdin)"
pe-record -o "$dir/p.pe" -e uretprobe:throws -- "$PE_CALLS" >"$dir/said" 2>"$dir/err" || fail "returns: $(cat "$dir/err")"
expect 'exceptions pass returns' 'caught 10' "$(grep caught "$dir/said")"
hits 'returns without an exception' 10
if [ -n "${PE_GO:-}" ]; then  # goroutines that are 201 calls deep, whose stacks the runtime moves, and scans all the time
  GOGC=1 record -e uretprobe:main.dive -- "$PE_GO" 30 200
  returns=$(($(samples "$dir/p.pe") + $(lost)))
  at_least 'returns in Go' 402 "$returns"
  expect 'returns of whole recursions in Go' 0 $((returns % 201))
fi
record -e "uprobe:$PE_PROBED:probed.c:31" -- "$PE_PROBED" 10 all
hits 'an inlined line' 10
record -e "uprobe:$PE_PROBED:0x$(nm "$PE_PROBED" | awk '$3 == "counted" { print $1 }')" -- "$PE_PROBED" 10
hits 'an address' 10
record -e 'uprobe:*_line,uprobe:outer' -- "$PE_PROBED" 10 all
expect 'a pattern' 10 "$(samples "$dir/p.pe" --event uprobe::by_line)"
expect 'a second probe' 3 "$(samples "$dir/p.pe" --event uprobe:outer)"
for engine in auto perf; do
  record --engine $engine -e usdt:probed:passed --weight arg0 -- "$PE_PROBED" 10 all
  [ "$(lost)" != 0 ] || expect "$engine: a static probe with a semaphore" 10000 "$(samples "$dir/p.pe")"
done
record -e "usdt:$PE_PROBED:probed:passed" --weight arg1 -- "$PE_PROBED" 10 all
grep -q '10 samples with a negative value' "$dir/err" || fail "a negative argument: $(cat "$dir/err")"

# A running process, of which only new calls count.  Others that run the program are left out.
mkfifo "$dir/go"
(read -r _; exec "$PE_PROBED" 500) <"$dir/go" & target=$!
exec 3>"$dir/go"
rm "$dir/p.pe"
pe-record -e "uprobe:$PE_PROBED:counted" -p $target >"$dir/p.pe" 2>"$dir/err" & recorder=$!
# It waits in ppoll(2), call 271, once its counters run.
until grep -q '^271 ' /proc/$recorder/syscall; do kill -0 $recorder 2>/dev/null || break; sleep 0.02; done
"$PE_PROBED" 700
echo >&3
exec 3>&-
wait $recorder
hits 'calls of a process' 500
# A program in the kernel sees the hits of all CPUs, though the probe has a counter on one only.
grep 'came online' "$dir/err" && fail 'a CPU that did not come online'

# Weights: arguments, returned values, and what is negative.
for engine in auto perf; do
  record --engine $engine -e "uprobe:$PE_PROBED:counted" --weight arg1 -- "$PE_PROBED" 100
  [ "$(lost)" != 0 ] || expect "$engine: sum of arguments" 4950 "$(samples "$dir/p.pe")"
  record --engine $engine -e "uretprobe:$PE_PROBED:counted" --weight retval -- "$PE_PROBED" 100
  [ "$(lost)" != 0 ] || expect "$engine: sum of returned values" 5000 "$(samples "$dir/p.pe")"
  grep -q '50 samples with a negative value' "$dir/err" || fail "$engine: negative values: $(cat "$dir/err")"
done

for engine in auto perf; do
  record --engine $engine -e "uretprobe:$PE_PROBED:fails" --weight retval -- "$PE_PROBED" 10 all
  [ "$(lost)" != 0 ] || expect "$engine: sum of ints" 50 "$(samples "$dir/p.pe")"
  grep -q '5 samples with a negative value' "$dir/err" || fail "$engine: negative ints: $(cat "$dir/err")"
done

# Messages.
refused "uprobe:$PE_PROBED:countet" "has no function 'countet'; did you mean counted?"
refused "uprobe:$PE_PROBED:inlined" "the compiler has inlined 'inlined' everywhere"
refused "uprobe:$PE_PROBED:probed.c:1" 'no code for that line; the next line with code is'
refused 'uprobe:/no/such:main' '/no/such: no such file'
refused "uprobe:$0:main" 'not a program or library'
refused "usdt:$PE_PROBED:probed:pased" "has no static probe 'pased'; did you mean passed?"
refused "uprobe:$PE_PROBED:0xfffffff" 'has no code at'
refused "uprobe:$PE_PROBED:counted+1" 'inside the instruction at'
refused "uretprobe:$PE_PROBED:jumps" 'its returns cannot be seen: it may end by a jump to other code'
record -e "uretprobe:$PE_PROBED:*u*" -- "$PE_PROBED" 10
expect 'returns of a pattern' 11 "$(samples "$dir/p.pe" --all-events)"
grep -q '1 function left out, whose returns cannot be seen' "$dir/err" || fail "a pattern: $(cat "$dir/err")"
refused "uretprobe:$PE_PROBED:may_leave" 'its returns cannot be seen: it may end by a jump to other code'
pe-record --span to_pointer -o "$dir/s.pe" -- "$PE_PROBED" 1 2>"$dir/err" || :
grep -q "'to_pointer': 1 of its 1 exit is a jump to code that cannot be followed" "$dir/err" || fail "a jump: $(cat "$dir/err")"
refused "uretprobe:$PE_PROBED:_start" 'its returns cannot be seen: it never returns'
refused "uprobe:$PE_PROBED:locked" 'the kernel cannot probe the instruction there'
refused "uprobe:$PE_PROBED:pushes_flags" 'the kernel cannot step over the instruction pushf'
refused "uprobe:$PE_PROBED:table" 'nothing marks this symbol as code'
pe-record -c 10 -o "$dir/none.pe" -e "uprobe:$PE_PROBED:counted" -- "$PE_PROBED" 1 2>"$dir/err" && fail '-c: recorded'
grep -q -- '--count: the kernel records every uprobe:.* event: use --count 1' "$dir/err" || fail "-c: $(cat "$dir/err")"
objcopy --strip-all "$PE_PROBED" "$dir/stripped"
refused "uprobe:$dir/stripped:counted" "the file is stripped.*uprobe:$dir/stripped:0x1234"
[ -e /sys/bus/event_source/devices/kprobe ] || refused kprobe:vfs_read 'this kernel has no kprobes'
refused "uprobe:$(command -v bash):*" 'places match, but at most 128'
(ulimit -n 50; refused "uprobe:$PE_PROBED:*" 'ulimit -Hn'; exit "$failed") || failed=1

# Too many hits end the recording.
pe-record -o "$dir/p.pe" -e "uprobe:$PE_PROBED:counted" --max-hits 1000 -- "$PE_PROBED" 100000000 2>"$dir/err"
grep -q 'stopped: [0-9]* hits per second exceed --max-hits 1000' "$dir/err" || fail "--max-hits: $(cat "$dir/err")"

# Lists.
expect 'a list' "uprobe:$PE_PROBED:by_line" "$(pe-record --list "uprobe:$PE_PROBED:by_*")"
expect 'a list of events' page-faults "$(pe-record --list 'page-f*')"

# Tracepoints with weights and filters.
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
[ -d /sys/kernel/tracing/events/syscalls ] || { echo 'no tracepoints of system calls here'; finish; }
record -e writes -- "$PE_PROBED" 100 all
written=$(sed -n 's/^written //p' "$dir/err")
all=$((written + $(printf 'written %s\n' "$written" | wc -c)))
[ "$(lost)" != 0 ] || expect 'written bytes' $all "$(samples "$dir/p.pe")"
grep -q '1 sample with a negative value' "$dir/err" || fail "a failed write: $(cat "$dir/err")"
record -e syscalls:sys_exit_write --filter 'ret == 10' -- "$PE_PROBED" 100 all
hits 'filtered writes' 10
refused_filter() {
  pe-record -o "$dir/none.pe" -e syscalls:sys_exit_write --filter "$1" -- true 2>"$dir/err" && fail "$1: recorded"
  grep -q -- "$2" "$dir/err" || fail "$1: $(cat "$dir/err")"
}
refused_filter 'bytes > 4' "has no field 'bytes'; it has __syscall_nr, ret"
refused_filter 'ret >' "--filter: 'ret >': refused by the kernel"
record -e faults -- "$PE_PROBED" 1
at_least 'page faults' 20 "$(samples "$dir/p.pe")"
finish
