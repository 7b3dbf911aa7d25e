#!/bin/bash
# With all options of perf record, we read as many samples as perf script, with the same call chains.
# Branch stacks (-b) and AUX data need a processor that records them; virtual machines do not have these.
. "$(dirname "$0")/../lib.sh"
command -v perf >/dev/null || skip 'perf is not installed'
compare=$(dirname "$0")/../../support/compare_chains.py

# perf_record FILE OPTION...: records the workload; perf's messages go to the errors
seconds=0.25
perf_record() { record_by_perf -F 499 "${@:2}" -o "$1" -- "$PE_WORKLOAD" shares $seconds 2>"$dir/err" || fail "${*:2}: $(cat "$dir/err")"; }

# same LABEL FILE UNMATCHED CHAINS: UNMATCHED times the number of samples are only in perf's text
same() {
  local equal longer unmatched count
  pe-symbolize "$2" >"$dir/our.pe" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
  grep -E 'truncated|damaged|cut off|malformed|skipped|out of order' "$dir/err" && fail "$1: $(cat "$dir/err")"
  perf script -i "$2" --no-inline --ns -F tid,time,ip,dso >"$dir/perf.txt" 2>/dev/null
  python3 "$compare" "$dir/our.pe" "$dir/perf.txt" "${@:4}" >"$dir/verdict" || fail "$1: $(cat "$dir/verdict")"
  read -r _ equal _ longer _ _ _ _ _ unmatched < <(tail -1 "$dir/verdict")
  count=$((equal + longer))
  at_least "$1: samples" 50 "$count"
  [ "$longer" = 0 ] || [ "${4:-}" = '' ] || fail "$1: $(cat "$dir/verdict")"
  expect "$1: samples in perf script only" "$((count * $3))" "$unmatched"
  grep -q 'shorter 0 contradictory 0' "$dir/verdict" || fail "$1: $(cat "$dir/verdict")"
}

# kind LABEL UNMATCHED OPTION...: compares call chains of the kernel
kind() { perf_record "$dir/perf.data" -e cpu-clock -g "${@:3}"; same "$1" "$dir/perf.data" "$2" fp; }

kind 'compressed' 0 -z
kind 'compressed, level 22' 0 --compression-level=22
kind 'compressed in small pieces' 0 -z -m 4
kind 'context switches' 0 --switch-events
kind 'data addresses' 0 -d
kind 'weights' 0 -W
kind 'physical addresses' 0 --phys-data
kind 'sizes of pages' 0 -d --data-page-size --code-page-size
kind 'registers of the interrupt and the program' 0 --intr-regs=ax,ip --user-regs=ax,ip
kind 'namespaces and control groups' 0 --namespaces --all-cgroups
kind 'identifiers' 0 --sample-identifier
kind 'everything at once' 0 -z --switch-events -d -W --phys-data --namespaces --sample-identifier --stat -T -P
perf_record "$dir/perf.data" --call-graph dwarf,8192 -e cpu-clock -z
same 'copied stacks, compressed' "$dir/perf.data" 0
perf_record "$dir/perf.data" --call-graph dwarf,8192 -e cpu-clock -d -W --phys-data --intr-regs=ax,ip
same 'copied stacks with fields behind them' "$dir/perf.data" 0
# perf script makes samples of all events of the group from one sample of the leader.  We keep the sample as
# recorded.
perf_record "$dir/perf.data" -g -e '{cpu-clock,task-clock}:S'
same 'a group that is read together' "$dir/perf.data" 1 fp
perf_record "$dir/perf.data" -g -e cpu-clock,task-clock,page-faults
same 'several events' "$dir/perf.data" 0 fp
for event in cpu-clock task-clock; do
  expect "$event among several: samples" "$(perf script -i "$dir/perf.data" -F event 2>/dev/null | grep -c "^ *$event")" \
    "$(pe-symbolize -q "$dir/perf.data" | stackfold --event "$event" 2>/dev/null | awk '{ n += $NF } END { print n }')"
done

# For the whole system, compares only the numbers, and shares: the other processes are unknown.
seconds=1
for compressed in '' -z; do
  # shellcheck disable=SC2086 # an option, or none
  perf_record "$dir/perf.data" -e cpu-clock -g -a $compressed
  pe-symbolize -q "$dir/perf.data" | stackfold >"$dir/all.folded" 2>"$dir/err"
  # perf prints -1 as the thread of a task that has ended.
  expect "-a $compressed: samples" "$(perf script -i "$dir/perf.data" -F tid 2>/dev/null | grep -cE '^ *-?[0-9]')" \
    "$(awk '{ n += $NF } END { print n }' "$dir/all.folded")"
  grep '^workload;.*;main;work;' "$dir/all.folded" >"$dir/workload.folded"  # others run other parts of it
  within "-a $compressed: fifty" 50 "$(share ';main;work;fifty' "$dir/workload.folded")" 10
done

# The stream goes through a pipe, in the format that perf writes for itself.
seconds=0.25
perf_record - -e cpu-clock -g -z >"$dir/pipe"
same 'compressed, in a pipe' "$dir/pipe" 0 fp
# A compressed file that is cut gives the samples before the cut, and a message.
perf_record "$dir/perf.data" -e cpu-clock -g -z
read -r data_at data_bytes < <(od -An -tu8 -j40 -N16 "$dir/perf.data")
head -c $((data_at + data_bytes - 10)) "$dir/perf.data" >"$dir/half.data"
pe-symbolize "$dir/half.data" >"$dir/half.pe" 2>"$dir/err"
expect 'status for a cut file' 1 $?
grep -q 'truncated at byte' "$dir/err" || fail "no word about the cut: $(cat "$dir/err")"
finish
