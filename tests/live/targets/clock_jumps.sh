#!/bin/bash
# The wall clock is set forward and back during recordings.  A library of ours does this; the machine's clock
# is not changed.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
export WALL_CLOCK=$dir/ahead
wall() { LD_PRELOAD=$PE_WALL_CLOCK "$@"; }
set_clock() { echo "$1" >ahead.new && mv ahead.new ahead; }  # SECONDS-AHEAD
day=86400
set_clock $day
now=$(date +%s)
at_least 'the library: seconds ahead' $day $(($(wall date +%s) - now))
set_clock 0
"$PE_WORKLOAD" lazy 600 & target=$!
while :; do sleep 0.01; done & waiter=$!

# while_running SHIFT FILE COMMAND...: sets the clock when the file exists
while_running() {
  local shift=$1 sign=$2 pid
  set_clock 0
  rm -f "$sign"
  wall timeout 60 "${@:3}" 2>err & pid=$!
  until [ -e "$sign" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
  set_clock "$shift"
  wait $pid; status=$?
}
# Recordings last as long as they should: their measured duration is not less, and they end.
for shift in $day -$day; do
  for engine in perf bpf ptrace; do
    can_record --engine $engine 2>/dev/null || { echo "not $engine here"; continue; }
    while_running "$shift" r.pe pe-record -e cpu-clock -F 997 --engine $engine -p $target -d 0.5 -o r.pe; expect "$engine, $shift s: status, $(cat err)" 0 $status
    at_least "$engine, $shift s: seconds" 0.5 "$(sed -nE 's/^[a-z-]+: [0-9]+ (samples?|waits?) in ([0-9.]+) s, .*/\2/p' err)"
  done
  while_running "$shift" r.pe pe-record --engine signal -d 0.5 -o r.pe -- "$PE_WORKLOAD" shares 600; expect "signal, $shift s: status" 0 $status
  at_least "signal, $shift s: seconds" 0.5 "$(sed -nE 's/^[a-z-]+: [0-9]+ (samples?|waits?) in ([0-9.]+) s, .*/\2/p' err)"
  while_running "$shift" r.pe offcpu -p $waiter -d 0.5 -o r.pe; expect "offcpu, $shift s: status" 0 $status
  at_least "offcpu, $shift s: seconds" 0.5 "$(sed -nE 's/^[a-z-]+: [0-9]+ (samples?|waits?) in ([0-9.]+) s, .*/\2/p' err)"
done

uptime_cs() { local up; read -r up _ </proc/uptime; echo "${up/./}"; }
weight() { cat "$@" | awk '{ n += $NF } END { print n + 0 }'; }

# begin_watch FOLDER OPTION...: $watcher is its process
begin_watch() {
  set_clock 0
  LD_PRELOAD=$PE_WALL_CLOCK timeout 60 "$PE_SCRIPTS/profile_run" watch --pid $target --rate 199 --interval 0.3 --output "$@" 2>err & watcher=$!
}
await_files() {  # PATTERN COUNT
  local files=()
  for _ in {1..3000}; do
    mapfile -t files < <(compgen -G "$1")
    [ ${#files[@]} -lt "$2" ] && [ -d "/proc/$watcher" ] || return 0
    sleep 0.02
  done
}
hour_of() { date -d "$(basename "$1" | sed 's/T\(..\)Z.*/ \1:00Z/')" +%s; }

# The clock is set two hours forward, or back, after the first interval.  Each hour has its file, and none is
# removed.  The profiles that wait for a server have the times of their recording, without the change of the
# clock.
for shift in 7200 -7200; do
  begin_watch "w$shift" --push 127.0.0.1:9 --push-name clock
  await_files "w$shift/watch/*Z.folded" 1
  set_clock "$shift"
  await_files "w$shift/watch/*Z.folded" 2
  kill -TERM $watcher
  wait $watcher
  files=("w$shift"/watch/*.folded)
  expect "watch, $shift s: files; $(cat err)" 2 ${#files[@]}
  expect "watch, $shift s: hours between them" 2 $((($(hour_of "${files[-1]}") - $(hour_of "${files[0]}")) / 3600))
  at_least "watch, $shift s: profiles that wait" 2 "$(find "w$shift/watch/spool" -name '*.gz' | wc -l)"
  short=0  # the profile that was being recorded at the end
  for profile in "w$shift"/watch/spool/*.gz; do
    IFS=- read -r from until _ <<<"$(basename "$profile")"
    [ $((until - from)) -ge 300 ] || short=$((short + 1))
    at_least "$profile: ms" 1 $((until - from))
    at_least "$profile: no more than a minute" $((until - from)) 60000
  done
  at_least "watch, $shift s: one profile of less than its 300 ms" $short 1
done

# --duration is not affected.
for shift in $day -$day; do
  began=$(uptime_cs)
  begin_watch "d$shift" --duration 2
  await_files "d$shift/watch/segments/*.pe" 1
  set_clock "$shift"
  wait $watcher; expect "--duration, $shift s: status" 0 $?
  at_least "--duration, $shift s: hundredths of a second" 200 $(($(uptime_cs) - began))
done

# The clock was years ahead, left files behind, and was set back.  watch keeps the new data, removes older
# files, and reports this.
mkdir -p b/watch
for hour in 2001-01-01T00 2099-01-01T00 2099-01-01T01; do echo 'a 1' >"b/watch/${hour}Z.folded"; done
begin_watch b --duration 0.3 --keep 3
wait $watcher; expect 'set back: status' 0 $?
expect 'set back: lines that say so' 1 "$(grep -c ' watch: the clock was set back: files of future hours, from b/watch/2099-01-01T00Z.folded on' err)"
expect 'set back: the first of the hours to come goes' '2001-01-01T00Z.folded 2099-01-01T01Z.folded' \
  "$(cd b/watch && echo 2001* 2099*)"
at_least 'set back: what was recorded now' 1 "$(weight b/watch/2[0-9][1-8]*.folded)"
kill $target
finish
