#!/bin/bash
# Runs the tutorial's commands unchanged, and checks its statements about their output.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'recording where threads wait needs root'
root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$dir" || exit 1
sed -n 's/^    //p' "$root/docs/tutorial.md" >commands
at_least 'commands' 30 "$(wc -l <commands)"
# Each command's output follows a line with the command.
awk '{ quoted = $0; gsub(/\047/, "\047\\\047\047", quoted); print "echo \047== " quoted "\047"; print }' commands >script
EXAMPLES=$root/share/stackpipe/examples PATH=$PE_SCRIPTS:$PATH bash -e -o pipefail script >out 2>err </dev/null ||
  fail "after $(grep '^== ' out | tail -n 1): $(tail -n 3 err)"
# said COMMAND: prints the output of the command
said() { awk -v command="== $1" '/^== / { is_it = index($0, command) == 1; next } is_it' out; }

said 'stacktop -n 5 run.folded' | grep -q memcmp || fail "what stacks end in: $(said 'stacktop -n 5 run.folded')"
said 'stacktop -n 12 --total' | grep -q look_up || fail "what they pass through: $(said 'stacktop -n 12 --total')"
said 'stacktop --callers' | grep -q 'orders::serve' || fail "callers of look_up: $(said 'stacktop --callers')"
said 'grep -F look_up' | grep -q 'orders::serve;orders::Prices::look_up' || fail "its stacks: $(said 'grep -F look_up')"
said 'flamediff --text' | grep -q 'look_up' || fail "the difference: $(said 'flamediff --table')"
said 'profile_run ci' | grep -q 'look_up' || fail "the gate's summary: $(said 'profile_run ci')"
said 'profile_run ci' | grep -q '^exit status 3$' || fail "the gate: $(said 'profile_run ci')"
at_least 'waiting in keep(), %' 10 "$(share 'serve;orders::Archive::keep' waits.folded)"
pe-symbolize -q wakers.pe | stackfold 2>/dev/null | grep -E 'Archive::keep.*;--;.*save_all' >/dev/null || fail 'who lets keep() wait is not told'
at_least 'held by keep(), %' 50 "$(share 'orders::Archive::keep' live.folded)"
grep -q 'Archive::keep' report.txt || fail 'the report knows nothing of keep()'
for picture in run diff waits wakers both live live-threads by-perf; do
  xmllint --noout "$picture.svg" || fail "$picture.svg"
done
finish
