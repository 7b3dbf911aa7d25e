#!/bin/bash
# hotcold shows running and waiting of one program in one flame graph; profile_run keeps such recordings as
# runs.
. "$(dirname "$0")/../lib.sh"
cat >"$dir/mixed" <<'PY'
import os, sys, time
def work(ms):
    end = time.process_time() + ms / 1000
    while time.process_time() < end: pass
def rest(ms):
    time.sleep(ms / 1000)
for _ in range(4):
    work(100)
    rest(150)
sys.exit(int(sys.argv[1]))
PY
command -v python3 >/dev/null || skip 'python3 is not installed'
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')  # not a wrapper script
# The sum in milliseconds of the stacks that wait, and of those that run.
waiting() { awk '/nanosleep.*;\[sleep\]_\[o\] / { n += $NF } END { printf "%.0f\n", n / 1000 }' "$1"; }
running() { awk '!/^# |_\[o\] / { n += $NF } END { printf "%.0f\n", n / 1000 }' "$1"; }
# A thread that is preempted on its way to sleep does not count as waiting until it sleeps.  How long this
# takes depends on other programs.
check() {  # LABEL FOLDED
  at_least "$1: ms waiting, of 600" 500 "$(waiting "$2")"
  at_least "$1: ms running" 350 "$(running "$2")"  # samples at 499 Hz of 400 ms and the start
}

mkdir "$dir/kept"
"$PE_SCRIPTS/hotcold" -F 499 --keep "$dir/kept" "$dir/a.svg" -- "$python" "$dir/mixed" 3 2>"$dir/err"
expect 'status of the command' 3 $?
check command "$dir/kept/stacks.folded"
xmllint --noout "$dir/a.svg" || fail 'not well-formed'
for text in 'on CPU' 'waiting' 'sleep' ' us, ' 'class="times"'; do grep -q "$text" "$dir/a.svg" || fail "not in the picture: $text"; done
expect 'what is kept' 'stacks.folded waits.pe' "$(cd "$dir/kept" && echo *)"
# The summary has the times that the program knows: it ran in one thread, so its CPU time is exact, too.
summary() { sed -n "s/^[a-z]*: wall time .* $1 \([0-9.]*\) s.*/\1/p" "$dir/err"; }
at_least 'summary: CPU time' 0.4 "$(summary CPU)"
at_least 'summary: sleep' 0.6 "$(summary sleep)"
grep -qE '^hotcold: parallelism: 1\.00 threads while any ran, 0\.[0-9]* over all time$' "$dir/err" || fail 'no parallelism'
grep -qE '^hotcold: largest reasons to wait: .*: .* [0-9]*\.[0-9]{3} s' "$dir/err" || fail 'no reasons to wait'
[ "$failed" = 0 ] || cat "$dir/err"

# A stream has names; a table of it has the program's functions, with both of their times.
"$PE_SCRIPTS/stackpipe" waits -q -o "$dir/s.pe" -- "$python" "$dir/mixed" 0 2>"$dir/err" || fail "a stream: $(cat "$dir/err")"
"$PE_SCRIPTS/stackpipe" top -n 0 "$dir/s.pe" >"$dir/table"
grep -q ' on CPU *waiting  function$' "$dir/table" || fail 'no column of waits'
grep -q ' rest: sleep$' "$dir/table" || fail "no wait of the script: $(head -5 "$dir/table")"
"$PE_SCRIPTS/stackpipe" record --elapsed -o "$dir/clock.svg" -- "$python" "$dir/mixed" 0 2>"$dir/err" || fail 'record --elapsed'
grep -q 'class="times"' "$dir/clock.svg" || fail 'record --elapsed: no timeline'
at_least 'record --elapsed: sleep in the summary' 0.6 "$(summary sleep)"
grep -qE '^stackpipe: parallelism: 1\.00 threads while any ran' "$dir/err" || fail "record --elapsed: no parallelism: $(cat "$dir/err")"
grep -q '^stackpipe: largest reasons to wait: ' "$dir/err" || fail 'record --elapsed: no reasons to wait'
"$PE_SCRIPTS/stackpipe" record --elapsed -q -o "$dir/clock.folded" -- "$python" "$dir/mixed" 0 2>"$dir/err" || fail 'record --elapsed -q'
expect 'messages of record --elapsed -q' '' "$(cat "$dir/err")"

"$python" "$dir/mixed" 0 &
"$PE_SCRIPTS/hotcold" -d 2 "$dir/b.svg" -p $! 2>"$dir/err"; expect 'a process' 0 $?
xmllint --noout "$dir/b.svg" || fail 'a process: not well-formed'
wait
mkdir "$dir/interrupted"
setsid env --default-signal=INT,QUIT "$PE_SCRIPTS/hotcold" --keep "$dir/interrupted" "$dir/c.svg" -- "$PE_WORKLOAD" shares 60 2>"$dir/err" & group=$!
until compgen -G "$dir/interrupted/.*/waits.pe" >/dev/null; do kill -0 $group 2>/dev/null || break; sleep 0.1; done
until pe-symbolize -q "$dir"/interrupted/.*/waits.pe 2>/dev/null | stackfold 2>/dev/null | grep -q .; do kill -0 $group 2>/dev/null || break; sleep 0.1; done
kill -INT -- -$group
wait $group
xmllint --noout "$dir/c.svg" || fail "Ctrl-C: no picture: $(cat "$dir/err")"
"$PE_SCRIPTS/hotcold" "$dir/d.svg" -- "$dir/none" 2>/dev/null; expect 'a command that is not there' 127 $?
# The first wait is recorded: the command starts only when the recorder records.
for _ in 1 2 3; do
  "$PE_SCRIPTS/hotcold" "$dir/first.svg" -- sleep 0.3 2>"$dir/err"; expect 'sleep' 0 $?
  at_least 'seconds of the first wait' 0.3 "$(sed -n 's/^hotcold: wall time .* sleep \([0-9.]*\) s.*/\1/p' "$dir/err")"
