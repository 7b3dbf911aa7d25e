#!/bin/bash
# Programs print false figures and leave processes behind, disks are full, and files are devices or links.  No
# data is lost, no figure is forged.
. "$(dirname "$0")/../lib.sh"
pr() { "$PE_SCRIPTS/profile_run" "$@"; }
has() { grep -qF -e "$2" "$3" || fail "$1: no '$2' in $(cat "$3")"; }  # LABEL TEXT FILE
member() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1/meta.json" "$2"; }
cd "$dir" || exit 1

# The program prints a false closing line of the recorder.  It leaves a process behind that keeps its standard
# error open.
# shellcheck disable=SC2016 # the program is to expand it
liar='echo "pe-record: 007 samples, 00 lost, 1 % of 1.2.3 s;" >&2; setsid sleep 60 >/dev/null & echo $! >left; exec -a lying "$0" shares 0.3'
run=$(timeout 60 "$PE_SCRIPTS/profile_run" capture --output r --duration 007 -- bash -c "$liar" "$PE_WORKLOAD" 2>err)
expect 'a process left behind' 0 $?
kill -0 "$(cat left)" || fail 'what was left behind is gone'
kill "$(cat left)"
has 'what the program says' 'pe-record: 007 samples' err
! grep -q 'pe-record: 007' "$run/messages.txt" || fail "what the program says is taken for the recorder's: $(cat "$run/messages.txt")"
expect samples "$(awk '{ sum += $NF } END { print sum }' "$run/stacks.folded")" "$(member "$run" samples)"
expect 'seconds asked' 7 "$(member "$run" seconds_asked)"
expect 'functions that bash exports' odd "$(env 'BASH_FUNC_odd%%=() { :; }' "$PE_SCRIPTS/profile_run" capture --output odd -- bash -c 'declare -F odd' 2>&1 >/dev/null | grep -x odd)"

# The disk fills up: a limit on the size of files fails the same calls.
(ulimit -f 24; trap '' XFSZ; pr capture --output full -- "$PE_WORKLOAD" shares 0.1 >out 2>err; expect 'a full disk' 125 $?; finish) || failed=1
has 'a full disk' 'the run could not be written; the recording is kept in full/.capture-' err
expect 'what is kept' 'messages.txt raw.pe' "$(cd full/.capture-* && echo *)"

# profile_run writes to devices, pipes and descriptors in place, so they stay.  It replaces a link to a file.
mkfifo pipe
# The test makes its own null device, because others need the system's.
if ! { mknod null c 1 3 && true >null; } 2>/dev/null; then
  rm -f null
  ln -s /dev/null null
fi
kind=$(stat -c %F null)
for file in /dev/stdout null; do
  "$PE_SCRIPTS/flamegraph" "$file" -- "$dir/none" >out 2>&1; expect "flamegraph $file: nothing recorded" 127 $?
  "$PE_SCRIPTS/flamegraph" "$file" -- "$PE_WORKLOAD" shares 0.3 >out 2>err; expect "flamegraph $file" 0 $?
done
cat pipe >out & "$PE_SCRIPTS/flamegraph" pipe -- "$PE_WORKLOAD" shares 0.3 2>err; wait $!
xmllint --noout out || fail 'a pipe: no picture'
echo precious >precious
ln -s precious link
expect 'a link, nothing recorded' 127 "$("$PE_SCRIPTS/flamegraph" link -- "$dir/none" 2>/dev/null; echo $?)"
expect 'a link, nothing recorded' precious "$(cat link)"
"$PE_SCRIPTS/flamegraph" new.svg -- "$dir/none" 2>/dev/null
if ! [ -L /dev/stdout ] || [ "$kind" != "$(stat -c %F null)" ] || ! [ -p pipe ] || ! [ -L link ]; then fail 'a file that was there before is gone'; fi
[ ! -e new.svg ] || fail 'an empty picture stays'

