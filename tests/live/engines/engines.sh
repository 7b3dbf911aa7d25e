#!/bin/bash
# If counters are forbidden, the recorder uses the next engine and reports this.  --check reports in advance
# what is possible.
. "$(dirname "$0")/../lib.sh"
deny() { "$PE_DENY" "$@"; }
# recorded STREAM LABEL: checks the stacks of a known program.  The tests of each engine check the shares:
# with signals, these are only right if the machine has little else to do.
recorded() {
  fold "$1" >"$dir/folded"
  at_least "$2: samples" 10 "$(awk '{ n += $NF } END { print n + 0 }' "$dir/folded")"
  at_least "$2: whole stacks" 95 "$(share '^workload;_start;.*;main;work;' "$dir/folded")"
  at_least "$2: where its time goes" 80 "$(share ';work;(fifty|thirty|twenty)([; ])' "$dir/folded")"
}

for errno in EPERM ENOSYS; do
  deny perf_event_open $errno pe-record -F 499 -o "$dir/auto.pe" -- "$PE_WORKLOAD" shares 1 2>"$dir/err"; expect "auto, $errno: status" 0 $?
  grep -q '^pe-record: using the signal engine, with which the command samples itself: perf_event_open(2) is blocked here' "$dir/err" ||
    fail "auto, $errno: $(cat "$dir/err")"
  recorded "$dir/auto.pe" "auto, $errno"
  deny perf_event_open,memfd_create $errno pe-record -F 499 -o "$dir/auto.pe" -- "$PE_WORKLOAD" shares 1 2>"$dir/err"
  expect "no memory either, $errno: status" 0 $?
  grep -q "^pe-record: using the ptrace engine, which stops the target's threads: perf_event_open(2) is blocked .*; nor by signal: memory cannot be shared" "$dir/err" ||
    fail "no memory either, $errno: $(cat "$dir/err")"
  recorded "$dir/auto.pe" "no memory either, $errno"
  deny perf_event_open $errno pe-record --engine perf -o "$dir/none.pe" -- true 2>"$dir/err"; expect "perf, $errno: status" 125 $?
  grep -q '^pe-record: perf_event_open(2) is blocked here' "$dir/err" || fail "perf, $errno: $(cat "$dir/err")"
done
[ ! -e "$dir/none.pe" ] || fail 'a recording that cannot be made has made a file'
deny perf_event_open EPERM pe-record -a -d 0.1 -o "$dir/none.pe" 2>"$dir/err"; expect 'the whole system' 1 $?
expect 'lines about it' 1 "$(grep -c . "$dir/err")"

deny ptrace EPERM pe-record --engine ptrace -o "$dir/none.pe" -- true 2>"$dir/err"; expect 'ptrace denied' 125 $?
grep -q '^pe-record: ptrace: denied to this process (Operation not permitted): a seccomp filter' "$dir/err" || fail "ptrace denied: $(cat "$dir/err")"
deny ptrace,memfd_create,perf_event_open ENOSYS pe-record -o "$dir/none.pe" -- true 2>"$dir/err"; expect 'all denied' 125 $?
grep -q '^pe-record: perf_event_open(2) is blocked .*; nor by signal: memory .*; nor by ptrace: denied' "$dir/err" || fail "all denied: $(cat "$dir/err")"
deny process_vm_readv EPERM pe-record --engine ptrace -F 499 -o "$dir/mem.pe" -- "$PE_WORKLOAD" shares 1 2>"$dir/err"
recorded "$dir/mem.pe" 'read through /proc'

# The table has the same lines everywhere, and reports which engine the recorder would use.
pe-record --check >"$dir/all"; expect 'check' 0 $?
deny perf_event_open EPERM pe-record --check >"$dir/denied"; expect 'check, without counters' 0 $?
deny ptrace,memfd_create,perf_event_open EPERM pe-record --check >"$dir/nothing"; expect 'check, with nothing' 1 $?
what() { cut -c1-36 "$1"; }
expect 'the same lines' "$(what "$dir/all")" "$(what "$dir/denied")"
expect 'the same lines' "$(what "$dir/all")" "$(what "$dir/nothing")"
answer() { sed -n "s/^$1  *\([^ ]*\).*/\1/p" "$2"; }
expect 'counters' no "$(answer 'perf_event_open: own processes' "$dir/denied")"
expect 'the filter' yes "$(answer 'seccomp filter on this process' "$dir/denied")"
expect 'the engine' signal "$(answer '--engine auto would use' "$dir/denied")"
expect 'what runs already' ptrace "$(sed -n 's/^--engine auto would use .*: //p' "$dir/denied")"
expect 'ptrace' no "$(answer 'ptrace: threads stopped and read' "$dir/nothing")"
expect 'the engine' none "$(answer '--engine auto would use' "$dir/nothing")"
expect 'interpreters' yes "$(answer 'functions of Python, PHP, Ruby' "$dir/denied")"
expect 'interpreters, with nothing' no "$(answer 'functions of Python, PHP, Ruby' "$dir/nothing")"
expect 'the best engine, with nothing' none "$(answer '--engine best would use' "$dir/nothing")"
best=perf
[ "$(answer 'eBPF: stacks walked in the kernel' "$dir/all")" = no ] || best=bpf
expect 'the best engine' "$best" "$(answer '--engine best would use' "$dir/all")"
# The best engine is no need: without it, another one records the same.
deny bpf EPERM pe-record --engine best -F 499 -o "$dir/best.pe" -- "$PE_WORKLOAD" shares 0.3 2>"$dir/err"; expect 'without the best: status' 0 $?
grep -q 'using the' "$dir/err" && fail "without the best: $(cat "$dir/err")"
recorded "$dir/best.pe" 'without the best'
pe-record --check -a 2>"$dir/err"; expect 'check of a target' 2 $?

# Users can record their own processes only.
[ "$(id -u)" = 0 ] || skip 'dropping rights needs root'
chmod 755 "$dir"; mkdir -m 777 "$dir/w"
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all)
nobody() { "${as_nobody[@]}" "$@"; }
cp "$PE_WORKLOAD" "$PE_DENY" "$(command -v pe-record)" "$dir/"
sleep 30 & root_s=$!
nobody "$dir/pe-record" --engine ptrace -p $root_s -d 0.1 -o "$dir/w/x.pe" 2>"$dir/err"; expect "another's process" 1 $?
expect 'its message' "pe-record: process $root_s belongs to another user: record it as root, or with CAP_PERFMON (malloctrace: CAP_SYS_PTRACE)" "$(cat "$dir/err")"
kill $root_s
"${as_nobody[@]}" "$dir/workload" shares 30 & target=$!
await_program $target workload
until_used 500 $target "${as_nobody[@]}" "$dir/deny_call" perf_event_open EPERM "$dir/pe-record" -F 499 -p $target -o "$dir/w/own.pe" 2>"$dir/err"
expect 'own process' 0 $?
recorded "$dir/w/own.pe" 'as nobody'
kill $target
nobody "$dir/pe-record" --check >"$dir/users" 
expect 'a user has no' no "$(answer CAP_PERFMON "$dir/users")"
finish
