#!/bin/bash
# flamediff finds a function that is 20 % slower in two recordings.  With PE_ALL, it finds nothing in
# recordings of the same program.
. "$(dirname "$0")/../lib.sh"

record() {  # NAME PROGRAM SECONDS [HZ]
  pe-record -F "${4:-997}" -o "$dir/stream" -- "$2" "$3" >/dev/null 2>"$dir/err" || fail "recording $1: $(cat "$dir/err")"
  # Only the program's name may differ.
  fold "$dir/stream" 2>/dev/null | sed 's/^[^;]*/ab/' >"$dir/$1.folded"
}

# The share grows from 35.7 % to 40 %.  With 15,000 samples on each side, that is seven times the random
# variation.
# The two programs run in turns, because other programs slow some functions more than others.  So this affects
# both sides.
for i in 1 2 3 4 5 6; do
  record "fast$i" "$PE_AB" 0.5 4999
  record "slow$i" "$PE_AB_SLOWER" 0.5 4999
done
cat "$dir"/fast[1-6].folded >"$dir/fast.folded"
cat "$dir"/slow[1-6].folded >"$dir/slow.folded"
flamediff --text --fail-over 1% "$dir/fast.folded" "$dir/slow.folded" >"$dir/table" 2>"$dir/err"
expect 'status' 3 $?
grep -q 'hash grew from' "$dir/err" || fail "hash is not named: $(cat "$dir/err" "$dir/table")"
grep -Eq ' (parse|compare|format|write_out) grew from' "$dir/err" && fail "others are named: $(cat "$dir/err")"
grep -Eq ' sure  +[0-9.]+% .*  hash$' "$dir/table" || fail "hash is not sure: $(cat "$dir/table")"
flamediff "$dir/fast.folded" "$dir/slow.folded" | grep -q '<title>hash (before .*more than noise)' ||
  fail 'hash is no more than noise in the picture'

[ -n "${PE_ALL:-}" ] || finish  # tests/unit/painting/noise_test.cpp draws such runs with a seed
# Compares the program with itself twenty times.  By design, 4 % of comparisons may raise an alarm.  Six or
# more of twenty do so in one of 10,000 runs of this test.  Without correction for many functions, eight are
# usual.
alarms=0
record 0 "$PE_AB" 0.4
for i in $(seq 1 20); do
  record "$i" "$PE_AB" 0.4
  flamediff --text --only-significant "$dir/$((i - 1)).folded" "$dir/$i.folded" >"$dir/table"
  if grep -q '  *sure ' "$dir/table"; then
    alarms=$((alarms + 1))
    cat "$dir/table"
  fi
done
at_least 'comparisons of the program with itself without an alarm, of 20' 15 $((20 - alarms))
finish
