#!/bin/bash
# Text that a program has moved into anonymous memory, as for huge pages, keeps its names and its callers: with each
# engine, from the start and of a running process, and in files of perf.  Other code at its place does not get its names.
. "$(dirname "$0")/../lib.sh"
build() { cc -O1 -fno-optimize-sibling-calls -DSECTION="\"$2\"" -o "$dir/$1" "${0%.sh}.c" || fail "$1: not built"; }
build moved .text.moved
build apart moved  # in a segment of its own
stack=';_start;__libc_start_main[^;]*;([^;]+;)?main;moved_outer;moved_inner[ ;]'

# check LABEL STREAM
check() {
  fold "$2" >"$dir/folded" || fail "$1: not folded"
  at_least "$1: samples" 30 "$(awk '{ n += $NF } END { print n + 0 }' "$dir/folded")"
  at_least "$1, %" 90 "$(share "$stack" "$dir/folded")"
}
# start PROGRAM MODE: runs the program until the test ends it, as $target
start() {
  rm -f "$dir/running"
  "$dir/$1" "$2" 60000 >"$dir/running" & target=$!
  await_text . "$dir/running"
}
stop() { kill $target; wait $target 2>/dev/null; }
record() { pe-record -q -e cpu-clock -F 397 "$@" || fail "pe-record $*"; }

for mode in over under; do
  start moved $mode
  for engine in bpf perf ptrace; do
    until_used 300 $target pe-record -q -F 397 --engine $engine -p $target -o "$dir/p.pe"
    check "$mode, $engine, running" "$dir/p.pe"
    record --engine $engine -o "$dir/s.pe" -- "$dir/moved" $mode 300 >"$dir/out"
    check "$mode, $engine, from the start" "$dir/s.pe"
  done
  record_by_perf -F 397 -e cpu-clock --call-graph dwarf,8192 -p $target -o "$dir/perf.data" -- sleep 1
  check "$mode, perf.data, running" "$dir/perf.data"
  stop
  pe-record -q --engine signal -F 397 -o "$dir/s.pe" -- "$dir/moved" $mode 300 >"$dir/out" || fail "$mode, signal"
  check "$mode, signal" "$dir/s.pe"
  record_by_perf -F 397 -e cpu-clock --call-graph dwarf,8192 -o "$dir/perf.data" -- "$dir/moved" $mode 300 >"$dir/out"
  check "$mode, perf.data, from the start" "$dir/perf.data"
done

# The whole segment has moved, and nothing of it is left in the file's mappings.
start apart over
for engine in bpf perf ptrace; do
  until_used 300 $target pe-record -q -F 397 --engine $engine -p $target -o "$dir/p.pe"
  check "a segment, $engine" "$dir/p.pe"
done
stop

start moved over
until_used 300 $target pe-record -q -e cpu,waits -F 397 -p $target -o "$dir/w.pe"
fold "$dir/w.pe" >"$dir/folded"
grep -qE "$stack" "$dir/folded" || fail "with waits: $(cat "$dir/folded")"
expect 'with waits: without a name, %' 0.0 "$(share '\[unknown\]' "$dir/folded")"
# perf sees names, too.
if command -v perf >/dev/null; then
  perf script -i - <"$dir/w.pe" 2>/dev/null >"$dir/script"
  grep -q ' moved_inner+' "$dir/script" || fail 'perf has no names'
fi
stop

# other_code LABEL STREAM
other_code() {
  fold "$2" >"$dir/folded"
  at_least "other code, $1: samples" 20 "$(awk '{ n += $NF } END { print n + 0 }' "$dir/folded")"
  expect "other code, $1: names of the text, %" 0.0 "$(share 'moved_' "$dir/folded")"
  at_least "other code, $1: without a name, %" 90 "$(share '\[unknown\] ' "$dir/folded")"
}
start moved other
for engine in bpf perf ptrace; do
  until_used 200 $target pe-record -q -F 397 --engine $engine -p $target -o "$dir/p.pe"
  other_code "$engine, running" "$dir/p.pe"
done
stop
# The engine ptrace reads mappings again only after a while, if the memory has not grown.
for engine in bpf perf; do
  record --engine $engine -o "$dir/s.pe" -- "$dir/moved" other 200 >"$dir/out"
  other_code "$engine, from the start" "$dir/s.pe"
done

# V8 copies its own code from such text; code without it is no longer recognised as that of the interpreter.
cat >"$dir/spin.js" <<'JS'
function spinLeaf(n) { let s = 0; for (let i = 0; i < n; ++i) s = (s * 31 + i) % 1000003; return s; }
function spinSorted(n) { return [3, 1, 2].sort((a, b) => spinLeaf(n) + a - b); }
const end = Date.now() + +process.argv[2];
while (Date.now() < end) for (let i = 0; i < 20; ++i) spinSorted(2000);
JS
# Prints the anonymous code between two mappings of node.
moved_in_node() { awk '$2 ~ /x/ && NF < 6 { made = $1 } $6 ~ /node/ { if (made != "" && before == 1) print made; before = 1; made = "" } NF >= 6 && $6 !~ /node/ { before = 0 }' "/proc/$1/maps"; }
if command -v node >/dev/null; then
  node --use-largepages=on "$dir/spin.js" 60000 2>/dev/null & target=$!
  await_used 300 $target
  if [ -n "$(moved_in_node $target)" ]; then
    until_used 300 $target pe-record -q -F 397 -p $target -o "$dir/p.pe"
    record -o "$dir/s.pe" -- node --use-largepages=on "$dir/spin.js" 1000
    for when in p s; do
      fold "$dir/$when.pe" >"$dir/folded"
      at_least "node, $when: functions, %" 60 "$(share 'node::Start;.*spinSorted;' "$dir/folded")"
      at_least "node, $when: a builtin, %" 60 "$(share ';spinSorted;Builtins_' "$dir/folded")"
      expect "node, $when: without a name, %" 0.0 "$(share '\[unknown\]' "$dir/folded")"
      at_least "node, $when: readable, %" 95 "$(awk -v n="$(share 'unreadable' "$dir/folded")" 'BEGIN { print 100 - n }')"
    done
  else
    echo 'not checked: node does not move its text here'
  fi
  stop
fi
finish
