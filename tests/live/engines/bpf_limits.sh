#!/bin/bash
# eBPF is not available, or has no room: the tools report this, count the losses, and still record what they
# can.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'eBPF, and mounting something over /sys/kernel/btf, needs root'
offcpu -q --engine bpf -o "$dir/try.pe" -- sleep 0.1 2>"$dir/err" || skip "$(cat "$dir/err")"

# The kernel has no BTF.  pe-record refuses the engine if the user asked for it; else it uses another engine
# and reports this.
without_btf() {  # COMMAND...
  unshare --mount sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' sh "$@"
}
if without_btf true 2>/dev/null; then
  without_btf offcpu --engine bpf -o "$dir/b.pe" -- "$PE_WAITS" nanosleep >/dev/null 2>"$dir/err"; expect 'no BTF: status' 125 $?
  expect 'no BTF' 'offcpu: --engine bpf: eBPF: the kernel has no BTF (/sys/kernel/btf/vmlinux)' "$(cat "$dir/err")"
  without_btf offcpu --min-us 20000 -o "$dir/p.pe" -- "$PE_WAITS" nanosleep >/dev/null 2>"$dir/err"; expect 'no BTF, any engine: status' 0 $?
  grep -qxF 'offcpu: the bpf engine does not work here; using perf: eBPF: the kernel has no BTF (/sys/kernel/btf/vmlinux)' "$dir/err" ||
    fail "no BTF, any engine: $(cat "$dir/err")"
  grep -q '^offcpu: 10 waits in ' "$dir/err" || fail "no BTF, ten naps: $(cat "$dir/err")"
  at_least 'no BTF: naps, from main() on, %' 99 "$(share ';main;.*;wait_in_nanosleep[; ]' <(fold "$dir/p.pe"))"
  without_btf pe-record --engine bpf -o "$dir/r.pe" -- true 2>"$dir/err"; expect 'no BTF, pe-record: status' 125 $?
  grep -q '^pe-record: --engine bpf: eBPF: the kernel has no BTF' "$dir/err" || fail "no BTF, pe-record: $(cat "$dir/err")"
fi

# The kernel's verifier refuses the programs, because its BTF gives them a wrong offset.  pe-record reports
# the verifier's message in one line.
# shellcheck disable=SC2016 # for the shell that runs it
with_wrong_btf() { unshare --mount sh -c 'mount --bind "$0" /sys/kernel/btf/vmlinux && exec "$@"' "$dir/wrong.btf" "$@"; }
if "$(dirname "$0")/../../support/wrong_btf.py" /sys/kernel/btf/vmlinux "$dir/wrong.btf" task_struct tgid && with_wrong_btf true 2>/dev/null; then
  with_wrong_btf offcpu --engine bpf -o "$dir/v.pe" -- true 2>"$dir/err"; expect 'verifier: status' 125 $?
  expect 'verifier: lines' 1 "$(wc -l <"$dir/err")"
  grep -q '^offcpu: --engine bpf: eBPF: loading programs: [^;]*; the verifier: .* access beyond struct task_struct at off ' "$dir/err" ||
    fail "verifier: $(cat "$dir/err")"
  with_wrong_btf offcpu -o "$dir/v.pe" -- sleep 0.1 2>"$dir/err"; expect 'verifier, any engine: status' 0 $?
  grep -q '^offcpu: the bpf engine does not work here; using perf: eBPF: loading programs: ' "$dir/err" || fail "verifier, any engine: $(cat "$dir/err")"
fi

# stopped OUTPUT COMMAND...: runs the command under a recorder that is stopped meanwhile.  $recorder is the
# recorder with its arguments.  (Its child stops it, and reports when the command is done.)
stopped() {
  local output=$1 pid
  shift
  rm -f "$dir/done"
  # shellcheck disable=SC2016 # for the shell that runs it
  "${recorder[@]}" -o "$output" -- sh -c 'kill -STOP $PPID; "$@"; : >"$0"; sleep 0.2' "$dir/done" "$@" >"$dir/said" 2>"$dir/err" & pid=$!
  until [ -e "$dir/done" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
  kill -CONT $pid
  wait $pid
}
# lost_downstream FILE: prints the number that stackfold reports
lost_downstream() { pe-symbolize -q "$1" | stackfold 2>&1 >/dev/null | sed -nE 's/.* ([0-9]+) samples? lost while.*/\1/p'; }

# The ring of samples is full.
recorder=(pe-record --engine bpf -m 16 -F 997)
stopped "$dir/full.pe" "$PE_WORKLOAD" shares 1; expect 'a full ring: status' 0 $?
lost=$(sed -nE 's/^pe-record: [0-9]+ samples? in [0-9.]+ s, ([0-9]+) lost.*/\1/p' "$dir/err")
at_least 'a full ring: samples lost' 100 "${lost:-0}"
expect 'a full ring: lost, downstream' "${lost:-}" "$(lost_downstream "$dir/full.pe")"

# The ring is full of switches that the recorder should unwind from copies, because the program is too new.
# All waits are still there, as many as the program reports, but without complete stacks.
recorder=(offcpu --engine bpf --preempted)
stopped "$dir/handed.pe" "$PE_WAITS" pingpong; expect 'switches not handed on: status' 0 $?
at_least 'switches not handed on' 1000 "$(sed -nE 's/.*: ([0-9]+) stacks had no room in the ring from which they are walked.*/\1/p' "$dir/err")"
switches=$(awk '$1 == "switches" { print $2 }' "$dir/said")
at_least 'switches not handed on: waits' $((switches - switches / 100 - 10)) "$(grep -oE '[0-9]+ waits in' "$dir/err" | cut -d' ' -f1)"
expect 'switches not handed on: waits lost' 1 "$(grep -c ' s waited, 0 lost' "$dir/err")"
finish
