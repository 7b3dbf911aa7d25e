#!/bin/bash
# Snapshots of malloctrace have times: stackfold --every divides several by time, each as it is.
. "$(dirname "$0")/../lib.sh"

# snapshots: prints the number of the newest snapshot, or 0
# Drafts have other endings, which may begin with a digit.
snapshots() { find "$dir" -name 'heap.pe.[0-9]*' | sed 's/.*\.//' | grep -xE '[0-9]+' | sort -n | tail -n 1 | grep . || echo 0; }
# live_bytes FILE: prints the sum of a snapshot, folded alone
live_bytes() { stackfold --event live-bytes "$1" 2>/dev/null | awk '{ sum += $NF } END { print sum + 0 }'; }

# The program takes another megabyte for each line of its input.
mkfifo "$dir/lines"
cat >"$dir/grows.py" <<'END'
import sys
kept = []
print("ready", flush=True)
for line in sys.stdin:
    kept.append(bytearray(1 << 20))
    print("grown", flush=True)
END
malloctrace -q --snapshot 0.1 -o "$dir/heap.pe" -- python3 "$dir/grows.py" <"$dir/lines" >"$dir/out" 2>"$dir/err" & tracer=$!
exec 3>"$dir/lines"
await_text ready "$dir/out"
first=$(($(snapshots) + 2))  # the next one may be in the making
await "$dir/heap.pe.$first"
echo grow >&3
await_text grown "$dir/out"
second=$(($(snapshots) + 2))
await "$dir/heap.pe.$second"
exec 3>&-
wait $tracer; expect 'status' 0 $?

for number in $first $second; do
  pe-symbolize -q -o "$dir/named.$number" "$dir/heap.pe.$number" || fail "pe-symbolize of snapshot $number"
done
stackfold -q --every 100ms --event live-bytes "$dir/named.$first" "$dir/named.$second" >"$dir/timed.folded" ||
  fail 'stackfold --every'
awk -F';' '{ n = $0; sub(/.* /, "", n); sum[$1] += n } END { for (s in sum) print s, sum[s] }' "$dir/timed.folded" |
  sort >"$dir/sums"
expect 'steps' 2 "$(wc -l <"$dir/sums")"
before=$(live_bytes "$dir/named.$first") after=$(live_bytes "$dir/named.$second")
expect 'sums of the steps' "$before $after" "$(awk '{ print $2 }' "$dir/sums" | paste -sd' ')"
at_least 'growth' $((1 << 20)) $((after - before))
grep -Eq '^@0+\.000 ' "$dir/sums" || fail "the first step: $(cat "$dir/sums")"
# Times are whole intervals apart, however late a snapshot was.
expect 'steps of a tenth of the interval' "$(awk '{ print $1 }' "$dir/sums" | sed 's/^@0*//')" \
  "$(stackfold -q --every 10ms --event live-bytes "$dir/named.$first" "$dir/named.$second" | sed 's/;.*//; s/^@0*//' | sort -u)"

# One snapshot is one moment, which --time selects.
stackfold -q --annotate --event live-bytes "$dir/named.$second" >"$dir/facts"
grep -q '^# time: ....-..-..T' "$dir/facts" || fail "no time: $(head "$dir/facts")"
grep -q '^# duration:' "$dir/facts" && fail 'a moment has no duration'
moment=$(stackfold -q --every 1ns --event live-bytes "$dir/named.$second" | sed 's/;.*//' | sort -u)
expect 'moments of a snapshot' '@0.000000000' "$moment"
expect 'a time that no snapshot has' '' "$(stackfold -q --time 0,0.5 --event live-bytes "$dir/named.$second")"
expect 'all times' "$after" "$(stackfold -q --time 0.5, --event live-bytes "$dir/named.$second" | awk '{ n += $NF } END { print n }')"

# perf reads the same sums, at one time.
command -v perf >/dev/null || finish
perf script -G -F time,period,event -i "$dir/heap.pe.$second" 2>"$dir/err" | awk '
  NF == 3 && $3 == "live-bytes:" { sum += $2; times[$1] }
  END { for (t in times) n++; print sum, n }' >"$dir/perf"
expect 'perf script' "$after 1" "$(cat "$dir/perf")"
finish
