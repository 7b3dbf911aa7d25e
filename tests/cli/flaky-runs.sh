#!/bin/bash
# A test that is flaky in two of the last ten runs fails the run.  A fake meson has one test, which passes when repeated.
# The run of a change has three fifths of the tests, and each test is in three of five runs.
# Argument: scripts/dev/live-tests.
set -u
unset PE_ALL PE_SLICE
live_tests=$1
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
failed=0
mkdir -p "$dir/bin" "$dir/build/meson-logs"
cat >"$dir/bin/meson" <<'END'
#!/bin/bash
if [ "$5" = --list ]; then printf 'stackpipe:live / %s\n' shaky b c d e f g h i j; exit; fi
echo "$*" >>"${0%/*}/calls"
while [ "$1" != --logbase ]; do [ "$1" != -C ] || build=$2; shift; done
case $2 in live) result=FAIL ;; *) result=OK ;; esac
echo "{\"name\": \"stackpipe:live / shaky\", \"result\": \"$result\"}" >"$build/meson-logs/$2-cost.json"
[ $result = OK ]
END
chmod +x "$dir/bin/meson"
# check LABEL STATUS TEXT: runs the tests with the runs that standard input lists
check() {
  cat >"$dir/runs"
  PATH=$dir/bin:$PATH "$live_tests" --build "$dir/build" --flaky-runs "$dir/runs" >"$dir/out" 2>&1; local status=$?
  [ $status = "$2" ] || { echo "FAILED: $1: status $status, not $2: $(cat "$dir/out")"; failed=1; }
  tail -3 "$dir/out" | grep -q -- "$3" || { echo "FAILED: $1: the last lines have no '$3': $(cat "$dir/out")"; failed=1; }
}
check 'no run before' 0 '^FLAKY: shaky: ' </dev/null
check 'another was flaky' 0 '^this run in runs: [0-9a-z]* shaky$' <<<$'# a line\naaa other\nbbb'
check 'it was flaky' 1 '^flaky twice in ten runs: shaky, also at aaa$' <<<$'aaa other shaky\nbbb'
check 'ten runs ago' 1 'also at aaa$' < <(echo aaa shaky; seq 9)
check 'eleven runs ago' 0 '^FLAKY: shaky: ' < <(echo aaa shaky; seq 10)

rm "$dir/bin/calls"
for slice in 0 1 2 3 4; do PE_SLICE=$slice PATH=$dir/bin:$PATH "$live_tests" --build "$dir/build" >"$dir/out" 2>&1; done
for name in shaky b c d e f g h i j; do
  runs=$(grep -c -- "--logbase live .*\b$name\b" "$dir/bin/calls")
  [ "$runs" = 3 ] || { echo "FAILED: $name is in $runs of five runs: $(cat "$dir/bin/calls")"; failed=1; }
done
PE_ALL=1 PE_SLICE=1 PATH=$dir/bin:$PATH "$live_tests" --build "$dir/build" >/dev/null 2>&1
tail -2 "$dir/bin/calls" | grep -q -- '--logbase live .*--suite live$' || { echo 'FAILED: PE_ALL does not run all'; failed=1; }
exit $failed
