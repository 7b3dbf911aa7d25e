#!/bin/bash
# Targets are named by their program, with the processes that they have started.  A script starts recorders in
# the background.
. "$(dirname "$0")/../lib.sh"
cp "$PE_WORKLOAD" "$dir/pe-named"
"$dir/pe-named" shares 600 & one=$!
"$dir/pe-named" shares 600 & two=$!
await_program $one pe-named
await_program $two pe-named
# processes STREAM: prints the processes that have samples
processes() { pe-symbolize -q "$1" | stackfold --pid 2>/dev/null | sed -E 's/^.*-([0-9]+);.*/\1/; s/;.*//' | sort -un | tr '\n' ' '; }
# until_both STREAM COMMAND...: records longer and longer, until both processes have samples.  On a busy
# machine, one may get no CPU time.
until_both() {
  for seconds in 0.5 2 8; do
    "${@:2}" -d $seconds -o "$1" 2>"$dir/err" || fail "${*:2}: $(cat "$dir/err")"
    [ "$(processes "$1")" != "$one $two " ] || return
  done
  fail "${*:2}: $(processes "$1"), not $one $two"
}
until_both "$dir/r.pe" pe-record -e cpu-clock -F 499 -p pe-named
pe-record -p pe-nobody -d 0.1 -o "$dir/x.pe" 2>"$dir/err"; expect 'no such name: status' 1 $?
expect 'no such name' "pe-record: --pid: no process is named 'pe-nobody'" "$(cat "$dir/err")"
kill $one $two

# The first process sleeps; the processes that it started before are also recorded.
# shellcheck disable=SC2016 # the program is to expand it
sh -c '"$0" shares 600 & echo $! >"$1.one"; (: sub; "$0" shares 600 & echo $! >"$1.two"; wait) & wait' "$dir/pe-named" "$dir/child" & parent=$!
await "$dir/child.one"; await "$dir/child.two"
until [ -s "$dir/child.one" ] && [ -s "$dir/child.two" ]; do sleep 0.02; done
one=$(cat "$dir/child.one") two=$(cat "$dir/child.two")
[ "$one" -lt "$two" ] || { three=$one one=$two two=$three; }
await_program "$one" pe-named
await_program "$two" pe-named
until_both "$dir/c.pe" pe-record -e cpu-clock -F 499 -p $parent --children
pe-record --children -a -o "$dir/x.pe" 2>"$dir/err"; expect '--children alone: status' 2 $?
sh -c '(while :; do sleep 0.01; done) & wait' & naps=$!
until pgrep -P $naps >/dev/null; do sleep 0.02; done
offcpu -q -p $naps --children -d 1 -o "$dir/o.pe" 2>"$dir/err"; expect "offcpu --children: status, $(cat "$dir/err")" 0 $?
kill "$(pgrep -P $naps)" $naps

# A shell without job control starts background jobs with SIGINT ignored.
for recorder in 'pe-record -e cpu-clock -F 499' 'offcpu --preempted'; do
  rm -f "$dir/b.pe"
  # shellcheck disable=SC2086 # options
  (trap '' INT; exec $recorder -p "$one" -o "$dir/b.pe") 2>"$dir/err" & job=$!
  await_text . "$dir/b.pe"
  kill -INT $job
  timeout 60 tail --pid=$job -f /dev/null || { fail "$recorder: SIGINT does not end it"; kill -KILL $job; }
  wait $job
  pe-symbolize -q "$dir/b.pe" >/dev/null || fail "$recorder: the stream is cut off"
done
kill "$one" "$two" $parent
finish
