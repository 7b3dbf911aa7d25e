#!/bin/bash
# A stage of a running pipeline is killed at some moment.  The others end by themselves, without a crash, and the
# readers of incomplete data report it.
# Usage: killed_stages.sh [ROUNDS]
. "$(dirname "$0")/../lib.sh"
rounds=${1:-12}
stages=(pe-record pe-symbolize stackfold flamesvg)
RANDOM=1  # the same moments in each run

# stage NUMBER COMMAND...: writes its process ID, status and messages to files
stage() {
  # shellcheck disable=SC2016 # for the shell that runs it
  bash -c 'echo $$ >"$0"; exec "$@"' "$dir/pid.$1" "${@:2}" 2>"$dir/err.$1"
  echo $? >"$dir/status.$1"
}
status() { cat "$dir/status.$1" 2>/dev/null; }

"$PE_WORKLOAD" threads 600 &
target=$!
for ((round = 0; round < rounds; round++)); do
  victim=$((round % 4)) when=$((RANDOM % 15))
  rm -f "$dir"/{pid,status,err}.*
  {
    stage 0 pe-record -F 997 -p $target -d 30 | stage 1 pe-symbolize | stage 2 stackfold | stage 3 flamesvg >"$dir/out.svg"
    : >"$dir/done"
  } 2>/dev/null &
  for _ in $(seq 200); do [ -s "$dir/pid.3" ] && [ -s "$dir/pid.0" ] && break; sleep 0.05; done
  sleep "0.$(printf %02d $((20 + 5 * when)))"
  label="round $round: ${stages[victim]} killed"
  kill -KILL "$(cat "$dir/pid.$victim")"
  # Stages before the victim notice it at their next write.  The recorder, which should record for longer,
  # gets a signal.
  [ "$victim" = 0 ] || { sleep 0.5; kill -INT "$(cat "$dir/pid.0")" 2>/dev/null; }
  for _ in $(seq 600); do [ -e "$dir/done" ] && break; sleep 0.05; done
  [ -e "$dir/done" ] || { fail "$label: the others do not end: $(pgrep -P $$ -a)"; pkill -KILL -f "$dir/pid"; }
  rm -f "$dir/done"
  expect "$label: its status" 137 "$(status "$victim")"
  for number in 0 1 2 3; do
    [ $number != $victim ] || continue
    case $(status $number) in
      0) ;;
      1 | 2) [ -s "$dir/err.$number" ] || fail "$label: ${stages[number]} fails without a word" ;;
      141) [ $number -lt $victim ] || fail "$label: ${stages[number]} behind it: 141" ;;
      *) fail "$label: ${stages[number]}: $(status $number), $(cat "$dir/err.$number")" ;;
    esac
  done
  # pe-symbolize reads a recording without an end as far as possible, and reports this.  It is empty if the
  # recorder had not begun.
  if [ $victim = 0 ]; then
    grep -qE 'end|cut|truncated|stdin: empty' "$dir/err.1" || fail "$label: pe-symbolize does not say that its input is not whole: $(cat "$dir/err.1")"
  fi
  if [ $victim = 1 ] && [ "$(status 3)" != 2 ]; then  # 2: before its first byte
    grep -qE 'end|cut|truncated' "$dir/err.2" || fail "$label: stackfold does not say that its input is not whole: $(cat "$dir/err.2")"
  fi
  # flamesvg must not draw missing data as a flame graph that looks complete.
  if [ $victim = 2 ]; then
    expect "$label: flamesvg without stacks" 2 "$(status 3)"
  elif [ $victim != 3 ] && [ "$(status 3)" = 0 ]; then
    xmllint --noout "$dir/out.svg" || fail "$label: the picture"
  fi
done
kill $target
finish
