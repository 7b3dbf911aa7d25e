#!/bin/bash
# Recordings of the whole system, of one CPU and of a control group have samples of the programs that they
# cover.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'recording the whole system needs root'
# cpu_ms PID: prints the CPU time of the process so far
cpu_ms() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(1000 * ($12 + $13) / hz) }' /proc/"$1"/stat; }

# samples_of REGEX FILE
samples_of() { awk -v regex="$1" '$0 ~ regex { n += $NF } END { print n + 0 }' "$2"; }

# has_samples LABEL MS FILE: requires a sample, or a counted loss, for every 3 ms of the MS milliseconds that
# the workload ran
has_samples() {
  local lost
  lost=$(sed -nE 's/^pe-record: [0-9]+ samples? in [0-9.]+ s, ([0-9]+) lost.*/\1/p' "$dir/err")
  at_least "$1: samples and losses in $2 ms" $(($2 / 3)) $(($(samples_of '^workload;.*;main;work;' "$3") + lost))
}

"$PE_WORKLOAD" shares 30 & target=$!
before=$(cpu_ms $target)
pe-record -F 997 -a -d 1 -o "$dir/a.pe" 2>"$dir/err"; expect status 0 $?
used=$(($(cpu_ms $target) - before))  # includes a short time before and after the recording
fold "$dir/a.pe" >"$dir/a.folded"
has_samples 'the workload among everything' $used "$dir/a.folded"

# If another target is given, the command sets the length of the recording.  The recorder returns the status
# of the command.
before=$(cpu_ms $target)
pe-record -F 997 -a -o "$dir/a.pe" -- sh -c 'sleep 1; exit 7' 2>"$dir/err"; expect 'status of the command' 7 $?
used=$(($(cpu_ms $target) - before))
fold "$dir/a.pe" >"$dir/a.folded"
has_samples 'the workload beside a command' $used "$dir/a.folded"
pe-record -F 997 -p $target -o "$dir/p.pe" -- "$PE_WORKLOAD" shares 0.5 2>"$dir/err"; expect 'status of the command' 0 $?
expect 'processes seen' "$target" "$(perf script -F pid -G -i "$dir/p.pe" | tr -d ' ' | sort -u)"

taskset -cp 1 $target >/dev/null
pe-record -F 997 -C 1 -d 1 -o "$dir/c.pe" 2>/dev/null
fold "$dir/c.pe" >"$dir/c.folded"
at_least 'on its CPU, %' 5 "$(share '^workload;.*;main;work;' "$dir/c.folded")"
pe-record -F 997 -C 0 -d 1 -o "$dir/c.pe" 2>/dev/null
fold "$dir/c.pe" >"$dir/c.folded"
expect 'on the other CPU, %' 0.0 "$(share '^workload;.*;main;work;' "$dir/c.folded")"

groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ -z "$groups" ]; then
  groups=$dir/cgroup
  mkdir "$groups" && mount -t cgroup2 none "$groups"
fi
group=stackpipe-test-$$
if mkdir "$groups/$group"; then
  echo $target >"$groups/$group/cgroup.procs"
  before=$(cpu_ms $target)
  pe-record -F 997 --cgroup "$groups/$group" -d 1 -o "$dir/g.pe" 2>"$dir/err" || fail "cgroup: $(cat "$dir/err")"
  used=$(($(cpu_ms $target) - before))
  fold "$dir/g.pe" >"$dir/g.folded"
  at_least 'the workload in its group, %' 95 "$(share '^workload;' "$dir/g.folded")"
  at_least "samples of the group, which ran for $used ms" $((used / 3)) "$(samples_of . "$dir/g.folded")"
  kill $target; wait $target 2>/dev/null
  rmdir "$groups/$group"
  mountpoint -q "$dir/cgroup" && umount "$dir/cgroup"
else
  fail 'no control group could be made'
fi
finish
