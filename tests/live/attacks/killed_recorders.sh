#!/bin/bash
# A recorder is killed at some moment.  It leaves at most its unfinished result, which only the user can read if the
# umask says so: no draft that others can read, no temporary file, no probe.
# Usage: killed_recorders.sh [ROUNDS]
. "$(dirname "$0")/../lib.sh"
rounds=${1:-2}
RANDOM=1  # the same moments in each run
umask 077
recorders=('pe-record --engine ptrace' 'pe-record --engine signal' malloctrace)
[ "$(id -u)" != 0 ] || recorders+=('pe-record --engine perf' 'pe-record --engine bpf' offcpu "pe-record -e uprobe:$PE_WORKLOAD:main")
mkdir "$dir/results" "$dir/tmp"; export TMPDIR=$dir/tmp
own_probes() { cat /sys/kernel/tracing/{uprobe,kprobe}_events 2>/dev/null | grep -cF "$PE_WORKLOAD"; }
for ((round = 0; round < rounds; round++)); do
  for number in "${!recorders[@]}"; do
    # shellcheck disable=SC2086 # words
    ${recorders[number]} -q -o "$dir/results/$round-$number" -- sleep 1 2>/dev/null &
    victim=$!
    sleep "0.$(printf %02d $((RANDOM % 40)))"
    kill -KILL $victim 2>/dev/null
    wait $victim 2>/dev/null
  done
done
expect 'files that others can read' '' "$(find "$dir/results" "$dir/tmp" -type f -perm /077)"
expect 'files that are not the result or its draft' '' \
  "$(find "$dir/results" -type f ! -regex '.*/[0-9]+-[0-9]+\(\.[0-9A-Za-z]+\)?')"
expect 'temporary files' 0 "$(find "$dir/tmp" -mindepth 1 | wc -l)"
expect 'probes' 0 "$(own_probes)"
finish
