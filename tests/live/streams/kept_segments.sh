#!/bin/bash
# A recording that keeps only its last seconds: what is kept can be read at any time, also by perf, after the recorder was
# killed, and after the disk was full.
. "$(dirname "$0")/../lib.sh"

# The number of samples in a stream, by the process's name.
samples() { pe-symbolize -q "$@" 2>"$dir/err" | stackfold -q 2>>"$dir/err" | awk '{ sum += $NF } END { print sum + 0 }'; }
last_segment() { find "$1" -name '*.pe' | sort | tail -1; }

"$PE_WORKLOAD" shares 170 & target=$!
kept=$dir/kept
pe-record --engine bpf -F 499 --keep 3s -o "$kept" -p $target 2>"$dir/err" & recorder=$!
until_so 'the first segment' test -e "$kept/0000000001.pe"
until_so 'the first segment goes' test ! -e "$kept/0000000001.pe"
expect 'mode' 700 "$(stat -c %a "$kept")"
expect 'while it records: damage' '' "$(pe-symbolize "$kept" 2>&1 >/dev/null | grep -E 'cut|damaged|truncated')"
at_least 'the last second' 1 "$(samples --time -1s "$kept")"
pe-symbolize -q "$kept" 2>/dev/null | stackfold -q >"$dir/folded"
at_least 'named' 95 "$(share ';main;' "$dir/folded")"
pe-record --keep 3s -o "$kept" -d 1 -a 2>"$dir/other"; expect 'a second recorder: status' 1 $?
grep -q "another recorder uses this folder" "$dir/other" || fail "a second recorder: $(cat "$dir/other")"
kill -9 $recorder; wait $recorder 2>/dev/null

all=$(samples "$kept"); expect 'killed: status' 0 $?
sum=0
for segment in "$kept"/*.pe; do sum=$((sum + $(samples "$segment"))); done
expect 'the segments one by one' "$all" "$sum"
expect "by perf" "$(samples "$(last_segment "$kept")")" "$(perf script -F comm -i "$(last_segment "$kept")" 2>/dev/null | grep -c "^workload")"
pe-symbolize --time 2001-01-01T00:00,2001-01-01T01:00 "$kept" 2>"$dir/err" >/dev/null; expect 'another year: status' 1 $?
grep -q -- "--time: nothing was kept from then: $kept has 20" "$dir/err" || fail "another year: $(cat "$dir/err")"

# A later recorder goes on.  Its own samples come to those that are young enough.
pe-record --engine bpf -F 499 --keep 1h -o "$kept" -d 1 -p $target --summary 9 2>"$dir/err" 9>"$dir/summary"; expect 'a later recorder: status' 0 $?
more=$(sed -nE 's/.*"samples": ?([0-9]+).*/\1/p' "$dir/summary")
expect 'samples of both' $((all + ${more:-0})) "$(samples "$kept")"

# Without room on the disk samples are dropped, counted, and reported where they are missing.
mkdir "$dir/small"
mount -t tmpfs -o size=1m none "$dir/small" || fail 'no tmpfs'
pe-record --engine bpf -F 499 --keep 1h -o "$dir/small/kept" -p $target --summary 9 2>"$dir/err" 9>"$dir/summary" & recorder=$!
until_so 'a segment' test -s "$dir/small/kept/0000000001.pe"
head -c 2M /dev/zero >"$dir/small/other" 2>/dev/null
until_so 'the disk is full' grep -q 'no room on the disk: samples are dropped until there is some' "$dir/err"
rm "$dir/small/other"
until_so 'there is room again' grep -q 'there is room again' "$dir/err"
kill $recorder; wait $recorder; expect 'full disk: status' 0 $?
dropped=$(sed -nE 's/^pe-record: ([0-9]+) samples? dropped, because the disk was full.*/\1/p' "$dir/err")
at_least 'dropped' 1 "${dropped:-0}"
expect 'dropped, downstream' "$dropped" "$(pe-symbolize "$dir/small/kept" 2>/dev/null | stackfold 2>&1 >/dev/null | sed -nE 's/.* ([0-9]+) samples? lost while.*/\1/p')"
expect 'kept and dropped' "$(sed -nE 's/.*"samples": ?([0-9]+).*/\1/p' "$dir/summary")" $((dropped + $(samples "$dir/small/kept")))
umount "$dir/small"
kill $target
finish
