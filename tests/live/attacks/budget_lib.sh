# The tests of the budget source this file after lib.sh.  A stranger attacks the recorder of root.
# shellcheck shell=bash
here=$(dirname "$0")
cc=$(command -v cc) || skip 'no compiler'
chmod 711 "$dir"
stranger=()
[ "$(id -u)" != 0 ] || stranger=(setpriv --reuid 65534 --regid 65534 --clear-groups)
can_record --engine bpf 2>"$dir/err" || skip "$(head -1 "$dir/err")"

# as_stranger PROGRAM...: starts it in the background, as a user who is not root if possible; sets $attacker
as_stranger() { "${stranger[@]}" "$@" & attacker=$!; }

# costs LABEL MOST_CPU_MS MOST_MIB: checks the costs that cost.py has written
costs() {
  local cpu_ms=0 peak_kib=0 status=missing
  . "$dir/cost"
  expect "$1: status" 0 "$status"
  at_least "$1: the most CPU time, ms (it took $cpu_ms)" "$cpu_ms" "$2"
  at_least "$1: the most memory, MiB (it took $((peak_kib / 1024)))" "$((peak_kib / 1024))" "$3"
}
