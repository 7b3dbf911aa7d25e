#!/bin/sh
# stackpipe top and diff of parts of a recording.
# Usage: front-times.sh SCRIPTS_FOLDER TOOLS_FOLDER
set -u
scripts=$1 PATH=$2:$PATH failed=0
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
HOME=$dir && export HOME PATH
fail() { echo "FAILED: $*"; failed=1; }

# 100 samples of before(), then 100 of after(), in 2 s.
i=0
while [ $i -lt 200 ]; do
  [ $i -lt 100 ] && name=before || name=after
  printf 'p 1 [000] %d.%02d0000: cycles: \n\t1 %s+0x1 (/x)\n\t2 main+0x1 (/x)\n\n' $((50 + i / 100)) $((i % 100)) "$name"
  i=$((i + 1))
done >"$dir/run.txt"

top() { "$scripts/stackpipe" top "$@" "$dir/run.txt" 2>"$dir/err"; }
[ "$(top --time -900ms | grep -c ' before$')" = 0 ] || fail "the end has the start: $(top --time -900ms)"
top --time -900ms | grep -q ' after$' || fail "the end: $(cat "$dir/err")"
# Of a pipe, the end is known only once all of it has been read.
# shellcheck disable=SC2002 # a pipe is what is wanted
piped=$(cat "$dir/run.txt" | stackfold --time -900ms 2>"$dir/err" | sed 's/ [0-9]*$//')
[ "$piped" = 'p;main;after' ] || fail "a pipe: $piped: $(cat "$dir/err")"
top --time 50,50.9 | grep -q ' before$' || fail "the start: $(cat "$dir/err")"
top --time 14:05 >"$dir/out" && fail 'a text without dates has a time of day'
grep -q "^stackfold: --time: '14:05': the input does not tell when it was recorded" "$dir/err" || fail "no dates: $(cat "$dir/err")"
printf 'p;main 1\n' >"$dir/a.folded"
"$scripts/stackpipe" top --time +1s "$dir/a.folded" 2>"$dir/err" && fail 'folded text has times'
grep -q 'a.folded: --time: folded text has no times$' "$dir/err" || fail "folded text: $(cat "$dir/err")"

"$scripts/stackpipe" diff -o "$dir/d.svg" --before +0s,+990ms --after +1s "$dir/run.txt" >"$dir/out" 2>"$dir/err" || fail "diff: $(cat "$dir/err")"
grep -q '^before: 100 samples; after: 100 samples;' "$dir/out" || fail "sizes: $(cat "$dir/out")"
grep -qE ' 0\.00% +100\.00% .* after$' "$dir/out" || fail "after() did not appear: $(cat "$dir/out")"
"$scripts/stackpipe" diff -o "$dir/d.svg" "$dir/run.txt" 2>"$dir/err" && fail 'one profile without times was compared'
exit $failed
