#!/bin/bash
# Few descriptors (ulimit -n) or little memory (ulimit -v): every tool does its work, or reports which of them
# is too low.
# libdw, which finds inlined functions, ends the program if it gets no memory.  So pe-symbolize runs without
# it here.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
engines=
for engine in perf bpf signal ptrace; do
  can_record --engine $engine 2>/dev/null && engines+=" $engine"
done
pe-record -q -F 997 -o r.pe -- "$PE_WORKLOAD" shares 0.2 2>err || fail "$(cat err)"
pe-symbolize -q r.pe >n.pe
stackfold n.pe >n.folded 2>/dev/null
stackfold --to pprof n.pe >n.pb.gz
sleep 600 & target=$!
# A message must have one of these texts, so that the user knows what to change.
short_of='out of memory|Cannot allocate memory|ulimit -[nu]|Too many open files|BTF .* could not be read|failed to map segment'

# limited LABEL COMMAND...: checks the result of a command, which is in `status` and err
limited() {
  # The target sleeps, and the command ended before a sample was due.
  if grep -qE ': (nothing was recorded|0 samples): ' err; then status=0; fi
  case $status in
    0) ;;
    # 127: before a program starts, its loader may find no room for the libraries.
    1 | 125 | 127)
      expect "$1: lines" 1 "$(grep -c . err)"
      grep -qE "^${*:2:1}: .*($short_of)" err || fail "$1: status $status, does not say what it is short of: $(cat err)"
      ;;
    *) fail "$1: status $status: $(cat err)" ;;
  esac
}
with_little() {
  local kib files
  for ((kib = 8000; kib < 400000; kib += kib / 3)); do
    (ulimit -v $kib; exec timeout 60 "$@") >out 2>err </dev/null; status=$?
    # timeout itself must also start.
    [ "$status" != 127 ] || grep -q '^timeout: ' err && continue
    limited "$kib KiB: $*" "$@"
  done
  for files in 5 8 12 16 24; do
    (ulimit -n $files; exec timeout 60 "$@") >out 2>err </dev/null; status=$?
    limited "$files descriptors: $*" "$@"
  done
  (ulimit -n 64; exec timeout 60 "$@") >out 2>err </dev/null; status=$?
  if grep -qE ': (nothing was recorded|0 samples): ' err; then status=0; fi
  expect "64 descriptors: $*: status, $(cat err)" 0 $status
}
for engine in $engines; do
  if [ "$engine" = signal ]; then
    with_little pe-record -q --engine signal -o o.pe -- true
  else
    with_little pe-record -q -e cpu-clock --engine "$engine" -o o.pe -p $target -d 0.01
  fi
  case $engine in perf | bpf) with_little offcpu -q --engine "$engine" -o o.pe -p $target -d 0.01 ;; esac
done
with_little pe-symbolize -q --no-inline r.pe
with_little stackfold n.folded
with_little stackfold --to pprof n.folded
with_little flamesvg --title t n.folded
with_little flamediff --folded n.folded n.folded
with_little stacktop n.folded

# This command is in Python.  It cannot report a limit that stops it before its first line, but it never
# leaves half a profile.
put() { timeout 60 "$PE_SCRIPTS/profile-push" --spool spool n.pb.gz >out 2>err; status=$?; }
for ((kib = 8000; kib < 400000; kib += kib / 3)); do
  (ulimit -v $kib; put; [ -s err ] || expect "$kib KiB: profile-push, in silence" 0 $status; finish) || failed=1
done
for files in 4 5 6 8; do
  (ulimit -n $files; put; [ -s err ] || expect "$files descriptors: profile-push, in silence" 0 $status; finish) || failed=1
done
for files in 12 16 24 64; do (ulimit -n $files; put; expect "$files descriptors: profile-push, $(cat err)" 0 $status; finish) || failed=1; done
at_least 'profiles in the spool' 5 "$(find spool -name '*.pprof.gz' | wc -l)"
for file in spool/*.pprof.gz; do gzip -t "$file" || fail "half a profile: $file"; done

# malloctrace reserves 24 GiB of addresses in the program.  It reports if it cannot.
(ulimit -v 4000000; malloctrace -q -o o.pe -- true 2>err); expect 'malloctrace, 4 GB: status' 125 $?
grep -q '^malloctrace: the address space is limited to 4000000 KiB (ulimit -v)' err || fail "malloctrace, 4 GB: $(cat err)"
for files in 5 8 12 64; do
  (ulimit -n $files; exec malloctrace -q -o o.pe -- true) 2>err; status=$?
  limited "$files descriptors: malloctrace" malloctrace
done
expect '64 descriptors: malloctrace: status' 0 "$status"

# Symbols cannot be found for lack of descriptors: pe-symbolize reports this, and blames nothing else.
(ulimit -n 4; exec pe-symbolize -q r.pe) >out 2>err; expect '4 descriptors: pe-symbolize: status' 0 $?
! grep -q kptr_restrict err || fail "4 descriptors: pe-symbolize: $(cat err)"
kill $target
finish
