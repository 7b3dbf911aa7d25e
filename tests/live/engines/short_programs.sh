#!/bin/bash
# The samples of many short programs represent the CPU time that these have had, also beside a busy loop, which makes them
# wait: no program is charged for more than its time.
. "$(dirname "$0")/../lib.sh"

# Each of 30 programs runs for 10 to 20 ms.  `times` prints their CPU time: minutes and seconds, user and system.
cat >"$dir/many.sh" <<'END'
for _ in $(seq 30); do perl -e '$i++ while $i < 400_000'; done
times >"$1"
END
command -v perl >/dev/null || skip 'no perl'
check() {  # LABEL
  pe-record --engine ptrace -F 997 -o "$dir/a.pe" -- bash "$dir/many.sh" "$dir/times" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
  local had represented
  had=$(tr -s ' ms\n' ' ' <"$dir/times" | awk '{ for (i = 1; i < NF; i += 2) s += 60 * $i + $(i + 1) } END { print s }')
  represented=$(pe-symbolize -q "$dir/a.pe" | stackfold --weight period | awk '{ n += $NF } END { print n / 1e9 }')
  # Each program may have one sample of 10 to 20 more, or fewer, because the end of a program cannot be stopped; the number
  # of about 400 samples varies by a twentieth.
  within "$1: share of the CPU time, %" 100 "$(awk -v r="$represented" -v h="$had" 'BEGIN { print 100 * r / h }')" 20
}
check alone
bash -c 'while :; do :; done' & loop=$!
bash -c 'while :; do :; done' & loop="$loop $!"
check 'beside busy loops'
# shellcheck disable=SC2086  # two
kill $loop
finish
