#!/bin/bash
# Files that try to place a probe on data, or inside of an instruction: the program's results must stay right.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'probes need root'
[ -e /sys/bus/event_source/devices/uprobe/type ] || skip 'this kernel has no uprobes (CONFIG_UPROBE_EVENTS)'
cc -O1 -fcf-protection=none -o "$dir/odd" "$(dirname "$0")/../../data/src/odd_code.c" || fail 'odd_code.c does not compile'
samples() { fold "$1" "${@:2}" 2>/dev/null | awk '{ n += $NF } END { print n + 0 }'; }
lost() { sed -n 's/.* s, \([0-9]*\) lost.*/\1/p' "$dir/err"; }
# record OPTION...: records 1000 calls of each function; the program must print nothing
record() {
  pe-record -o "$dir/p.pe" "$@" -- "$dir/odd" 1000 >"$dir/said" 2>"$dir/err"
  status=$?
  [ ! -s "$dir/said" ] || fail "$*: $(wc -l <"$dir/said") wrong results: $(head -1 "$dir/said")"
  return $status
}
accepted() { record "$@" || fail "$*: $(cat "$dir/err")"; }
refused() {  # PATTERN OPTION...
  record "${@:2}" && fail "${*:2}: recorded"
  grep -q -- "$1" "$dir/err" || fail "${*:2}: $(cat "$dir/err")"
}

# The function's only return is after the data; the program passes it in each call.
accepted -e uretprobe:in_table
expect 'returns after data' 1000 $(($(samples "$dir/p.pe") + $(lost)))
accepted -F 4000 --span in_table
refused 'its code cannot be decoded' --span behind_data
accepted -e uprobe:behind_data
# Each case of the switch has its own return.
accepted -e uretprobe:in_switch
expect 'returns of a switch' 1000 $(($(samples "$dir/p.pe") + $(lost)))

refused 'this is inside the instruction at' -e usdt:odd:inside
refused 'it is unknown whether an instruction starts there' -e usdt:odd:data
refused 'is not a counter in the file.s .probes section' -e usdt:odd:changes
accepted -e usdt:odd:right
expect 'a static probe' 1000 $(($(samples "$dir/p.pe") + $(lost)))
accepted -e 'usdt:odd:*'
grep -q '3 static probes left out: no instruction that can be probed is known to start there' "$dir/err" || fail "a pattern: $(cat "$dir/err")"
refused 'it is unknown whether an instruction starts there' -e uprobe:table
refused 'it is unknown whether an instruction starts there' -e uprobe:in_table+18
finish
