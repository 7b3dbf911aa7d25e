#!/bin/bash
# Targets with 10,000 threads, with 50,000 mappings, and with very many programs one after the other.  The
# samples are theirs and complete; everything that is missing is counted.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
closing() { sed -nE "s/^pe-record: $1.*/\\1/p" err; }
engines=
for engine in perf bpf ptrace; do
  can_record --engine $engine 2>/dev/null && engines+=" $engine"
done
# begin COMMAND...: $target is its process, $made the number that it reports to have made
begin() {
  rm -f made
  "$@" >made & target=$!
  for _ in {1..1200}; do [ -s made ] && break; sleep 0.05; done
  made=$(cat made)
}
end() { kill $target; wait $target 2>/dev/null; }

# A counter needs a descriptor, and each thread and CPU has one.
ulimit -n "$(ulimit -Hn)"
files=$(ulimit -n)
[ "$files" != unlimited ] || files=1000000
threads=$(((files - 500) / $(nproc)))
[ $threads -le 10000 ] || threads=10000
begin "$PE_CROWD" threads $threads 600
[ "$made" = $threads ] || echo "there can be only $made threads here"
[[ $engines != *perf* ]] || {
  pe-record --engine perf -e cpu-clock -F 499 -p $target -d 1 -o o.pe 2>err; expect "$made threads: status, $(cat err)" 0 $?
  fold o.pe >folded
  at_least "$made threads: samples" 10 "$(awk '{ n += $NF } END { print n + 0 }' folded)"
  expect "$made threads: samples, downstream" "$(closing '([0-9]+) samples? in')" "$(awk '{ n += $NF } END { print n + 0 }' folded)"
  expect "$made threads: those that do not run" '' "$(grep -vE '^(t[0-3]|crowd);' folded | cut -c1-200)"
  at_least "$made threads: in busy(), from the thread's start on, %" 99 "$(share '^t[0-3];.*thread;busy[; ]' <(grep '^t' folded))"
}
end
# There are more threads than possible counters: pe-record reports this, and the limit to raise.
begin "$PE_CROWD" threads 200 600
(ulimit -n 100; exec pe-record --engine perf -e cpu-clock -p $target -d 0.1 -o o.pe) 2>err; expect 'few descriptors: status' 1 $?
grep -q 'pe-record: too many threads: .* needs more open files than ulimit -n allows' err || fail "few descriptors: $(cat err)"
end

# With the wall clock, threads that wait also get signals.  The recorder leaves out so many threads that the
# target still finishes.
if can_record --engine signal 2>/dev/null; then
  timeout 60 pe-record -v --engine signal --clock wall -F 99 -o o.pe -- "$PE_CROWD" threads 1000 3 >made 2>err; expect "signals for 1000 threads: status, $(cat err)" 0 $?
  seen=$(closing '([0-9]+) threads seen') too_many=$(sed -nE 's/.*: ([0-9]+) threads? too many at once for this rate of --clock wall.*/\1/p' err)
  at_least 'signals: threads left out' 790 "$too_many"
  expect "signals: threads, and main's: $(cat err)" $(($(cat made) + 1)) $((seen + too_many))
  fold o.pe >folded
  # Each thread has samples, unless some were lost.
  [ "$(closing '[0-9]+ samples? in [0-9.]+ s, ([0-9]+) lost')" -gt 0 ] ||
    at_least 'signals: threads of which there are samples' 150 "$(cut -d';' -f1 folded | sort -u | wc -l)"
fi

# Few threads run at a time, but one after the other so fast that the recorder cannot free their resources in
# time.
if can_record --engine signal 2>/dev/null; then
  pe-record --engine signal --clock wall -F 99 -o o.pe -- "$PE_CROWD" turns 20000 0 >made 2>err; expect "threads in turns: status, $(cat err)" 0 $?
  at_least 'threads in turns: left out' 100 "$(sed -nE 's/.*: ([0-9]+) threads? not sampled, because threads start and end too fast.*/\1/p' err)"
  expect 'threads in turns: too many at once' '' "$(grep 'at once' err)"
fi

# The stream has all mappings.
begin "$PE_CROWD" mappings 50000 600
for engine in $engines; do
  pe-record --engine "$engine" -e cpu-clock -F 499 -p $target -d 1 -o o.pe 2>err; expect "$made mappings, $engine: status" 0 $?
  fold o.pe >folded
  at_least "$made mappings, $engine: samples" 10 "$(awk '{ n += $NF } END { print n + 0 }' folded)"
  at_least "$made mappings, $engine: in busy(), from main() on, %" 99 "$(share ';main;mappings;busy[; ]' folded)"
  expect "$made mappings, $engine: lost" 0 "$(closing '[0-9]+ samples? in [0-9.]+ s, ([0-9]+) lost')"
done
if command -v perf >/dev/null && [[ $engines == *perf* ]]; then
  pe-record -q --engine perf -e cpu-clock -p $target -d 0.1 -o o.pe
  at_least 'mappings in the stream that can be run' $((made / 2)) "$(perf script -i o.pe --show-mmap-events 2>/dev/null | grep -c PERF_RECORD_MMAP)"
fi
end

# Programs follow each other, hundreds a second.  Each sample has the name of the program in which it was
# taken, and each exec is in the stream.  The recorder's memory does not grow with their number: it is limited
# to 1 GB of addresses.
for name in a b; do cp "$PE_CROWD" crowd-$name; done
export CROWD_A=$dir/crowd-a CROWD_B=$dir/crowd-b
# The other engines miss most programs that run only for a few milliseconds (pe-record(1)).
for engine in $engines; do
  [ "$engine" = perf ] || continue
  read -r now _ </proc/uptime
  begun=$(awk -v now="$now" 'BEGIN { print now + 3 }')
  made=$(ulimit -v 1000000; pe-record --engine "$engine" -e cpu-clock -F 997 -o o.pe -- "$CROWD_A" execs again "$begun" 0 2>err)
  expect "programs, $engine: status, $(cat err)" 0 $?
  at_least "programs, $engine" 50 "${made:-0}"
  fold o.pe >folded 2>told
  at_least "programs, $engine: samples" 10 "$(awk '{ n += $NF } END { print n + 0 }' folded)"
  expect "programs, $engine: with another's function" '' "$(grep -E '^crowd-a;.*;busy_b[; ]|^crowd-b;.*;busy_a[; ]' folded)"
  expect "programs, $engine: with another name" '' "$(grep -vE '^(crowd-[ab]|pe-record);' folded)"
  [ "$(closing '[0-9]+ samples? in [0-9.]+ s, ([0-9]+) lost')" = 0 ] || { echo "programs: lost: $(cat err)"; continue; }
  command -v perf >/dev/null || continue
  expect "programs, $engine: begun, in the stream" $((made + 1)) "$(perf script -i o.pe --show-task-events 2>/dev/null | grep -c 'PERF_RECORD_COMM exec')"
done
finish
