#!/bin/bash
# Threads have their names and their own work.  The user can record a single thread.
. "$(dirname "$0")/../lib.sh"
pe-record -v -F 997 -o "$dir/t.pe" -- "$PE_WORKLOAD" threads 1 2>"$dir/err"
fold "$dir/t.pe" --tid >"$dir/t.folded"
# Each thread runs for a second.  The closing line reports lost samples, and time without samples because
# another machine held the CPU.  If threads share a CPU, the number of samples varies by its square root.  The
# test allows five times that, which is 158.
lost=$(sed -nE 's/^pe-record: [0-9]+ samples? in [0-9.]+ s, ([0-9]+) lost.*/\1/p' "$dir/err")
without=$(sed -nE 's/.*: ([0-9.]+) of [0-9.]+ s CPU time without.*/\1/p' "$dir/err")
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

# Threads that start during the recording inherit the counters; the recorder finds the others in /proc.
# On a busy machine they may not run equally long.  /proc has the CPU time of each in hundredths of a second.
ticks() { awk -F '[)] ' '{ split($NF, f, " "); print f[12] + f[13] }' "/proc/$target/task/$1/stat"; }
right=$(tid_of $target right)
before="$(ticks "$left") $(ticks "$right")"
until_used 2000 $target pe-record -F 997 -p $target -o "$dir/both.pe" 2>/dev/null
had=$(echo "$before $(ticks "$left") $(ticks "$right")" | awk '{ l = $3 - $1; r = $4 - $2; printf "%.1f", 100 * l / (l + r) }')
kill $target
fold "$dir/both.pe" >"$dir/both.folded"
within 'left of both' "$had" "$(share '^left;' "$dir/both.folded")" 5

# If the recorded thread ends, the recording ends.
"$PE_WORKLOAD" threads 1 &
right=$(tid_of $! right)
timeout 20 pe-record -t "$right" -o "$dir/end.pe" 2>/dev/null
expect 'status when the thread has ended' 0 $?
finish
