#!/bin/bash
# One allocation of a tool fails, or all from one on, at many places.  The tool does its work, or reports the
# problem and fails.
# libdw, which finds inlined functions, ends the program if it gets no memory.  So pe-symbolize runs without
# it here.
. "$(dirname "$0")/../lib.sh"
pe-record -q -F 997 -o "$dir/r.pe" -- "$PE_WORKLOAD" shares 0.2 2>"$dir/err" || fail "$(cat "$dir/err")"
pe-symbolize -q "$dir/r.pe" >"$dir/n.pe"
stackfold "$dir/n.pe" >"$dir/n.folded" 2>/dev/null

# at_many_places TOOL [ARGUMENT...]: tries a fifth of the first DENSE allocations, and of PLACES places in all
tried=0
dense=20 places=20
[ -z "${PE_ALL:-}" ] || dense=60 places=60
at_many_places() {
  local all place status how message="$1: "
  all=$({ FAIL_COUNT=9 LD_PRELOAD=$PE_FAIL "$@" 9>&1 >/dev/null 2>&1 </dev/null; } | tail -n 1)
  at_least "$*: allocations" 100 "${all:-0}"
  for how in FAIL_ONCE FAIL_ON; do
    for ((place = 1; place <= all; place += place < dense ? 1 : all / places + 1)); do
      in_slice $((tried++)) || continue
      env FAIL_AT=$place $how=1 LD_PRELOAD="$PE_FAIL" timeout 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null
      status=$?
      case $status in
        0) ;;
        # RE2 may have begun the line.
        1 | 125) grep -q "$message" "$dir/err" || fail "$*: allocation $place, $how: fails without a word: $(cat "$dir/err")" ;;
        *) fail "$*: allocation $place, $how: $status, $(cat "$dir/err")" ;;
      esac
    done
  done
}
at_many_places pe-record --engine perf -o "$dir/again.pe" -p $$ -d 0.01
# The recorder has threads of its own: one keeps files that are gone, another records samples.
cp "$PE_WORKLOAD" "$dir/gone"
"$dir/gone" shares 600 & gone=$!
until [ "$(readlink "/proc/$gone/exe")" = "$dir/gone" ]; do sleep 0.02; done
rm "$dir/gone"
dense=0 places=20
HOME=$dir at_many_places pe-record --engine perf -e cpu-clock -F 4999 -o "$dir/again.pe" -p $gone -d 0.01
! can_record --engine ptrace 2>"$dir/err" ||
  at_many_places pe-record --engine ptrace --no-cache -F 997 -o "$dir/again.pe" -p $gone -d 0.01
kill $gone
at_many_places pe-record --engine signal -o "$dir/again.pe" -- "$PE_COUNTED" free calls 1
dense=20 places=20
[ -z "${PE_ALL:-}" ] || dense=60 places=60
at_many_places offcpu --engine perf -o "$dir/again.pe" -p $$ -d 0.01
at_many_places pe-symbolize --no-inline "$dir/r.pe"
at_many_places stackfold "$dir/n.pe"
at_many_places stackfold --to pprof "$dir/n.pe"
at_many_places flamesvg "$dir/n.folded"
at_many_places flamediff "$dir/n.folded" "$dir/n.folded"
at_many_places stacktop "$dir/n.folded"
# The messages are true: a tool without messages has written its complete output.
stackfold "$dir/n.pe" >"$dir/whole" 2>/dev/null
for place in 20 50 80; do
  FAIL_AT=$place LD_PRELOAD=$PE_FAIL stackfold "$dir/n.pe" >"$dir/out" 2>/dev/null && { cmp -s "$dir/out" "$dir/whole" || fail "allocation $place: output that is not whole, and status 0"; }
done
finish
