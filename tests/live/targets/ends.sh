#!/bin/bash
# A recording leaves a complete stream, however it ends.
. "$(dirname "$0")/../lib.sh"

whole() {  # LABEL STREAM
  pe-symbolize "$2" >/dev/null 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
  grep -q 'cut off\|truncated' "$dir/err" && fail "$1: $(cat "$dir/err")"
  at_least "$1: samples" 10 "$(fold "$2" | awk '{ n += $NF } END { print n + 0 }')"
}

"$PE_WORKLOAD" shares 30 & target=$!
(await "$dir/killed.pe"; await_used 200 $target; kill -9 $target) &
timeout 20 pe-record -F 997 -p $target -o "$dir/killed.pe" 2>/dev/null; expect 'target killed' 0 $?
whole 'target killed' "$dir/killed.pe"

"$PE_WORKLOAD" shares 30 & target=$!
timeout -s INT 1 pe-record -F 997 -p $target -o "$dir/int.pe" 2>/dev/null; expect 'SIGINT' 124 $?
whole SIGINT "$dir/int.pe"
timeout -s TERM --preserve-status 1 pe-record -F 997 -p $target -o "$dir/term.pe" 2>/dev/null; expect 'SIGTERM, own status' 0 $?
whole SIGTERM "$dir/term.pe"

# Ctrl-C reaches the whole pipeline, and the flame graph is still drawn.
timeout -s INT 1 bash -c "trap : INT; pe-record -F 997 -p $target | pe-symbolize | stackfold | flamesvg" >"$dir/ctrl-c.svg" 2>/dev/null
grep -q '</svg>' "$dir/ctrl-c.svg" || fail 'Ctrl-C at the pipeline leaves no picture'
grep -q 'work' "$dir/ctrl-c.svg" || fail 'Ctrl-C at the pipeline leaves an empty picture'

# The reader ends: the recorder stops without a message.
pe-record -F 997 -p $target 2>"$dir/err" | head -c 1000 >/dev/null
expect 'closed pipe' 141 "${PIPESTATUS[0]}"
grep -v 'no hardware counters' "$dir/err" && fail 'a message about a closed pipe'
kill $target

# The recorder is killed: later stages notice that the end is missing.
"$PE_WORKLOAD" shares 30 & target=$!
pe-record -F 997 -p $target -o "$dir/dead.pe" 2>/dev/null & recorder=$!
written() { fold "$dir/dead.pe" 2>/dev/null | awk '{ n += $NF } END { print n + 0 }'; }
await "$dir/dead.pe"
until [ "$(written)" -ge 120 ]; do kill -0 $recorder || break; sleep 0.1; done
kill -9 $recorder; kill $target
size=$(stat -c %s "$dir/dead.pe")
head -c $((size - 9)) "$dir/dead.pe" | pe-symbolize 2>"$dir/err" | stackfold >"$dir/dead.folded" 2>/dev/null
grep -Eq 'truncated at byte|cut off' "$dir/err" || fail "a cut stream passes for whole: $(cat "$dir/err")"
at_least 'samples before the cut' 100 "$(awk '{ n += $NF } END { print n + 0 }' "$dir/dead.folded")"

# -d also ends a command, and the recording is a success.
cp "$PE_WORKLOAD" "$dir/workload"
timeout 20 pe-record -F 997 -d 0.5 -o "$dir/d.pe" -- "$dir/workload" shares 60 2>"$dir/said"; expect 'duration' 0 $?
whole duration "$dir/d.pe"
grep -qx 'pe-record: stopped the command after 0.5 s (-d): sent SIGTERM' "$dir/said" || fail "duration: $(cat "$dir/said")"
# The command must get the CPU in that second, also beside much load.
timeout 20 pe-record -F 997 -d 1 -o "$dir/d.pe" -- sh -c 'trap "" TERM; while :; do :; done' 2>"$dir/said"; expect 'duration, SIGKILL' 0 $?
expect 'duration, SIGKILL' 'pe-record: the command still runs 2 s after SIGTERM: sent SIGKILL' "$(tail -1 "$dir/said")"
timeout 20 pe-record -F 997 -d 20 -o "$dir/d.pe" -- "$dir/workload" shares 0.2 2>"$dir/said"; expect 'ends before its duration' 0 $?
grep 'the command' "$dir/said" && fail 'a signal is announced that nobody sent'
pgrep -f "^$dir/workload" >/dev/null && fail 'the command was left running'
finish
