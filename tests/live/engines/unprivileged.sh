#!/bin/bash
# Without privileges, users can record their own processes, and the tools report what is missing.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'setting perf_event_paranoid and dropping rights needs root'
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
chmod 755 "$dir"; mkdir -m 777 "$dir/w"
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all "$@"; }
cp "$PE_WORKLOAD" "$(command -v pe-record)" "$(command -v offcpu)" "$(command -v pe-symbolize)" "$(command -v stackfold)" "$dir/"

echo 2 >/proc/sys/kernel/perf_event_paranoid
nobody "$dir/pe-record" -F 997 -o "$dir/w/own.pe" -- "$dir/workload" shares 0.5 2>"$dir/err"; expect 'own process at 2' 0 $?
grep -q '^pe-record: perf_event_paranoid is 2; need 1 or CAP_PERFMON for kernel stacks; recording user stacks only$' "$dir/err" ||
  fail "message at 2: $(cat "$dir/err")"
nobody "$dir/pe-symbolize" "$dir/w/own.pe" 2>/dev/null | nobody "$dir/stackfold" --annotate >"$dir/own.folded"
within 'fifty, as nobody' 50 "$(share ';work;fifty' "$dir/own.folded")" 8
expect 'kernel frames, %' 0.0 "$(share '_\[k\]' "$dir/own.folded")"

# Without stacks of waits from the kernel, stackpipe waits samples all time, and says so.
mkdir "$dir/bin"; cp "$PE_SCRIPTS/stackpipe" "$PE_TOOLS"/{pe-record,offcpu,pe-symbolize,stackfold,stacktop,flamesvg} "$dir/bin/"
cp -r "$PE_SCRIPTS/../share" "$dir/share"
waits() { TMPDIR=$dir/w nobody env PATH="$dir/bin:/usr/bin:/bin" stackpipe waits "$@" 2>"$dir/err"; }
waits -o "$dir/w/waits.folded" -- sh -c 'sleep 0.5; exit 3'; expect 'waits: status of the command' 3 $?
grep -q '^stackpipe: sampling all time by pe-record --engine ptrace --clock wall, so the graph does not tell running from waiting: ' "$dir/err" ||
  fail "waits: $(cat "$dir/err")"
at_least 'waits: samples in nanosleep, of 49' 25 "$(awk '/^sleep;.*nanosleep/ { n += $NF } END { print n + 0 }' "$dir/w/waits.folded")"
mkdir -m 777 "$dir/w/keep"
waits --keep "$dir/w/keep" -o "$dir/w/kept.svg" -- true; expect 'waits, a stream wanted: status' 125 $?
waits -a -d 0.1 -o "$dir/w/all.svg"; expect 'waits of the whole system: status' 125 $?
grep -Eqx 'stackpipe: not recorded: perf_event_paranoid is 2; need 0 or CAP_PERFMON to record other processes' "$dir/err" ||
  fail "waits of the whole system: $(cat "$dir/err")"
# With stacks of waits, the graph tells running from waiting.
echo 1 >/proc/sys/kernel/perf_event_paranoid
waits -v -o "$dir/w/both.folded" -- sleep 0.5; expect 'waits at 1: status' 0 $?
grep -q '^pe-record: the time for which woken threads waited for a CPU is part of their waits: record as root, or with CAP_PERFMON' "$dir/err" ||
  fail "waits at 1: $(cat "$dir/err")"
at_least 'waits at 1: microseconds waiting' 400000 "$(awk '/^sleep;.*nanosleep.*;\[(sleep|other wait)\]_\[o\] / { n += $NF } END { print n + 0 }' "$dir/w/both.folded")"
nobody "$dir/pe-record" -q --event cpu,waits -o "$dir/w/clock.pe" -- sleep 0.3 2>"$dir/err"; expect 'elapsed time at 1: status' 0 $?
expect 'elapsed time at 1: without ready times of others' '' "$(grep -v 'bpf engine does not work here' "$dir/err")"
nobody "$dir/stackfold" -q --weight elapsed "$dir/w/clock.pe" >"$dir/clock.folded" || fail 'no elapsed time at 1'
at_least 'elapsed time at 1' 300000 "$(awk '/^# / { next } { n += $NF } END { print n + 0 }' "$dir/clock.folded")"
echo 2 >/proc/sys/kernel/perf_event_paranoid

