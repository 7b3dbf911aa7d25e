#!/bin/bash
# Situations of daily use: closed descriptors, full disks, targets named twice, commands that do not end.
. "$(dirname "$0")/../lib.sh"
samples() { fold "$1" | awk '{ n += $NF } END { print n + 0 }'; }

"$PE_WORKLOAD" shares 60 &
target=$!

# If standard error is closed or full, only messages are lost.
until_used 300 $target pe-record -F 997 -p $target -o "$dir/closed.pe" 2>&-; expect 'status, standard error closed' 0 $?
at_least 'samples, standard error closed' 10 "$(samples "$dir/closed.pe")"
until_used 300 $target pe-record -F 997 -p $target -o "$dir/full.pe" 2>/dev/full; expect 'status, standard error full' 0 $?
at_least 'samples, standard error full' 10 "$(samples "$dir/full.pe")"
mostly_folded() { printf 'a;b 1\n%.0s' {1..20}; echo bad; }
expect 'stackfold, standard error closed' 'a;b 20' "$(mostly_folded | stackfold 2>&-)"
mostly_folded | stackfold >/dev/null 2>/dev/full; expect 'stackfold, standard error full' 0 $?
printf 'a;b 1\n' | stackfold >&- 2>"$dir/err"; expect 'standard output closed' 1 $?
stackfold <&- >/dev/null 2>"$dir/err"; expect 'standard input closed' 1 $?

# The tools report which resource is too low.
(ulimit -v 100000; seq 3000000 | sed 's/$/;x 1/' | stackfold >/dev/null 2>"$dir/err"); expect 'out of memory' 1 $?
expect 'its message' 'stackfold: out of memory' "$(cat "$dir/err")"

# A target that is named twice is recorded once.  A thread's ID is not accepted as a process.
before=$(used_ms $target)
until_used 1000 $target pe-record -p $target,$target -t $target -C 0,0-1,1 -o "$dir/twice.pe" 2>/dev/null
used=$(($(used_ms $target) - before))
at_least 'samples of a target named three times' 10 "$(samples "$dir/twice.pe")"
at_least 'the most samples of it: 99 a second' "$(samples "$dir/twice.pe")" $((used * 99 / 1000 + 20))
"$PE_WORKLOAD" threads 60 &
threads=$!
other=$(tid_of $threads right)
pe-record -p "$other" -d 0.1 -o "$dir/x.pe" 2>"$dir/err"; expect 'a thread as process' 1 $?
expect 'its message' "pe-record: --pid: $other is a thread of process $threads: see --tid" "$(cat "$dir/err")"
kill $threads

# A recording that cannot start does not change an older file.
cp "$dir/full.pe" "$dir/keep.pe"
pe-record -p 4194303 -o "$dir/keep.pe" 2>/dev/null; expect 'no such process' 1 $?
cmp -s "$dir/full.pe" "$dir/keep.pe" || fail 'an older recording was emptied'

# One target ends, the other continues: the recorder sleeps between samples.
sleep 100 & short=$!
(await "$dir/two.pe"; kill $short) &
pe-record -v -p $short,$target -d 2 -o "$dir/two.pe" 2>"$dir/err"
cost=$(sed -n 's/.*own CPU \([0-9.]*\) s.*/\1/p' "$dir/err")
within 'own CPU seconds after a target has ended' 0 "${cost:-9}" 0.2

# The reader of an idle recording ends.
sleep 30 & idle=$!
timeout 5 bash -c "pe-record -p $idle 2>/dev/null | head -c 10 >/dev/null; exit \${PIPESTATUS[0]}"; expect 'reader of an idle target gone' 141 $?
kill $idle

# A command that ignores SIGTERM is still ended.
# shellcheck disable=SC2016 # for the shell that runs it
pe-record -F 997 -o "$dir/trap.pe" -- bash -c 'trap "" TERM; echo $$ >"$1"; exec "$0" shares 60' "$PE_WORKLOAD" "$dir/stubborn" 2>"$dir/err" & recorder=$!
until [ -s "$dir/stubborn" ]; do kill -0 $recorder || break; sleep 0.02; done
stubborn=$(cat "$dir/stubborn")
await_program "$stubborn" workload
while [ "$(used_ms "$stubborn")" -lt 200 ]; do sleep 0.02; done
kill -TERM $recorder; wait $recorder; expect 'stubborn command' 0 $?
grep -qx 'pe-record: the command still runs 2 s after SIGTERM: sent SIGKILL' "$dir/err" || fail "stubborn command: $(cat "$dir/err")"
kill -0 "$stubborn" 2>/dev/null && fail 'the stubborn command was left running'

# A missing file is reported before anything is read.
stackfold "$dir/two.pe" "$dir/none" >"$dir/out" 2>"$dir/err"; expect 'missing second file' 1 $?
[ ! -s "$dir/out" ] || fail 'half an output for a missing file'

# Later stages notice that the recorder was killed, wherever in the stream that was.
pe-record -F 997 -p $target -o "$dir/killed.pe" 2>/dev/null & recorder=$!
until [ "$(stat -c %s "$dir/killed.pe" 2>/dev/null || echo 0)" -gt 20000 ]; do kill -0 $recorder || break; sleep 0.05; done
kill -9 $recorder; wait $recorder 2>/dev/null
pe-symbolize "$dir/killed.pe" 2>"$dir/err" >/dev/null; expect 'a killed recorder' 1 $?
grep -Eq 'cut off|truncated' "$dir/err" || fail "a killed recorder passes for a whole recording: $(cat "$dir/err")"
kill $target
finish
