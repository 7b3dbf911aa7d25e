#!/bin/bash
# stackpipe records, draws, compares and lists with one command; it keeps the program's output and status.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
sp() { "$PE_SCRIPTS/stackpipe" "$@" >out 2>err; status=$?; }
wrote() { grep -qxE "stackpipe: wrote (.*, )?$1(,.*)?" err || fail "not written: $1: $(cat err)"; }

# A command, with and without "--": its own options, output and status are its own.
sp record -F 499 -- "$PE_WORKLOAD" shares 1
expect 'a command' 0 $status
wrote flamegraph.svg
xmllint --noout flamegraph.svg || fail 'not well-formed'
grep -q 'fifty' flamegraph.svg || fail 'no function of the program'
# shellcheck disable=SC2016 # the program is to expand it
sp record -o b.folded sh -c 'echo data; "$0" shares 0.3; exit 3' "$PE_WORKLOAD"
expect 'status of the command' 3 $status
expect 'output of the command' data "$(cat out)"
grep -q 'fifty' b.folded || fail "folded: $(cat err)"
sp record -v -- "$PE_WORKLOAD" shares 0.2
grep -q '^stackpipe: pe-record .* -- .*workload shares 0.2$' err || fail "-v: no recorder: $(cat err)"
grep -q "^stackpipe: pe-symbolize .* | stackfold --annotate --every 100ms | flamesvg .* > flamegraph-2.svg\$" err || fail "-v: no pipeline: $(cat err)"
sp record -q -- "$PE_WORKLOAD" shares 0.2
expect 'quiet' '' "$(cat out err)"

# Without -v, one recording is three lines at most; -v has all of them.
for command in record heap; do
  sp $command -o three.svg -- ls /
  [ "$(wc -l <err)" -le 3 ] || fail "$command: more than three lines: $(cat err)"
done
# The command gets the user's environment.
# shellcheck disable=SC2016 # of that shell
sp heap -q -- sh -c 'test -z "${STACKPIPE_OPTIONS-}"'; expect 'a variable of ours' 0 $status

# The suffix chooses the form.
for suffix in pe pb.gz json; do
  sp record -q -o "c.$suffix" -- "$PE_WORKLOAD" shares 0.3; expect "$suffix: status" 0 $status
done
for form in c.pe c.pb.gz; do
  sp top --total $form; expect "top of $form: $(cat err)" 0 $status
  grep -q 'fifty' out || fail "top of $form: $(cat out)"
done
grep -q '"exporter":"stackpipe"' c.json || fail 'no speedscope profile'

# Files of another kind stay; a wrong command line starts nothing.
echo 'int main() {}' >main.svg
for wrong in '-F abc' '-o main.svg' '-o main.c' '-o no/folder.svg' '-p 1' '-d 0' '--freq'; do
  # shellcheck disable=SC2086 # words
  sp record $wrong -- touch started
  { [ $status != 0 ] && [ ! -e started ]; } || fail "$wrong: status $status"
  expect "$wrong: lines" 1 "$(wc -l <err)"
done
expect 'a file of another kind' 'int main() {}' "$(cat main.svg)"
sp record -- "$dir/none"; expect 'a command that is not there' 127 $status
sp record -F 1 -o none.svg -- true
[ ! -e none.svg ] || fail 'a flame graph of nothing'
grep -q '^stackpipe: none.svg: not written: nothing was recorded$' err || fail "nothing: $(cat err)"
for suffix in folded pe; do  # an older result stays
  cp "b.folded" "none.$suffix"
  sp record --force -F 1 -o "none.$suffix" -- true
  cmp -s b.folded "none.$suffix" || fail "$suffix: replaced by nothing"
  grep -q "^stackpipe: none.$suffix: not written: nothing was recorded$" err || fail "nothing: $(cat err)"
done

