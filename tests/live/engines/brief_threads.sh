#!/bin/bash
# CPU time of threads that run briefly has samples, or the closing line correctly reports the time without
# samples.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'sampling whole CPUs, and setting perf_event_paranoid, needs root'

# had FILE: prints the CPU time in s that the program measured itself
had() { awk '{ print $1 / 1e9 }' "$1"; }

# There are 2,000 threads, none of which runs for a whole period.  If the host takes the CPU away from this
# machine, samples are missing, and the closing line counts these.
for engine in perf bpf; do
  pe-record --engine "$engine" -F 997 -o "$dir/b.pe" -- "$PE_BRIEF" 2000 4 100 2>"$dir/err" >"$dir/had" || fail "$(cat "$dir/err")"
  read -r samples lost < <(sed -nE 's/^pe-record: ([0-9]+) samples? in [0-9.]+ s, ([0-9]+) lost.*/\1 \2/p' "$dir/err")
  held=$(sed -nE 's/.*: ([0-9.]+) of [0-9.]+ s CPU time without samples, because a host.*/\1/p' "$dir/err")
  expected=$(awk -v had="$(had "$dir/had")" -v held="${held:-0}" 'BEGIN { print 997 * (had - held) }')
  samples_near "$engine, $(cat "$dir/err")" "$expected" "${samples:-0}" "${lost:-0}"
done

# Without privileges, each thread has its own counters.  These do not count these threads or the time of
# switches.  The closing line reports the time to 0.01 s.  The program cannot measure the end of its 2,000
# threads, which takes some ms.  No call chains are recorded, so that small rings have room for everything
# else.
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
echo 1 >/proc/sys/kernel/perf_event_paranoid
chmod 755 "$dir"; mkdir -m 777 "$dir/w"
cp "$PE_BRIEF" "$(command -v pe-record)" "$dir/"
setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all "$dir/pe-record" --engine perf --call-graph none -F 997 -o "$dir/w/s.pe" -- \
  "$dir/brief" 2000 4 100 2>"$dir/err" >"$dir/had" || fail "$(cat "$dir/err")"
all=$(sed -nE 's/.*: [0-9.]+ of ([0-9.]+) s CPU time without samples.*/\1/p' "$dir/err")
within "CPU time in the closing line, $(cat "$dir/err")" "$(had "$dir/had")" "${all:-0}" 0.05
grep -q 'threads that run for less than one period (1 ms), in switches between threads' "$dir/err" || fail "the cause: $(cat "$dir/err")"
finish