nobody "$dir/pe-record" -a -d 0.1 -o "$dir/w/a.pe" 2>"$dir/err"; expect 'whole system at 2' 1 $?
expect 'its message' 'pe-record: perf_event_paranoid is 2; need 0 or CAP_PERFMON to record other processes' "$(tail -1 "$dir/err")"
for recorder in pe-record 'pe-record --engine perf' 'pe-record --engine ptrace' offcpu; do
  for option in p:process t:thread; do
    # shellcheck disable=SC2086 # these are words
    nobody "$dir/"$recorder -${option%:*} $$ -d 0.1 -o "$dir/w/p.pe" 2>"$dir/err"; expect "another's process, $recorder" 1 $?
    expect 'its message' "${recorder%% *}: ${option#*:} $$ belongs to another user: record it as root, or with CAP_PERFMON (malloctrace: CAP_SYS_PTRACE)" "$(cat "$dir/err")"
  done
done
nobody "$dir/pe-record" -t 4194303 -d 0.1 -o "$dir/w/p.pe" 2>"$dir/err"; expect 'no such thread' 1 $?
expect 'its message' 'pe-record: --tid: 4194303: no such thread' "$(cat "$dir/err")"
waits -p $$ -d 0.1 -o "$dir/w/others.svg"; expect "another's process, waits" 125 $?
expect 'its message' "pe-record: process $$ belongs to another user: record it as root, or with CAP_PERFMON (malloctrace: CAP_SYS_PTRACE)" "$(cat "$dir/err")"

# In a user namespace, the answers about a capability agree: the kernel asks for those of the first namespace.
if unshare --user --map-root-user true 2>/dev/null; then
  unshare --user --map-root-user pe-record --check >"$dir/check"
  for capability in CAP_PERFMON CAP_BPF CAP_SYS_ADMIN; do
    grep -Eq "^$capability +no +a capability of this user namespace does not suffice" "$dir/check" || fail "$capability: $(grep "^$capability" "$dir/check")"
  done
  grep -Eq '^perf_event_open: whole system +no ' "$dir/check" || fail "whole system: $(cat "$dir/check")"
  grep -Eq '^CAP_SYS_PTRACE +yes +processes of this user namespace$' "$dir/check" || fail "ptrace: $(cat "$dir/check")"
else
  echo 'no user namespaces here'
fi

# The engine that is chosen for a running interpreter reads the functions of its script.  A closing line names one if
# another engine was chosen.
setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all /usr/bin/python3 -c 'while True: sum(i * i for i in range(1000))' & python=$!
sleep 0.5
scope=$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)
advice='use --engine ptrace'
[ "$scope" = 0 ] || advice="--engine bpf needs root; --engine ptrace: kernel.yama.ptrace_scope is $scope: need .*"
nobody "$dir/pe-record" --engine perf -p $python -d 0.5 -o "$dir/w/python.pe" 2>"$dir/err"; expect 'scripts by perf: status' 0 $?
grep -Eqx "pe-record: this engine does not read the functions of scripts: $advice" "$dir/err" || fail "scripts: $(cat "$dir/err")"
if [ "$scope" = 0 ]; then
  nobody "$dir/pe-record" -p $python -d 0.5 -o "$dir/w/python.pe" 2>"$dir/err"; expect 'scripts by ptrace: status' 0 $?
  grep -q "^pe-record: using the ptrace engine, which stops the target's threads: " "$dir/err" || fail "engine: $(cat "$dir/err")"
  ! grep -q scripts "$dir/err" || fail "scripts by ptrace: $(cat "$dir/err")"
  pe-symbolize -q "$dir/w/python.pe" | stackfold --annotate >"$dir/python.folded"
  at_least 'functions of the script, %' 90 "$(share '<module>_\[s\]' "$dir/python.folded")"
fi
pe-record --engine perf -p $python -d 0.5 -o "$dir/w/python.pe" 2>"$dir/err"
grep -qx 'pe-record: this engine does not read the functions of scripts: use --engine bpf' "$dir/err" || fail "scripts by root: $(cat "$dir/err")"

# Root records kernel frames; a user who may not see the kernel's symbols symbolizes them.
pe-record -F 997 -o "$dir/k.pe" -- dd if=/dev/zero of=/dev/null bs=1M count=2000 2>/dev/null
nobody "$dir/pe-symbolize" "$dir/k.pe" 2>"$dir/err" | nobody "$dir/stackfold" --annotate >"$dir/k.folded"
expect 'said once' 1 "$(grep -c 'kernel symbols are hidden' "$dir/err")"
at_least 'frames that say kernel, %' 50 "$(share '\[kernel\]_\[k\]' "$dir/k.folded")"
finish
