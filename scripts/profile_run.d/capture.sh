#!/bin/bash
# Recording: from a workload to a folder that has everything.
# shellcheck disable=SC2154 # names of other parts of the script

draft=  # the run that is being made

# What the mode stands for, into hz, seconds and target.
read_mode() {
  case $mode in
    '' | default) mode=default hz=99 seconds=10 ;;
    quick) hz=99 seconds=5 ;;
    detailed) hz=997 seconds=20 ;;
    system) hz=99 seconds=10 ;;
    offcpu) die '--mode offcpu: the tool offcpu, which records what threads wait for, is not there yet' ;;
    heap) die '--mode heap: the tool malloctrace, which records allocations, is not there yet' ;;
    hotcold) die '--mode hotcold: the tool offcpu, whose stacks are half of it, is not there yet' ;;
  esac
  seconds=${duration:-$seconds}
}

# What is to be recorded, as arguments of pe-record in `target` and as text in `what`.
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
    target=(-p "$pid") what="process $pid ($(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | head -c 200))"
    what=${what/ )/)}
  elif [ ${#workload[@]} -gt 0 ]; then
    printf -v what '%q ' "${workload[@]}"
    what=${what% } target=(-- "${workload[@]}")
    keep_apart
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
  ! env -0 | grep -zqvE '^[A-Za-z_][A-Za-z0-9_]*=' || shell=$BASH
  for number in 9 8 7 6 5 4 3; do  # dash knows descriptors of one digit
    [ ! -e "/proc/$BASHPID/fd/$number" ] || continue
    eval "exec $number>&2"
    # shellcheck disable=SC2016 # of the shell that is started
    target=(-- "$shell" -c 'exec "$@" 2>&'"$number $number>&-" sh "${workload[@]}")
    return
  done
}

# How many samples, lost ones and seconds the recorder told; and what the others did.
read_messages() {
  local closing named
  closing=$(grep '^pe-record: [0-9]* samples\?, [0-9]* lost' "$draft/messages.txt" | tail -n 1)
  samples='' lost='' took=''
  if [[ $closing =~ ^pe-record:\ ([0-9]+)\ samples?,\ ([0-9]+)\ lost.*\ %\ of\ ([0-9.]+)\ s(;|$) ]]; then
    samples=$(plain_number "${BASH_REMATCH[1]}") lost=$(plain_number "${BASH_REMATCH[2]}") took=$(plain_number "${BASH_REMATCH[3]}")
  fi
  named=$(grep '^pe-symbolize: .* frames without a name' "$draft/messages.txt" | tail -n 1)
  unnamed=$(plain_number "$(sed -n 's/.*; \([0-9]*\) of [0-9]* frames without a name.*/\1/p' <<<"$named")")
  frames=$(plain_number "$(sed -n 's/.* of \([0-9]*\) frames without a name.*/\1/p' <<<"$named")")
  event=cycles
  ! grep -q 'sampling cpu-clock' "$draft/messages.txt" || event=cpu-clock
  # The draft's own name is of no use to a reader.
  local messages
  messages=$(head -c 65536 -- "$draft/messages.txt" | tr -d '\0')
  printf '%s\n' "${messages//"$draft/"/}" >"$draft/messages.txt" || return
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
  "samples": $samples,
  "lost": $lost,
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
  trap 'interrupted=true' INT TERM HUP
  as_user pe-record -F "$hz" "${limit[@]}" -o "$draft/raw.pe" "${target[@]}" 2>"$draft/messages.txt"
  status=$?
  trap '' INT TERM HUP
  head -c 65536 -- "$draft/messages.txt" | shown_lines >&2
}

# Succeeds if what was made of a stream could be written.  A damaged stream, status 1, is read as far as it goes, and
# what is missing is in the messages; a full disk meets the program behind the pipe.
were_written() {  # STATUS-OF-READER STATUS-OF-WRITER
  [ "$1" -le 1 ] && [ "$2" -eq 0 ]
}

# Everything that is made of the stream.
derive() {
  pe-symbolize "$draft/raw.pe" 2>>"$draft/messages.txt" | gzip -1 >"$draft/named.pe.gz"
  were_written "${PIPESTATUS[@]}" || return
  gzip -dc -- "$draft/named.pe.gz" | stackfold --annotate - 2>>"$draft/messages.txt" | cat >"$draft/stacks.folded"
  were_written "${PIPESTATUS[@]:1}" || return
  # A profile without stacks gets a page that says so, and status 2.
  flamesvg --colors kind --title "$(shown "$what")" --subtitle "$1, $mode" "$draft/stacks.folded" \
    >"$draft/flame.svg" 2>>"$draft/messages.txt" || [ $? -eq 2 ]
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

# Makes a run: its folder is then in `made`, the program's status in `status`.
capture() {
  read_mode
  read_target
  need pe-record capture
  need stackfold capture
  find_baseline
  mkdir -p -- "$output" || die "$output: cannot be made" 1
  local stamp
  stamp=$(new_stamp)
  draft=$output/.capture-$stamp-$$
  mkdir -- "$draft" || die "$draft: cannot be made"
  trap '[ -z "$draft" ] || rm -rf -- "$draft"' EXIT
  record
  if [ ! -s "$draft/raw.pe" ]; then
    [ "$status" -ne 0 ] || status=125
    die 'nothing was recorded' "$status"
  fi
  [ ${#workload[@]} -gt 0 ] || [ "$status" -eq 0 ] || say "pe-record: exit status $status"
  if ! { derive "$stamp" && read_messages && write_meta "$stamp" | cat >"$draft/meta.json" &&
    write_report | cat >"$draft/report.txt"; }; then
    local kept=$draft
    draft=
    rm -f -- "$kept"/{named.pe.gz,stacks.folded,flame.svg,meta.json,report.txt}
    die "the run could not be written; what was recorded is kept in $kept/raw.pe" 125
  fi
  rm -f -- "$draft/raw.pe"
  keep_run "$stamp"
  trap - INT TERM HUP
}

run_capture() {
  capture
  printf '%s\n' "$made"
  say "$samples samples, $lost lost; report: $made/report.txt"
  if [ ${#workload[@]} -gt 0 ]; then
    [ "$status" -eq 0 ] || say "${workload[0]}: exit status $status"
    exit "$status"
  fi
  flush
}