# sed and rm must not take paths and names that start with "-" for options.
mkdir -- '-ew pwned'
cp -r -- "$run" '-ew pwned/'
pr list --output '-ew pwned' >out || fail 'a folder with a dash: status'
expect 'lines of list' 2 "$(wc -l <out)"
[ ! -e pwned ] || fail 'a path was taken for an option'

# Runs that started in the same second keep their order.
for name in 2026-01-02T03-04-04Z 2026-01-02T03-04-04Z-2 2026-01-02T03-04-04Z-10 2026-01-02T03-04-05Z; do cp -r "$run" "order-$name"; done
mkdir order
for name in order-*; do mv "$name" "order/${name#order-}"; done
expect 'order of runs' '2026-01-02T03-04-04Z 2026-01-02T03-04-04Z-2 2026-01-02T03-04-04Z-10 2026-01-02T03-04-05Z' \
  "$(pr list --output order | awk 'NR > 1 { print $1 }' | xargs)"

# The files and the name of a run may hold anything.
hostile=r/$'2026-01-01T00-00-00Z\e[31m'
cp -r "$run" "$hostile"
sed -i 's/^  "samples": .*/  "samples": "<b>1 2<\/b>",/; s/^  "mode": .*/  "mode": "\x1b[1m",/' "$hostile/meta.json"
pr list --output r >out
! grep -q $'\e' out || fail 'list prints control characters'
expect 'figures that are none' '-' "$(awk 'NR == 2 { print $3 }' out)"
pr ci --shares --output r --baseline "$run" --run "$hostile" >out 2>err
! grep -q -e '<b>' -e $'\e' out || fail 'ci prints what it read'
pr trend --output r $'x\xef\xbf\xbf\xef\xbf\xbe' >/dev/null 2>&1; expect 'trend of nothing' 1 $?
printf 'main;x\xef\xbf\xbf\xef\xbf\xbe 5\n' >>"$hostile/stacks.folded"
echo precious >"$dir/precious"
ln -sf "$dir/precious" r/trend.svg.new
pr trend --output r $'x\xef\xbf\xbf\xef\xbf\xbe' >out || fail "trend: $(cat out)"
xmllint --noout r/trend.svg || fail 'trend: not well-formed'
expect 'a file beside the picture' precious "$(cat precious)"
expect 'temporary files' '' "$(find r -regex '.*\.[0-9A-Za-z][0-9A-Za-z][0-9A-Za-z][0-9A-Za-z][0-9A-Za-z][0-9A-Za-z]' ! -name '*.folded')"

# The flame graph is written to links, descriptors and devices.
echo precious >linked.svg
ln -sf linked.svg picture
for file in picture /dev/stdout null; do
  pr trend --output r --svg $file $'x\xef\xbf\xbf\xef\xbf\xbe' >out || fail "trend --svg $file"
  pr flamegraph --output r --run "$run" --svg $file >out || fail "flamegraph --svg $file"
done
if [ -L picture ] || ! [ -L /dev/stdout ] || [ "$kind" != "$(stat -c %F null)" ]; then fail 'a device is replaced, or a link is not'; fi
xmllint --noout picture || fail 'in place of a link: no picture'
expect 'the file that the link led to' precious "$(cat linked.svg)"

# Two watches write to the same folder.
"$PE_WORKLOAD" lazy 20 &
target=$!
pr watch --output w --pid $target --interval 1 --duration 4 2>first &
until compgen -G 'w/watch/.chunk-*' >/dev/null || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
pr watch --output w --pid $target --duration 1 2>err; expect 'a second one' 1 $?
has 'a second one' 'another profile_run is watching here' err
wait $!; expect 'the first one' 0 $?
pr watch --output w --pid $target --interval 0.5 --duration 0.5 2>err; expect 'after the first one' 0 $?
kill $target
expect 'left in the folder' '' "$(find w -name '.*')"
finish
