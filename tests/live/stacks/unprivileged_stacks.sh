#!/bin/bash
# An ordinary user, who may lock little memory for rings, still gets complete stacks.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../stacks_lib.sh"
[ "$(id -u)" = 0 ] || skip 'setting perf_event_paranoid and dropping rights needs root'
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
program_of o2 || finish
chmod 755 "$dir"; mkdir -m 777 "$dir/w"
cp "$program" "$PE_STACKS/libstacks_plt.so" "$(command -v pe-record)" "$dir/"
user=$((60000 + $$ % 5000))  # used by this test only: a user's recordings share the limit of locked memory
nobody() { setpriv --reuid=$user --regid=65534 --clear-groups --bounding-set=-all env LD_LIBRARY_PATH="$dir" "$@"; }
record() { nobody "$dir/pe-record" -F 997 -o "$dir/w/$1.pe" -- "$dir/stacks_o2" 300 alloca thread=1 vdso 2>"$dir/$1.err"; }
check() {  # LABEL: checks the user frames; an ordinary user cannot see the kernel's
  [ -z "${PE_VERBOSE:-}" ] || cat "$dir/$1.err"
  check_cases "$1" "$dir/w/$1.pe" 180 alloca thread=1 vdso
  local stated
  stated=$(fold "$dir/w/$1.pe" 2>&1 >/dev/null | grep -oE '[0-9]+ samples? lost while' | cut -d' ' -f1)
  grep -q " s, ${stated:-0} lost" "$dir/$1.err" || fail "$1: the stream tells of ${stated:-0} lost: $(cat "$dir/$1.err")"
}

echo 2 >/proc/sys/kernel/perf_event_paranoid
record default; expect 'default lock limit: status' 0 $?
check default
(ulimit -l 64 && record little); expect 'lock limit of 64 KiB: status' 0 $?
check little
grep -Eq '^pe-record: the lock limit leaves room to copy [0-9]+ bytes of each stack, not 65528' "$dir/little.err" || fail "no word about smaller dumps: $(cat "$dir/little.err")"
finish
