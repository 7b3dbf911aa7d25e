#!/bin/bash
# Another tool's return probe replaces a return address on the stack.  The engine bpf reads the true address in the kernel, so
# the stack is complete.  The others name the trampoline.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'setting a return probe needs root'
tracing=/sys/kernel/tracing
mountpoint -q $tracing || mount -t tracefs tracefs $tracing 2>/dev/null
[ -w $tracing/uprobe_events ] || skip 'the kernel has no probes of programs'
cc -O1 -g -fno-optimize-sibling-calls -o "$dir/probed" -x c - <<'END'
#include <unistd.h>
static volatile unsigned sink;
__attribute__((noinline)) static unsigned leaf(unsigned x) { for (int i = 0; i < 2000000; i++) x = x * 1664525u + 1013904223u; return x; }
__attribute__((noinline)) static unsigned mid(unsigned x) { return leaf(x) + 1; }
__attribute__((noinline)) static unsigned outer(unsigned x) { return mid(x) + 2; }
int main(void) { for (;;) sink = outer(sink); }
END
offset_of() { nm "$dir/probed" | awk -v name="$1" '$3 == name { print "0x" $1 }'; }
base=$(readelf -lW "$dir/probed" | awk '$1 == "LOAD" && / E / { print $3 - $2; exit }')  # PIE: 0
[ "$base" = 0 ] || skip 'the offsets of the program are not its addresses'
group=stackpipe_$$
for function in leaf outer; do
  echo "r:$group/$function $dir/probed:$(offset_of $function)" >>$tracing/uprobe_events || skip 'no return probe can be set'
done
trap '{ echo 0 >"$tracing/events/$group/enable"; printf "%s\n" "-:$group/leaf" "-:$group/outer" >>"$tracing/uprobe_events"; } 2>/dev/null; clean_up' EXIT
echo 1 >"$tracing/events/$group/enable"
"$dir/probed" & target=$!
for _ in $(seq 500); do grep -q '\[uprobes\]' /proc/$target/maps && break; sleep 0.02; done

until_used 500 $target pe-record --engine bpf -F 997 -p $target -o "$dir/bpf.pe" 2>"$dir/err" || fail "bpf: $(cat "$dir/err")"
fold "$dir/bpf.pe" >"$dir/bpf.folded"
at_least 'bpf: complete stacks, %' 95 "$(share ';main;outer;mid;leaf' "$dir/bpf.folded")"

# Other engines cannot know that address: the stack ends, incomplete, with the trampoline.
check_others() {  # LABEL
  at_least "$1: stacks that end with the trampoline, %" 90 "$(share '^probed;\[uprobes\][^;]*;leaf' <(fold "$dir/other.pe"))"
  at_least "$1: % of complete stacks, at most" "$(sed -n 's/.* lost, \([0-9.]*\) % of stacks complete.*/\1/p' "$dir/err")" 5
  grep -q '; [0-9]* ended in \[uprobes\]: bad return address' "$dir/err" || fail "$1: $(cat "$dir/err")"
}
for engine in perf ptrace; do
  can_record --engine $engine 2>/dev/null || { echo "engine $engine cannot record here"; continue; }
  until_used 300 $target pe-record -v --engine $engine -F 997 -p $target -o "$dir/other.pe" 2>"$dir/err" || fail "$engine: $(cat "$dir/err")"
  check_others $engine
done
kill $target
pe-record -v --engine signal -F 997 -d 0.5 -o "$dir/other.pe" -- "$dir/probed" 2>"$dir/err" || fail "signal: $(cat "$dir/err")"
check_others signal
finish