done
# If a signal ends the command, the recorder reports it; the shell must not print a message.
"$PE_SCRIPTS/hotcold" "$dir/first.svg" -- sh -c 'kill -SEGV $$' 2>"$dir/err"; expect 'a crash' 139 $?
expect 'lines that no tool has written' '' "$(grep -vE '^[a-z-]+: ' "$dir/err")"
"$PE_SCRIPTS/hotcold" -d 2 "$dir/first.svg" -- "$PE_WORKLOAD" shares 60 2>"$dir/err"; expect 'a command that outlives the time' 0 $?
for wrong in 0 0.0 x -1 1e3; do
  "$PE_SCRIPTS/hotcold" -d "$wrong" "$dir/d.svg" -- true 2>/dev/null; expect "duration $wrong" 2 $?
done
"$PE_SCRIPTS/hotcold" "$dir/d.svg" 2>/dev/null; expect 'no command' 2 $?
for script in hotcold flamegraph merge_fleet; do
  "$PE_SCRIPTS/$script" $'--\e]0;x\a\u202ea' 2>"$dir/err"; expect "$script: an odd option" 2 $?
  ! LC_ALL=C grep -q $'[\e\a\xe2]' "$dir/err" || fail "$script prints what steers terminals: $(cat -v "$dir/err")"
done
"$PE_SCRIPTS/hotcold" "$dir/e.svg" -p 999999999 2>/dev/null; expect 'no such process' 125 $?
[ ! -e "$dir/e.svg" ] || fail 'a picture of nothing'

# profile_run makes one run for each mode.  Its report names the functions that wait, not the scheduler.  Paths
# in a folder of others go through descriptors.
mkdir -m 777 "$dir/runs"
for mode in offcpu hotcold; do
  run=$("$PE_SCRIPTS/profile_run" capture --mode $mode --output "$dir/runs" -- "$python" "$dir/mixed" 0 2>"$dir/err") || fail "$mode: $(cat "$dir/err")"
  at_least "$mode: ms waiting, of 600" 500 "$(awk '/nanosleep/ { n += $NF } END { printf "%.0f\n", n / 1000 }' "$run/stacks.folded")"
  grep -q '^counts  *microseconds' "$run/report.txt" || fail "$mode: no unit in the report"
  grep -qE '^ *[0-9.]+% .* schedule' "$run/report.txt" && fail "$mode: the scheduler is a hot spot"
  grep -q '"unit": "us"' "$run/meta.json" || fail "$mode: no unit in $run/meta.json"
  xmllint --noout "$run/flame.svg" || fail "$mode: not well-formed"
done
# A run of a program that only waits counts as sampled.
idle=$("$PE_SCRIPTS/profile_run" capture --mode hotcold --output "$dir/idle" -- sleep 0.3 2>"$dir/err") || fail "sleep: $(cat "$dir/err")"
grep -qE '"samples": [1-9]' "$idle/meta.json" || fail "nothing counted in $(cat "$idle/meta.json")"

# If hotcold is killed, neither the recorder nor the command goes on.
mkdir "$dir/fake"
printf '#!/bin/sh\nexec sleep 100\n' >"$dir/fake/pe-record"  # never starts the recording
chmod +x "$dir/fake/pe-record"
gone() {  # LABEL PID...
  for pid in "${@:2}"; do
    for _ in {1..200}; do kill -0 "$pid" 2>/dev/null || continue 2; sleep 0.05; done
    fail "$1: still there: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    kill -9 "$pid"
  done
}
PATH=$dir/fake:$PATH "$PE_SCRIPTS/hotcold" "$dir/k.svg" -- touch "$dir/began" 2>/dev/null & script=$!
until [ "$(pgrep -c -P $script)" -ge 1 ]; do kill -0 $script 2>/dev/null || break; sleep 0.05; done
mapfile -t children < <(pgrep -P $script)
kill -9 $script; wait $script 2>/dev/null
gone 'killed before the command began' "${children[@]}"
[ ! -e "$dir/began" ] || fail 'a command that was held has begun'
sleep 100 & target=$!
mkdir "$dir/killed"
"$PE_SCRIPTS/hotcold" --keep "$dir/killed" "$dir/k.svg" -p $target 2>/dev/null & script=$!
until compgen -G "$dir/killed/.*/waits.pe" >/dev/null; do kill -0 $script 2>/dev/null || break; sleep 0.05; done
mapfile -t children < <(pgrep -P $script -x pe-record)
kill -9 $script; wait $script 2>/dev/null
expect 'recorders' 1 ${#children[@]}
gone 'killed while it recorded' "${children[@]}"
kill -0 $target || fail 'the target was ended'
kill $target

expect 'stream of hotcold' named.pe.gz "$(cd "$run" && echo *.gz)"
"$PE_SCRIPTS/profile_run" diff --output "$dir/runs" --before "$run" --after "$run" >"$dir/out" 2>&1 || fail "diff of times: $(cat "$dir/out")"
finish
