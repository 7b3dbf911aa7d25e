#!/bin/bash
# A recorder drops the privileges that it does not need for recording.  The command that it started keeps its
# own.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'rights can only be given up by who has them: needs root'
own=$(awk '$1 == "CapEff:" { print $2 }' /proc/self/status)
readonly kept=$(((1 << 2) | (1 << 5) | (1 << 19) | (1 << 34) | (1 << 40))) bpf=$(((1 << 38) | (1 << 39)))

status_of() { awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status"; }
# of_recorder LABEL ALLOWED TOOL...: checks the capabilities of the recorder while it records
of_recorder() {
  : >"$dir/stream"
  "${@:3}" -p $$ -o "$dir/stream" 2>"$dir/err" &
  local recorder=$! set
  for _ in $(seq 200); do [ "$(status_of $recorder NoNewPrivs)" = 1 ] && break; sleep 0.05; done
  set=$((16#$(status_of $recorder CapEff)))
  expect "$1: rights that are not needed" 0 $((set & ~$2))
  expect "$1: the same may be had again" "$(status_of $recorder CapEff)" "$(status_of $recorder CapPrm)"
  expect "$1: what it needs" $((16#$own & $2)) $set
  expect "$1: by execve" 1 "$(status_of $recorder NoNewPrivs)"
  kill $recorder
  wait $recorder || grep -qE ': (nothing was recorded|0 samples): ' "$dir/err" || fail "$1: $(cat "$dir/err")"  # the target may sleep
}
of_recorder pe-record $kept pe-record
of_recorder 'pe-record bpf' $((kept | bpf)) pe-record --engine bpf
of_recorder 'offcpu perf' $kept offcpu --engine perf
of_recorder 'offcpu bpf' $((kept | bpf)) offcpu --engine bpf

for tool in pe-record offcpu; do
  $tool -o "$dir/stream" -- grep -E '^(CapEff|NoNewPrivs)' /proc/self/status >"$dir/of_command" 2>"$dir/err" ||
    grep -qE ': (nothing was recorded|0 samples): ' "$dir/err" || fail "$tool: $(cat "$dir/err")"
  expect "$tool: the command's rights" "CapEff:	$own NoNewPrivs:	0" "$(sort "$dir/of_command" | paste -sd ' ')"
done
finish
