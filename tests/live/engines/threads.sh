#!/bin/bash
# Threads have their names, their own work, and can be recorded one by one.
. "$(dirname "$0")/../lib.sh"
pe-record -F 997 -o "$dir/t.pe" -- "$PE_WORKLOAD" threads 1 2>"$dir/err"
fold "$dir/t.pe" --tid >"$dir/t.folded"
# A second each.  What was lost, or had no samples because another machine held the CPU, is told.  The number of samples
# spreads by the root of itself at most, where threads share a CPU: 5 of these are 158.
read -r lost without < <(sed -nE 's/.* samples?, ([0-9]+) lost(.*; ([0-9.]+) of [0-9.]+ s CPU time without.*)?.*/\1 \3/p' "$dir/err")
least=$(awk -v lost="${lost:-0}" -v without="${without:-0}" 'BEGIN { print 997 - 158 - lost - 997 * without }')
for side in left right; do
  count=$(grep -E "^$side-[0-9]+/[0-9]+;.*go_$side" "$dir/t.folded" | awk '{ n += $NF } END { print n + 0 }')
  at_least "$side: samples, $(cat "$dir/err")" "$least" "$count"
  at_least "$side: no more than it ran" "$count" 1155
done
grep -q '[23] threads seen' "$dir/err" || fail "threads seen: $(cat "$dir/err")"

"$PE_WORKLOAD" threads 30 &
target=$!
left=$(tid_of $target left)
pe-record -F 997 -d 1 -t "$left" -o "$dir/left.pe" 2>/dev/null
fold "$dir/left.pe" >"$dir/left.folded"
expect 'share of the one thread asked for' 100.0 "$(share '^left;.*go_left' "$dir/left.folded")"

# Threads that appear while recording are inherited, the others found in /proc.
# On a busy machine they need not run equally long: what each had is in /proc, in hundredths of a second.
ticks() { awk -F '[)] ' '{ split($NF, f, " "); print f[12] + f[13] }' "/proc/$target/task/$1/stat"; }
right=$(tid_of $target right)
before="$(ticks "$left") $(ticks "$right")"
until_used 2000 $target pe-record -F 997 -p $target -o "$dir/both.pe" 2>/dev/null
had=$(echo "$before $(ticks "$left") $(ticks "$right")" | awk '{ l = $3 - $1; r = $4 - $2; printf "%.1f", 100 * l / (l + r) }')
kill $target
fold "$dir/both.pe" >"$dir/both.folded"
within 'left of both' "$had" "$(share '^left;' "$dir/both.folded")" 5

# A thread that ends ends the recording of it.
"$PE_WORKLOAD" threads 1 &
right=$(tid_of $! right)
timeout 20 pe-record -t "$right" -o "$dir/end.pe" 2>/dev/null
expect 'status when the thread has ended' 0 $?
finish
