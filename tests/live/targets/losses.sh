#!/bin/bash
# The recorder counts the records that the kernel lost, once, and all later tools report the same number.
. "$(dirname "$0")/../lib.sh"

# lost_downstream FILE: prints the number that stackfold reports
lost_downstream() { pe-symbolize -q "$1" | stackfold 2>&1 >"$dir/folded" | sed -nE 's/.* ([0-9]+) samples? lost while.*/\1/p'; }

# A copy of a 64 KiB stack never fits into a ring of one page, and no later record reports the last losses.  A
# process that ends has no stack any more, so samples in the kernel may fit.
pe-record -e cpu-clock:u -m 1 --stack-size 65528 -o "$dir/small.pe" -- "$PE_WORKLOAD" shares 1 2>"$dir/err"; expect 'nothing but losses: status' 125 $?
grep -q 'nothing was recorded: all [0-9]* were lost' "$dir/err" || fail "$(cat "$dir/err")"
lost=$(sed -nE 's/.*nothing was recorded: all ([0-9]+) were lost: .*/\1/p' "$dir/err")
expect 'lines' 1 "$(grep -c lost "$dir/err")"
at_least "lost" 50 "${lost:-0}"
expect 'lost, downstream' "${lost:-}" "$(lost_downstream "$dir/small.pe")"
perf script -i "$dir/small.pe" 2>"$dir/err" >/dev/null
grep -q "Processed $lost samples and lost 100.00%" "$dir/err" || fail "perf counts otherwise: $(cat "$dir/err")"

# perf reports each loss twice: when it happens, and as a sum at the end.
record_by_perf -F 2999 -m 8 --call-graph dwarf,32768 -o "$dir/perf.data" -- "$PE_WORKLOAD" shares 1 2>/dev/null >&2
by_perf=$(perf report -D -i "$dir/perf.data" 2>/dev/null | grep -a 'PERF_RECORD_LOST_SAMPLES' | awk '{ sum += substr($NF, 2) } END { print sum }')
at_least "perf's losses" 1 "${by_perf:-0}"
expect "perf's losses, downstream" "${by_perf:-}" "$(lost_downstream "$dir/perf.data")"
finish
