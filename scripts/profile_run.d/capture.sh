#!/bin/bash
# Recording: from a workload to a folder that has everything.
# shellcheck disable=SC2034,SC2154 # names of other parts of the script

draft=  # the run that is being made
apart=  # the descriptor that is the program's standard error

# What is to be recorded, as arguments of a recorder in `target` and as text in `what`.
read_target() {
  if [ ${#rest[@]} -gt 0 ]; then
    [ ${#workload[@]} -eq 0 ] || usage_error '--workload, --: only one of them'
    workload=("${rest[@]}")
  fi
  local given=0
  [ ${#workload[@]} -eq 0 ] || given=$((given + 1))
  [ -z "$pid" ] || given=$((given + 1))
  [ "$given" -le 1 ] || usage_error '--workload, --pid: only one of them'
  if [ "$mode" = system ]; then
    [ "$given" -eq 0 ] || usage_error '--mode system: records everything, not --workload or --pid'
    target=(-a) what='the whole system'
  elif [ -n "$pid" ]; then
    [ "$mode" != heap ] || usage_error '--mode heap: traces a program that it starts, not --pid'
    target=(-p "$pid") what="process $pid ($(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | head -c 200))"
    what=${what/ )/)}
  elif [ ${#workload[@]} -gt 0 ]; then
    printf -v what '%q ' "${workload[@]}"
    what=${what% } target=(-- "${workload[@]}")
  else
    usage_error 'capture: --workload, --pid or a program behind -- is missing'
  fi
}

# Lets the program write to our standard error and not to the recorder's: what a program says is not to be taken for
# the recorder's figures, and what it leaves running is not to be waited for.  A shell of a fraction of a millisecond
# moves the descriptor, and is the program from then on.  What cannot be executed goes to the recorder as it is.
keep_apart() {
  local program number shell=/bin/sh
  program=$(PATH=$users_path type -P -- "${workload[0]}") && [ -n "$program" ] && [ -e "/proc/$BASHPID/fd/2" ] || return 0
  # dash, which starts sooner, takes variables away whose names it could not have: functions that bash exports.
  ! env -0 | grep -zvE '^[A-Za-z_][A-Za-z0-9_]*=' >/dev/null || shell=$BASH
  for number in 9 8 7 6 5 4 3; do  # dash knows descriptors of one digit
    [ ! -e "/proc/$BASHPID/fd/$number" ] || continue
    # With --work, what it prints there is looked through, too.
    if [ -n "$work_regex" ]; then eval "exec $number>>\"\$draft/.output\""; else eval "exec $number>&2"; fi
    # shellcheck disable=SC2016 # of the shell that is started
    target=(-- "$shell" -c 'exec "$@" 2>&'"$number $number>&-" sh "${workload[@]}")
    apart=$number
    return
  done
}

# The draft's own name is of no use to a reader of messages, nor that of a picture that moves yet.
clean_messages() {
  local messages
  messages=$(head -c 65536 -- "$draft/messages.txt" | tr -d '\0' | grep -v '^hotcold: .*/flame\.svg$')
  printf '%s' "${messages:+${messages//"$draft/"/}$'\n'}" >"$draft/messages.txt"
}

# What the tools told of the recording, and of names.
read_messages() {
  local named
  read_closing_lines
  named=$(grep '^pe-symbolize: .* frames without a name' "$draft/messages.txt" | tail -n 1)
  unnamed=$(plain_number "$(sed -n 's/.*; \([0-9]*\) of [0-9]* frames without a name.*/\1/p' <<<"$named")")
  frames=$(plain_number "$(sed -n 's/.* of \([0-9]*\) frames without a name.*/\1/p' <<<"$named")")
  event=cycles
  ! grep -q 'sampling cpu-clock' "$draft/messages.txt" || event=cpu-clock
  case $recorder in malloctrace) event=alloc-bytes ;; offcpu) event=offcpu ;; hotcold) event=cpu-clock,offcpu ;; esac
  clean_messages || return
  counted=$(awk '{ sum += $NF } END { printf "%.0f\n", sum }' "$draft/stacks.folded")
  samples=${samples:-$counted} lost=${lost:-0} took=${took:-0} unnamed=${unnamed:-0}
}

write_meta() {  # STAMP
  local separator='' argument arguments=''
  for argument in "${workload[@]}"; do
    arguments+=$separator$(json_text "$argument")
    separator=', '
  done
  cat <<END
{
  "format": 1,
  "date": "$1",
  "mode": "$mode",
  "workload": $(json_text "$what"),
  "arguments": [$arguments],
  "pid": ${pid:-null},
  "exit_status": ${status:-null},
  "interrupted": ${interrupted:-false},
  "rate_hz": $hz,
  "event": "$event",
  "seconds_asked": $seconds,
  "seconds": $took,
  "unit": "$(unit_of "$mode" | grep . || echo samples)",
  "samples": $samples,
  "lost": $lost,
  "work": ${work_done:-null},
  "frames": ${frames:-null},
  "frames_without_name": $unnamed,
  "machine": $(json_text "$(uname -srm)"),
  "version": $(json_text "$(pe-record --version)"),
  "baseline": $([ -n "$baseline_folder" ] && json_text "$(run_name "$baseline_folder")" || printf null)
}
END
}

# The recording itself.  Ctrl-C reaches the recorder, which then ends in good order, and this script, which
# goes on; from then on it does not listen, so that a second one leaves a whole run as well.
record() {
  local limit=()
  [[ $seconds =~ ^0*(\.0*)?$ ]] || limit=(-d "$seconds")
  interrupted=
  [ ${#workload[@]} -eq 0 ] || keep_apart
  trap 'interrupted=true' INT TERM HUP
  if [ -n "$work_regex" ]; then
    # Into a file, for a program's output may come long after the recorder has ended: of processes that it left behind.
    run_recorder "${limit[@]}" >>"$draft/.output" 2>"$draft/messages.txt"
    status=$?
    cat -- "$draft/.output" >&2
  else
    run_recorder "${limit[@]}" >&2 2>"$draft/messages.txt"
    status=$?
  fi
  trap '' INT TERM HUP
  [ -z "$apart" ] || exec {apart}>&-
  apart=
  clean_messages
  shown_lines <"$draft/messages.txt" >&2
}

# A recorder that ended in good order printed its closing line.  One that was killed must not pass for a program that was.
has_ended() { grep -qE "^(pe-record|offcpu|malloctrace): [0-9]+ (samples?|waits?|allocations?), " "$draft/messages.txt"; }

# Leaves the draft where it is.
keep_draft() {  # MESSAGE
  local kept=$draft
  draft=
  rm -f -- "$kept"/{{named,oncpu,offcpu}.pe.gz,{stacks,peak,leaks}.folded,{flame,peak,leaks}.svg,meta.json,report.txt}
  die "$1; what was recorded is kept in $kept/${raw[0]}" 125
}

find_baseline() {
  baseline_folder=
  if [ -n "$baseline" ]; then
    find_run "$baseline" --baseline
    baseline_folder=$found
    return
  fi
  # The last run of the same kind.
  read_runs
  local i wanted
  wanted=$(program_of "$(json_text "$what")")
  for ((i = ${#runs[@]} - 1; i >= 0; i--)); do
    if [ "$(program_of "$(meta "${runs[i]}" workload)")" = "$wanted" ] && [ "$(meta "${runs[i]}" mode)" = "$mode" ]; then
      baseline_folder=${runs[i]}
      return
    fi
  done
}

# The units of work that the program reports: the number in the last line that --work matches, in its first group or, if it
# has none, in what it matches.
read_work() {
  work_done=
  [ -n "$work_regex" ] || return 0
  local line number
  line=$(grep -aE -- "$work_regex" "$draft/.output" | tail -n 1 | tr -d '\0')
  rm -f -- "$draft/.output"
  if [[ $line =~ $work_regex ]]; then
    number=${BASH_REMATCH[1]-${BASH_REMATCH[0]}}
    work_done=$(plain_number "$number")
    [[ $work_done == *[1-9]* ]] || work_done=
  fi
  [ -n "$work_done" ] || say "--work: no amount of work above 0 in the program's output${line:+, though there is: }$line"
}

# Makes a run: its folder is then in `made`, the program's status in `status`.
capture() {
  read_mode
  read_target
  need pe-record capture
  case $recorder in
    pe-record) ;;
    malloctrace) need malloctrace "--mode $mode" ;;
    *) need offcpu "--mode $mode" ;;
  esac
  need stackfold capture
  find_baseline
  mkdir -p -- "$output" || die "$output: cannot be made" 1
  local stamp
  stamp=$(new_stamp)
  draft=$(mktemp -d -- "$output/.capture-$stamp-XXXXXX") || die "$output: cannot be written"
  trap '[ -z "$draft" ] || rm -rf -- "$draft"' EXIT
  record
  local streams raw=()
  read -ra streams < <(raw_streams)
  raw=("${streams[@]/%/.pe}")
  read_closing_lines
  if [ ! -s "$draft/${raw[0]}" ]; then
    if [ "$status" -eq 0 ] || [ "$status" -gt 128 ]; then status=125; fi
    die "nothing was recorded$(why_not_written "$draft")" "$status"
  fi
  if [ "$samples" = 0 ]; then
    [ "$status" -ne 0 ] || status=125
    die "nothing was recorded$(why_not_written "$draft")" "$status"
  fi
  read_work
  has_ended || keep_draft "$recorder did not end in good order (exit status $status), so the run is not whole$(why_not_written "$draft")"
  [ ${#workload[@]} -gt 0 ] || [ "$status" -eq 0 ] || say "$recorder: exit status $status"
  if ! { derive "$stamp" && read_messages && write_meta "$stamp" | cat >"$draft/meta.json" &&
    write_report | cat >"$draft/report.txt"; }; then
    keep_draft 'the run could not be written'
  fi
  rm -f -- "${raw[@]/#/$draft/}"
  keep_run "$stamp"
  trap - INT TERM HUP
}

run_capture() {
  capture
  local printed=0
  printf '%s\n' "$made" | print_all stdout || printed=$?
  say "$samples samples, $lost lost; report: $made/report.txt"
  [ "$printed" -ne 141 ] || exit 141
  if [ ${#workload[@]} -gt 0 ]; then
    [ "$status" -eq 0 ] || say "${workload[0]}: exit status $status"
    [ "$printed" -eq 0 ] || status=125
    exit "$status"
  fi
  exit "$printed"
}