# Standard output is continued, not written anew; only the table or the result goes to it.
echo before >kept.txt
"$PE_SCRIPTS/stackpipe" record -q -o - --format folded -- "$PE_WORKLOAD" shares 0.2 >>kept.txt
expect 'standard output' before "$(head -n 1 kept.txt)"
grep -q 'fifty' kept.txt || fail "standard output: $(cat kept.txt)"
for command in record waits heap; do
  # shellcheck disable=SC2016 # the program is to expand it
  sp $command -o - --format folded sh -c 'echo data; "$0" shares 0.3' "$PE_WORKLOAD"
  grep -qx 'data' err || fail "$command -o -: output of the command: $(cat err)"
  grep -q ' [0-9.]*$' out || fail "$command -o -: no stack: $(cat out)"
  [ "$(grep -v '^# ' out | grep -vc ' [0-9.]*$')" = 0 ] || fail "$command -o -: mixed: $(cat out)"
done
# A signal that ends the command is named; its arguments may look like our options.
for command in record waits heap; do
  # shellcheck disable=SC2016 # the program is to expand it
  sp $command -o crash.folded sh -c '"$0" shares 0.3; kill -SEGV $$' "$PE_WORKLOAD" -o x.svg; expect "$command: a crash" 139 $status
  expect "$command: its signal" 1 "$(grep -cE "^(stackpipe|pe-record|malloctrace): 'sh' killed by signal 11 \(SIGSEGV\)( \([0-9]+ more notes?: -v\))?\$" err)"
  grep -qx "stackpipe: '-o x.svg' was passed to sh; put options of stackpipe before the command" err || fail "$command: $(cat err)"
done
# Lines of a script are shown on request.
printf 'def leaf():\n    return sum(i * i for i in range(1000))\nfor _ in range(5000):\n    leaf()\n' >lines.py
for form in svg folded pe; do
  sp record --lines -o "lines.$form" -- /usr/bin/python3 lines.py; expect "--lines, $form" 0 $status
done
stackfold --lines lines.pe >lines.text
for file in lines.svg lines.folded lines.text; do
  grep -q 'leaf:lines.py:2' $file || fail "no lines in $file: $(cat err)"
done
# The command inherits open descriptors.
expect 'open descriptors' kept "$("$PE_SCRIPTS/stackpipe" record -q -o fds.svg -- sh -c 'cat <&3' 3<<<kept 2>/dev/null)"
# A signal to the command alone ends the recording as Ctrl-C does, and nothing is left.
mkdir temporary
for command in record waits heap; do
  TMPDIR=$dir/temporary setsid env --default-signal=INT "$PE_SCRIPTS/stackpipe" $command -o "signal-$command.folded" -- "$PE_WORKLOAD" shares 60 2>err & pid=$!
  until pgrep -P $pid >/dev/null && pgrep -s $pid -x workload >/dev/null; do kill -0 $pid 2>/dev/null || break; sleep 0.1; done
  sleep 0.5
  kill -TERM $pid
  wait $pid
  grep -q 'workload' "signal-$command.folded" || fail "$command, SIGTERM: $(cat err)"
  expect "$command, SIGTERM: processes" '' "$(pgrep -s $pid)"
done
# Ctrl-C ends the command, too.
for command in record waits heap; do
  TMPDIR=$dir/temporary setsid env --default-signal=INT "$PE_SCRIPTS/stackpipe" $command -v -o "keys-$command.folded" -- "$PE_WORKLOAD" shares 60 2>err & pid=$!
  until pgrep -P $pid >/dev/null && pgrep -s $pid -x workload >/dev/null; do kill -0 $pid 2>/dev/null || break; sleep 0.1; done
  sleep 0.5
  kill -INT -- -$pid
  wait $pid; expect "$command, Ctrl-C" 130 $?
  grep -q 'workload' "keys-$command.folded" || fail "$command, Ctrl-C: $(cat err)"
  grep -q 'killed by signal' err && fail "$command, Ctrl-C: $(cat err)"
done
expect 'temporary folders' '' "$(ls -A temporary)"
# While it draws, the second Ctrl-C ends it.
mkdir slow
printf '#!/bin/sh\nexec sleep 60\n' >slow/pe-symbolize
chmod +x slow/pe-symbolize
PATH=$dir/slow:$PATH TMPDIR=$dir/temporary setsid env --default-signal=INT "$PE_SCRIPTS/stackpipe" record -o slow.svg -- "$PE_WORKLOAD" shares 0.1 2>err & pid=$!
until pgrep -s $pid -x sleep >/dev/null; do kill -0 $pid 2>/dev/null || break; sleep 0.1; done
kill -INT $pid
sleep 0.3
kill -0 $pid || fail 'the first Ctrl-C ended the drawing'
kill -INT $pid
wait $pid; expect 'the second Ctrl-C' 130 $?
expect 'the second Ctrl-C: left' '' "$(ls -A temporary)$(compgen -G 'slow.svg*')$(pgrep -s $pid)"

