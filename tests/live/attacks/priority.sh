#!/bin/bash
# Busy programs do not keep a recorder from the CPU: it runs before others, but its command does not, and a priority that
# the user has chosen stays.
. "$(dirname "$0")/../lib.sh"
nice -n -20 true 2>"$dir/err"
[ ! -s "$dir/err" ] || skip "this user may not raise priorities: $(cat "$dir/err")"
# shellcheck disable=SC2016 # the command's
show='ps -o ni= -p $PPID; ps -o ni= -p $$'
own=$(($(ps -o ni= -p $$)))
[ "$own" -le 0 ] || skip "started with nice"
for recorder in 'pe-record --engine perf' 'pe-record --engine bpf' 'pe-record --engine ptrace' 'pe-record --engine signal' offcpu; do
  # shellcheck disable=SC2086 # words
  $recorder -q -o "$dir/out.pe" -- sh -c "$show" >"$dir/out" 2>"$dir/err"
  grep -q . "$dir/out" || { echo "skipped: $recorder cannot record here: $(cat "$dir/err")"; continue; }
  expect "$recorder: the recorder's and the command's" "-20 $own" "$(tr -s ' \n' ' ' <"$dir/out" | sed 's/^ //; s/ $//')"
done
nice -n 5 pe-record -q --engine ptrace -o "$dir/out.pe" -- sh -c "$show" >"$dir/out" 2>"$dir/err"
expect 'nice 5' "$((own + 5)) $((own + 5))" "$(tr -s ' \n' ' ' <"$dir/out" | sed 's/^ //; s/ $//')"
finish
