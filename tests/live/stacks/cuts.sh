#!/bin/bash
# Streams are cut at many places, or have one damaged byte.  The tools never crash, and always report a cut,
# even right after the end of a round.
. "$(dirname "$0")/../lib.sh"
pe-record --user-only -F 997 -o "$dir/s.pe" -- "$PE_WORKLOAD" shares 0.3 2>/dev/null
pe-symbolize -q "$dir/s.pe" >"$dir/s.sym"

try() {  # LABEL TOOL FILE WANTS_MESSAGE
  timeout 20 "$2" <"$3" >"$dir/out" 2>"$dir/err"
  status=$?
  [ $status -le 1 ] || fail "$1: $2 exits $status"
  [ "$4" = no ] || [ -s "$dir/err" ] || fail "$1: $2 is silent"
}
for stream in s.pe s.sym; do
  size=$(stat -c %s "$dir/$stream")
  for i in $(seq 0 99); do  # percent of its length
    in_slice "$i" || continue
    head -c $((size * i / 100)) "$dir/$stream" >"$dir/cut"
    wants=yes
    [ "$i" != 0 ] || wants=no
    try "$stream cut at $i %" stackfold "$dir/cut" $wants
    try "$stream cut at $i %" pe-symbolize "$dir/cut" $wants
    cp "$dir/$stream" "$dir/broken"
    printf '\377' | dd of="$dir/broken" bs=1 seek=$((size * i / 100)) conv=notrunc status=none
    try "$stream broken at $i %" stackfold "$dir/broken" no
    try "$stream broken at $i %" pe-symbolize "$dir/broken" no
  done
done
# Cuts the stream after each round.
for stream in s.pe s.sym; do
  rounds=0
  while IFS=: read -r at _; do
    rounds=$((rounds + 1))
    in_slice $rounds || continue
    head -c $((at + 8)) "$dir/$stream" >"$dir/cut"
    try "$stream cut behind a round" stackfold "$dir/cut" yes
  done < <(LC_ALL=C grep -obUaP '\x44\x00\x00\x00\x01\x00\x08\x00' "$dir/$stream" | head -20)
  at_least "$stream: rounds" 3 $rounds
done
finish