# Running targets; Ctrl-C ends the recording, and the flame graph is drawn.
"$PE_WORKLOAD" shares 60 & target=$!
sp record -F 499 -d 1 -p $target -o d.folded; expect 'a process' 0 $status
grep -q 'fifty' d.folded || fail "a process: $(cat err)"
sp record -F 499 -d 1 -t $target -o e.folded; expect 'a thread' 0 $status
grep -q 'fifty' e.folded || fail "a thread: $(cat err)"
setsid env --default-signal=INT,QUIT "$PE_SCRIPTS/stackpipe" record -p $target -o f.svg 2>err & group=$!
until grep -q 'until Ctrl-C' err && pgrep -g $group -x pe-record >/dev/null; do kill -0 $group 2>/dev/null || break; sleep 0.1; done
sleep 1
kill -INT -- -$group
wait $group; expect 'Ctrl-C' 0 $?
xmllint --noout f.svg || fail "Ctrl-C: no flame graph: $(cat err)"
kill $target

# Memory: the peak, the leaks and the allocations of one run.
sp heap -o heap.svg -- ls
for part in '' -allocations; do
  wrote "heap$part.svg \(.*\)"
  xmllint --noout "heap$part.svg" || fail "heap$part: not well-formed"
done
# A part without bytes has no file, whatever the form.
cc -O0 -x c -o tidy - <<'EOF_C'
#include <stdlib.h>
int main() {
  free(malloc(5000));
  return 0;
}
EOF_C
for suffix in svg folded json pb.gz; do
  sp heap -o "tidy.$suffix" -- ./tidy; expect "no leaks, $suffix: $(cat err)" 0 $status
  expect "no leaks, $suffix: files" "tidy-allocations.$suffix tidy.$suffix" "$(echo tidy*."$suffix")"
  grep -qx "stackpipe: memory that was not freed: none, so tidy-leaks.$suffix was not written" err || fail "no leaks, $suffix: $(cat err)"
done
cc -O0 -x c -o runs - <<'EOF_C'
#include <stdlib.h>
#include <unistd.h>
void* kept;
void keep(void) { kept = malloc(5000); }
int main() {
  for (;; usleep(1000))
    keep();
}
EOF_C
./runs & runs=$!
sp heap -p "$runs" -d 1 -o runs.folded; expect "heap of a running process: $(cat err)" 0 $status
grep -q 'main;keep [0-9]*000$' runs-leaks.folded || fail "heap of a running process: $(cat runs-leaks.folded)"
kill "$runs"
sp heap -q -o heap.pe -- ls
pe-symbolize -q heap.pe | stackfold --event peak-bytes >peak.folded
sp diff -o diff.svg heap.pe heap.pe; expect "two heaps: $(cat err)" 0 $status
grep -qE "^before: $(awk '{ n += $NF } END { print n }' peak.folded | sed ':a; s/\B[0-9]\{3\}\>/,&/; ta') bytes" out || fail "two heaps: $(head -n 2 out)"
# A flame graph holds the profile that it was drawn from, and so does our speedscope file.
printf 'main;fast 30\nmain;slow 70\n' | tee drawn.folded | flamesvg >drawn.svg
stackfold --to speedscope drawn.folded >drawn.json
sp top drawn.folded; mv out wanted
for drawn in drawn.svg drawn.json; do
  sp top "$drawn"; expect "top $drawn: $(cat err)" 0 $status
  cmp -s wanted out || fail "top $drawn: $(cat out)"
  sp diff -o diff.svg "$drawn" drawn.folded; expect "diff $drawn: $(cat err)" 0 $status
