#!/bin/bash
# The tools find a jitdump however the program has mapped it, as code or as data, and also in perf's files.
# They report code that the dump does not have yet.
. "$(dirname "$0")/../lib.sh"
[ "$(uname -m)" = x86_64 ] || skip 'the program makes code of x86-64'

# start [WORD...]: starts the program; its dump is written when this returns
start() {
  "$PE_JIT_MADE" "$dir" "$@" >"$dir/started" & target=$!
  until [ -s "$dir/started" ]; do sleep 0.05; done
}
stop() { kill $target; wait $target 2>/dev/null; }
names() {
  fold "$2" >"$dir/folded" 2>"$dir/err"
  at_least "$1, names: %, $(cat "$dir/err")" 90 "$(share 'made_inner$|made_inner ' "$dir/folded")"
}
# However busy the machine is, the program runs for 200 ms while it is recorded.
record() { until_used 200 $target pe-record -F 499 -p $target "$@" >"$dir/j.pe" 2>"$dir/err" || fail "pe-record $*: $(cat "$dir/err")"; }

for word in code data; do
  start $word
  for engine in perf ptrace; do
    record --engine $engine
    names "$word, engine $engine" "$dir/j.pe"
  done
  if command -v perf >/dev/null && [ $word = code ]; then
    for clock in '' '-k mono' '-k raw'; do
      # shellcheck disable=SC2086 # an option and its value, or nothing
      record_by_perf -e cpu-clock -F 499 -g $clock -p $target -o "$dir/perf.data" -- sleep 0.5 2>"$dir/err" || fail "perf record $clock: $(cat "$dir/err")"
      names "perf record $clock" "$dir/perf.data"
    done
  fi
  stop
  # The program has ended, but its dump still exists.
  names "$word, of a program that has ended" "$dir/j.pe"
done

start cut
record
pe-symbolize "$dir/j.pe" 2>"$dir/err" >"$dir/named.pe"
grep -Eq "^pe-symbolize: '$dir/jit-$target.dump' is incomplete: (9[0-9]|100)\.[0-9] % of the samples have functions without a name; record until the program ends, or have it write a perf map \(node --perf-basic-prof, python3 -X perf\)$" "$dir/err" ||
  fail "a dump that is not written to its end: $(cat "$dir/err")"
stop

# Code without frame pointers may have call frame information in its dump.  Stacks that are unwound later use
# it.
for word in '' unwind; do
  # shellcheck disable=SC2086 # a word or none
  start $word
  record --keep-stacks; cp "$dir/j.pe" "$dir/kept-$word"
  if command -v perf >/dev/null; then
    record_by_perf -e cpu-clock -F 499 -k mono --call-graph dwarf,8192 -p $target -o "$dir/perf-$word" -- sleep 0.5 2>"$dir/err" || fail "perf record: $(cat "$dir/err")"
  fi
  stop
done
for kind in kept perf; do
  [ -e "$dir/$kind-" ] || continue
  fold "$dir/$kind-" >"$dir/folded"
  expect "$kind, stacks through code without any information, %" 0.0 "$(share ';main;(.*;)?made_inner' "$dir/folded")"
  fold "$dir/$kind-unwind" >"$dir/folded"
  at_least "$kind, stacks through code with call frame information, %" 95 "$(share ';main;made_outer;made_inner' "$dir/folded")"
done
finish
