#!/bin/bash
# The recorder is stopped while its target goes on.  It counts every record that it could not read, and all
# later tools report the same number.  The target stops the recorder and continues it.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1

# said PATTERN: prints the number in this place of the closing line
said() { sed -nE "s/.*$1.*/\\1/p" err; }
samples() { sed -nE 's/^[a-z-]+: ([0-9]+) (samples?|waits?) in .*/\1/p' err; }
lost() { sed -nE 's/^[a-z-]+: [0-9]+ (samples?|waits?) in .*, ([0-9]+) lost.*/\2/p' err; }

# Each hit of a tracepoint is a sample.
calls=20000
if pe-record -q -e syscalls:sys_enter_getppid -c 1 -o o.pe -- "$PE_COUNTED" calls 1 2>err; then
  for how in '-m 4 --call-graph none' '-m 2' '-m 8' '-m 16 --call-graph fp' '-m 16 --keep-stacks --stack-size 512'; do
    # shellcheck disable=SC2086 # options
    pe-record -e syscalls:sys_enter_getppid -c 1 $how -o o.pe -- "$PE_COUNTED" calls $calls 2>err; expect "$how: status" 0 $?
    at_least "$how: lost" $((calls / 2)) "$(lost)"
    expect "$how: samples and lost ones" $calls $(($(samples) + $(lost)))
    pe-symbolize -q o.pe | stackfold 2>told >folded
    expect "$how: samples, downstream" "$(samples)" "$(awk '{ n += $NF } END { print n + 0 }' folded)"
    expect "$how: lost, downstream" "$(lost)" "$(sed -nE 's/.* ([0-9]+) samples? lost while.*/\1/p' told)"
    ! command -v perf >/dev/null ||
      expect "$how: as perf tells" $calls "$(perf script -i o.pe 2>&1 >/dev/null | sed -nE 's/^Processed ([0-9]+) samples and lost .*/\1/p')"
  done
else
  echo "not with perf_event_open: $(cat err)"
fi

# The program samples itself into a ring of its own.  Kept and lost samples represent its CPU time.
cpu_us=$(pe-record -v --engine signal -F 997 -m 16 -o o.pe -- "$PE_COUNTED" cpu 700 2>err); expect 'signal: status' 0 $?
at_least 'signal: lost' 10 "$(lost)"
kept_ns=$(pe-symbolize -q o.pe | stackfold --weight period 2>told | awk '{ n += $NF } END { printf "%.0f", n }')
lost_s=$(said 'the lost samples represent ([0-9.]+) s')
all_us=$(awk -v kept="$kept_ns" -v lost="${lost_s:-0}" 'BEGIN { printf "%.0f", kept / 1000 + lost * 1e6 }')
# The kernel checks the timer at its clock's ticks while the program runs.  Time after the last check is not
# sampled.
at_least "signal: us of CPU time, of which samples kept and lost tell; $(cat err)" "$all_us" $((cpu_us + 2000))
at_least "signal: us that samples kept and lost stand for; $(cat err)" $((cpu_us * 85 / 100)) "$all_us"
expect 'signal: lost, downstream' "$(lost)" "$(sed -nE 's/.* ([0-9]+) samples? lost while.*/\1/p' told)"

# The kernel sums up waits.  The test records only the waits that the program counts; the dynamic linker may
# also wait, in another state.
if offcpu -q --engine bpf -o o.pe -- sleep 0.1 2>err; then
  waits=$(offcpu --engine bpf --state S -o o.pe -- "$PE_COUNTED" naps 3000 2>err); expect 'offcpu: status' 0 $?
  expect 'offcpu: waits and lost ones' "$waits" $(($(samples) + $(lost)))
else
  echo "not offcpu: $(cat err)"
fi

# The program sums up its allocations.
malloctrace -o o.pe -- "$PE_COUNTED" blocks 100000 2>err; expect 'malloctrace: status' 0 $?
expect 'malloctrace: allocations' 100000 "$(pe-symbolize -q o.pe | stackfold --event alloc-count 2>/dev/null | awk '/;block / { n += $NF } END { print n + 0 }')"
expect 'malloctrace: bytes' 3200000 "$(pe-symbolize -q o.pe | stackfold --event alloc-bytes 2>/dev/null | awk '/;block / { n += $NF } END { print n + 0 }')"
finish
