#!/bin/bash
# With any input, a filter ends by itself, reports the problem, and does not crash.
. "$(dirname "$0")/../lib.sh"
: >"$dir/empty"
head -c 100000 /dev/urandom >"$dir/random"
head -c 100000 /dev/zero >"$dir/zeros"
{ printf 'PERFILE2\020\0\0\0\0\0\0\0'; head -c 100000 /dev/urandom; } >"$dir/random-records"
{ printf 'PERFILE2\150\0\0\0\0\0\0\0'; head -c 100000 /dev/urandom; } >"$dir/random-file"
printf '2ELIFREP\0\0\0\0\0\0\0\020' >"$dir/other-order"
yes 'a;b;c' | head -c 200000 >"$dir/no-counts"
head -c 10000000 /dev/zero | tr '\0' 'x' >"$dir/one-long-line"
for tool in pe-symbolize stackfold flamesvg; do
  for file in "$dir"/*; do
    case $file in */out | */err) continue ;; esac
    timeout 20 "$tool" "$file" >"$dir/out" 2>"$dir/err"
    status=$?
    [ $status -le 2 ] || fail "$tool $(basename "$file"): exit $status"
    [ -s "$dir/err" ] || { [ "$tool" = stackfold ] && [ "$file" = "$dir/empty" ]; } || fail "$tool $(basename "$file"): silent"
    [ "$(wc -l <"$dir/err")" -le 4 ] || fail "$tool $(basename "$file"): $(wc -l <"$dir/err") lines of messages"
  done
  "$tool" "$dir" >/dev/null 2>"$dir/err"; expect "$tool of a folder" 1 $?
  grep -q "^$tool: $dir: Is a directory" "$dir/err" || fail "$tool of a folder: $(cat "$dir/err")"
done
# Recordings of perf with some bytes changed, in the header, the records, and the build IDs.
if command -v perf >/dev/null; then
  record_by_perf -F 499 -e cpu-clock --call-graph dwarf,4096 -o "$dir/perf.data" -- "$PE_WORKLOAD" shares 0.2 2>/dev/null
  record_by_perf -F 499 -e cpu-clock -g -z -o "$dir/packed.data" -- "$PE_WORKLOAD" shares 0.2 2>/dev/null
  python3 - "$dir" <<'PY'
import random, sys
random.seed(7)
for name in ("perf", "packed"):
    whole = open(f"{sys.argv[1]}/{name}.data", "rb").read()
    for case in range(20):
        data, end = bytearray(whole), (200, 4096, len(whole))[case % 3]
        for _ in range(8):
            data[random.randrange(16 if case % 2 else len(data) - 4096, end if case % 2 else len(data))] = random.randrange(256)
        open(f"{sys.argv[1]}/changed-{name}-{case}", "wb").write(data)
PY
  for file in "$dir"/changed-*; do
    (ulimit -v 4000000; timeout 20 pe-symbolize "$file" >"$dir/out" 2>"$dir/err")
    status=$?
    [ $status -le 1 ] || fail "pe-symbolize $(basename "$file"): exit $status: $(cat "$dir/err")"
    [ $status = 0 ] || [ -s "$dir/err" ] || fail "pe-symbolize $(basename "$file"): silent"
    [ "$(wc -l <"$dir/err")" -le 25 ] || fail "pe-symbolize $(basename "$file"): $(wc -l <"$dir/err") lines of messages"
  done
fi
for args in '-p 0' '-p x' '-p 99999999' '-F 0' '-F -1' '-F 99999999999999999999 true' '-d x true' '-m 3 true' '-e nosuch true' \
  '-C 0-x -a' '--call-graph x true' '-a -p 1' '' '-c 0 true' '--cgroup /nosuch/group' '-e no:such true' '-C 60000 -a'; do
  # shellcheck disable=SC2086 # words on purpose
  timeout 20 pe-record -o "$dir/x.pe" $args >/dev/null 2>"$dir/err"
  status=$?
  case $status in 1 | 2 | 125) ;; *) fail "pe-record $args: exit $status" ;; esac
  [ -s "$dir/err" ] || fail "pe-record $args: silent"
done
finish
