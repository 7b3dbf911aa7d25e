#!/bin/bash
# A control group with little memory: recorders choose smaller rings and tables, or refuse and say why; the kernel does
# not kill them.
. "$(dirname "$0")/../lib.sh"
can_record -a --engine bpf 2>"$dir/err" || skip "the engine bpf cannot record here: $(cat "$dir/err")"
group=/sys/fs/cgroup/memory limit=memory.limit_in_bytes
[ -d $group ] || group=/sys/fs/cgroup limit=memory.max
group=$group/pe-$$
mkdir $group 2>"$dir/err" || skip "no control group for memory: $(cat "$dir/err")"
[ -e $group/$limit ] || { rmdir $group; skip "control groups here do not limit memory"; }
rmdir $group
# shellcheck disable=SC2317 # the trap calls it, too
remove_group() { for _ in $(seq 100); do rmdir "$own" 2>/dev/null && break; sleep 0.05; done; }
trap '[ ! -d "$own" ] || remove_group; clean_up' EXIT

# in_group MEBIBYTES COMMAND...: runs the command in a new group, to which nothing is charged yet
in_group() {
  local status
  own=$group-$((++groups))
  mkdir $own
  echo $(($1 << 20)) >$own/$limit || skip "$own/$limit cannot be set"
  # shellcheck disable=SC2016 # the other shell's
  sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' $own "${@:2}" >"$dir/out" 2>"$dir/err"
  status=$?
  remove_group
  return $status
}
while :; do :; done &  # an idle machine has no samples; clean_up ends it
groups=0 own=
for recorder in 'pe-record --engine bpf' 'pe-record --engine perf' 'offcpu --engine bpf' 'offcpu --engine perf'; do
  # shellcheck disable=SC2086 # words
  in_group 64 $recorder -a -d 0.5 -o "$dir/out.pe"
  status=$?
  [ $status = 0 ] || fail "$recorder with 64 MiB: status $status: $(tail -3 "$dir/err")"
  pe-symbolize -q "$dir/out.pe" | stackfold >"$dir/folded" || fail "$recorder with 64 MiB: no stream"
done
# Of waits beside samples, kinds need the kernel's symbols, for which there is no room.  More pages would not help.
in_group 16 pe-record --engine perf -e cpu,waits -v -p $! -d 0.5 -o "$dir/out.pe"; expect 'waits with 16 MiB: status' 0 $?
grep -Eq "^pe-record: kinds of waits are not known: [0-9]+ MiB of memory are available \(cgroup, ulimit -v\), and the kernel's symbols need 20: allow more memory$" "$dir/err" ||
  fail "waits with 16 MiB: $(cat "$dir/err")"
grep -e --mmap-pages "$dir/err" && fail 'waits with 16 MiB: advice that does not help'
for recorder in pe-record offcpu; do
  in_group 24 $recorder --engine bpf -a -d 0.5 -o "$dir/out.pe"
  expect "$recorder with 24 MiB: status" 1 $?
  grep -Eq ': eBPF: [0-9]+ MiB of memory are available \(cgroup, ulimit -v\), and its tables need 40$' "$dir/err" ||
    fail "$recorder with 24 MiB: $(cat "$dir/err")"
done
finish
