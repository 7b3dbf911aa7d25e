#!/bin/bash
# Runs the tutorial's commands unchanged, and checks its statements about their output.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'recording where threads wait needs root'
root=$(cd "$(dirname "$0")/../../.." && pwd)
tutorial=$root/docs/tutorial.md
# The folders of an installation: the tutorial finds its example beside the tools.
mkdir "$dir/bin" "$dir/work"
ln -s "$PE_TOOLS"/{pe-record,offcpu,malloctrace,pe-symbolize,stackfold,flamesvg,flamediff,stacktop} "$PE_SCRIPTS/stackpipe" "$dir/bin"
ln -s "$root/share" "$dir/share"
# The tutorial's perf record asks for build ids, as record_by_perf does, so that perf does not abort beside other tests.
if perf=$(command -v perf); then
  # shellcheck disable=SC2016 # not this shell's
  printf '#!/bin/sh\nc=$1; shift; [ "$c" != record ] || set -- --buildid-mmap "$@"\nexec %s "$c" "$@"\n' "$perf" >"$dir/bin/perf"
  chmod +x "$dir/bin/perf"
fi
cd "$dir/work" || exit 1

# Each command's output follows a line with the command, and each block of commands starts with its number.
awk '/^```sh$/ { is_command = 1; print "echo \047=== " ++block "\047"; next } /^```/ { is_command = 0 }
  is_command { quoted = $0; gsub(/\047/, "\047\\\047\047", quoted); print "echo \047== " quoted "\047"; print }' "$tutorial" >script
at_least 'commands' 30 "$(grep -c "^echo '== " script)"
PATH=$dir/bin:$PATH bash -e -o pipefail script >out 2>err </dev/null ||
  fail "after $(grep '^== ' out | tail -n 1): $(tail -n 3 err)"
# said COMMAND: prints the output of the command
said() { awk -v command="== $1" '/^==? / { is_it = index($0, command) == 1; next } is_it' out; }

# The tutorial prints output with the figures of one run.  The lines that name functions of the program, or an exit
# status, are in every output: the last word of such a line is the last one of a line of that block's output.
awk '/^```sh$/ { ++block } /^```text$/ { is_output = 1; next } /^```/ { is_output = 0 }
  is_output && /orders::|^exit status/ { print block, $NF }' "$tutorial" >expected
at_least 'lines of output' 9 "$(wc -l <expected)"
while read -r block word; do
  awk -v block="$block" -v word="$word" '/^=== / { is_block = $2 == block } is_block && $NF == word { is_found = 1 } END { exit !is_found }' out ||
    fail "block $block of the tutorial prints no line with $word: $(awk -v block="$block" '/^=== / { is_block = $2 == block } is_block' out)"
done <expected

said 'stackpipe top -n 3' | grep -q memcmp || fail "functions at the ends of stacks: $(said 'stackpipe top -n 3')"
said 'grep -F look_up' | grep -q 'orders::serve;orders::Prices::look_up' || fail "stacks of look_up: $(said 'grep -F look_up')"
said 'flamediff --text' | grep -q 'look_up' || fail "the difference: $(said 'flamediff --text')"
said 'stackpipe runs ci' | grep -q '^exit status 3$' || fail "the gate: $(said 'stackpipe runs ci')"
said 'stackpipe check' | grep -q '^ptrace: ' || fail "check: $(said 'stackpipe check')"
at_least 'waiting in keep(), %' 10 "$(share 'serve;orders::Archive::keep' waits.folded)"
pe-symbolize -q wakers.pe | stackfold 2>/dev/null | grep -E 'Archive::keep.*;--;.*save_all' >/dev/null || fail 'no stack shows that save_all() wakes keep()'
at_least 'allocated by keep(), %' 50 "$(share 'orders::Archive::keep' live.folded)"
grep -q 'Archive::keep' report.txt || fail 'the report lacks keep()'
for picture in flamegraph diff waits heap heap-leaks heap-allocations live run wakers by-perf; do
  xmllint --noout "$picture.svg" || fail "$picture.svg"
done
finish