done
printf 'main;fast 30\n' | flamesvg --embed none >boxes.svg
sp top boxes.svg; expect 'a flame graph without its profile' 1 $status
grep -q 'boxes.svg: a flame graph without its profile (it was drawn with --embed none' err || fail "boxes: $(cat err)"
# A recording is drawn again as it was at first, in any format; several outputs are the same profile.
sp record -o one.folded -o one.pe -o one.html -o one.json -o one.pb.gz -- "$PE_WORKLOAD" shares 0.3; expect "several outputs: $(cat err)" 0 $status
for drawn in one.html one.json one.pb.gz; do
  sp draw -o again.folded "$drawn"; expect "draw $drawn: $(cat err)" 0 $status
  grep -q 'fifty' again.folded || fail "$drawn: no function of the program"
done
sp draw -o again.folded -o again.svg one.pe; expect "draw a stream: $(cat err)" 0 $status
cmp -s one.folded again.folded || fail "draw: $(diff one.folded again.folded)"
stackfold again.svg | cmp -s - <(grep -v '^#' one.folded) || fail 'draw: the graph has another profile'
sp draw -o late.folded --time -0.1s one.pe
[ "$status" -ne 0 ] || fail 'draw: --time takes no fractions of seconds'
sp draw -o late.folded --time 2000-01-01T00:00,2000-01-01T00:01 one.pe; expect 'draw: a time without samples' 1 $status
[ ! -e late.folded ] || fail 'draw: a file without samples'
sp draw -o one.pe one.pe; expect 'draw: a profile over itself' 2 $status
sp draw -o x.pe one.html; expect 'draw: a stream from a flame graph' 2 $status
sp draw --root tree one.html; expect 'draw: --root of a flame graph' 2 $status
sp draw heap.pe; expect "draw a heap: $(cat err)" 0 $status
number=$(sed -n 's/.*wrote flamegraph-\([0-9]*\).svg (memory at the peak), .*/\1/p' err)
[ -s "flamegraph-$number-leaks.svg" ] || fail "draw a heap: $(cat err)"
# A program is no profile.
sp top "$PE_WORKLOAD"; expect 'a program as a profile' 1 $status
grep -q 'workload: a program, not a profile (record it: stackpipe record ' err || fail "a program: $(cat err)"

# Profiles of any kind can be compared.
printf 'main;fast 50\nmain;slow 50\n' >before.folded
printf 'main;fast 50\nmain;slow 5000\n' >after.folded
sp diff -o diff.svg --fail-over 5% before.folded after.folded; expect 'growth' 3 $status
grep -q 'slow' out || fail "diff: $(cat out err)"
xmllint --noout diff.svg || fail 'diff: not well-formed'
sp diff -o diff.svg c.pe b.folded; expect "a stream and text: $(cat err)" 0 $status
sp diff -o - --fail-over 5% before.folded after.folded; expect 'a check without its table' 2 $status
sp diff -o before.folded before.folded after.folded; expect 'a profile as the output' 2 $status
expect 'a profile as the output' 2 "$(wc -l <before.folded)"
sp diff before.folded nothing; expect 'a profile that is not there' 1 $status
grep -q "^stackpipe: nothing: no such file, and no such run in 'profiles'" err || fail "nothing: $(cat err)"
# Kept runs have names.
sp runs capture -F 499 -- "$PE_WORKLOAD" shares 0.5; expect 'runs capture' 0 $status
sp top latest; expect "top of a run: $(cat err)" 0 $status
grep -q 'fifty' out || fail "top of a run: $(cat out)"
sp runs list; expect 'runs list' 2 "$(wc -l <out)"

# The older command in cargo-flamegraph's form, and pages and checks.
"$PE_SCRIPTS/flamegraph" -o g.svg -F 499 -- "$PE_WORKLOAD" shares 0.3 2>err || fail "flamegraph -o: $(cat err)"
xmllint --noout g.svg || fail 'flamegraph -o: not well-formed'
sp check; expect check 0 $status
grep -q '^perf_event_open: own processes' out || fail "check: $(cat out)"
sp help kill; expect 'a page of another project' 2 $status
MANPAGER='cat' sp help waits; expect help 0 $status
grep -qi 'hotcold' out || fail "help: $(head -n 5 out)"
finish
