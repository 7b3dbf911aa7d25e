#!/bin/bash
# What a mode stands for: recorder, rate and time, and how what it counts is folded and drawn.
# shellcheck disable=SC2034,SC2154 # names of other parts of the script

# What the mode says of the recording: into hz, seconds and recorder.
read_mode() {
  # 499 Hz finds ten points of growth in one pair of 4-second runs, where 99 Hz misses a third of them.
  recorder=pe-record hz=499 seconds=10
  case $mode in
    '' | default) mode=default ;;
    quick) seconds=5 ;;
    detailed) hz=997 seconds=20 ;;
    system) hz=99 ;;
    offcpu) recorder=offcpu hz=0 ;;
    heap) recorder=malloctrace hz=0 seconds=0 ;;
    hotcold) recorder=hotcold hz=99 ;;
  esac
  seconds=${duration:-$seconds}
}

# Folded text and pictures that a run of the heap has besides, and the events that they are of.
declare -A heap_parts=([peak]=peak-bytes [leaks]=live-bytes)

# What counts are where they are no samples; of a time, no comparison knows its noise.
unit_of() {  # MODE
  case $1 in offcpu | hotcold) echo us ;; heap) echo bytes ;; esac
}

# What a run counts.
unit_of_run() { unit_of "$(meta "$1" mode)" | grep . || echo samples; }  # RUN

# Shares of bytes are not to be set beside those of samples.
must_count_alike() {  # OPTION RUN UNIT
  local unit
  unit=$(unit_of_run "$2")
  [ "$unit" = "$3" ] || die "$1: $(run_name "$2") counts $unit, not $3"
}

# Options of flamesvg for a mode's picture, into `look`; those of flamediff for its counts, into `counted`.
read_look() {  # MODE
  local unit
  unit=$(unit_of "$1")
  counted=(${unit:+--countname "$unit"})
  case $1 in
    offcpu) look=(--colors io "${counted[@]}") ;;
    heap) look=(--colors mem "${counted[@]}") ;;
    hotcold) look=(--colors hotcold "${counted[@]}") ;;
    *) look=(--colors kind) ;;
  esac
}

# Every thread waits in the scheduler; who called it tells more.  Folded text in, folded text out.
without_scheduler() { sed -E 's/(;_*(schedule|preempt_schedule|io_schedule|finish_task_switch)[a-z_.]*(_\[[a-z]\])?)+ ([0-9]+)$/ \4/'; }

# The recording itself, into the folder of the draft: raw.pe, or hotcold's on.pe and off.pe and its folded text.
run_recorder() {  # LIMIT...
  case $recorder in
    offcpu) as_user offcpu "$@" -o "$draft/raw.pe" "${target[@]}" ;;
    malloctrace) run_malloctrace ;;
    hotcold) as_user "$here/hotcold" "$@" -F "$hz" --keep "$draft" "$draft/flame.svg" "${target[@]}" ;;
    *) as_user pe-record -F "$hz" "$@" -o "$draft/raw.pe" "${target[@]}" ;;
  esac
}

# It has no time to end at, only that of its program: SIGINT ends both.
run_malloctrace() {
  local limit=()
  [[ $seconds =~ ^0*(\.0*)?$ ]] || limit=(timeout --foreground --preserve-status -s INT "$seconds")
  as_user "${limit[@]}" "$(command -v malloctrace)" -o "$draft/raw.pe" "${target[@]}"
}

# Which streams a recorder leaves in the folder of the draft.
raw_streams() {
  if [ "$recorder" = hotcold ]; then echo on off; else echo raw; fi
}

# What a stream with names is called in a run.
named_as() {  # STREAM
  case $1 in on) echo oncpu.pe.gz ;; off) echo offcpu.pe.gz ;; *) echo named.pe.gz ;; esac
}

# Streams with names, folded text and the picture.
derive() {  # STAMP
  local stream
  for stream in $(raw_streams); do
    pe-symbolize "$draft/$stream.pe" 2>>"$draft/messages.txt" | gzip -1 >"$draft/$(named_as "$stream")" || return
  done
  if [ "$recorder" != hotcold ]; then  # which folds itself
    gzip -dc -- "$draft/named.pe.gz" | stackfold --annotate - 2>>"$draft/messages.txt" | cat >"$draft/stacks.folded" || return
  fi
  read_look "$mode"
  draw_folded stacks flame "$1, $mode" && derive_heap "$1"
}

# A profile without stacks gets a page that says so, and status 2.
draw_folded() {  # FOLDED PICTURE SUBTITLE
  flamesvg "${look[@]}" --title "$(shown "$what")" --subtitle "$3" "$draft/$1.folded" \
    >"$draft/$2.svg" 2>>"$draft/messages.txt"
  were_drawn $?
}

# Of the heap, which the stream has besides what was allocated.
derive_heap() {  # STAMP
  local part
  [ "$mode" = heap ] || return 0
  for part in "${!heap_parts[@]}"; do
    gzip -dc -- "$draft/named.pe.gz" | stackfold --annotate --event "${heap_parts[$part]}" - 2>/dev/null | cat >"$draft/$part.folded" || return
    draw_folded "$part" "$part" "$1, ${heap_parts[$part]}" || return
  done
}

# How many samples, lost ones and seconds the recorders told, into samples, lost and took; of two, what both have sampled
# and lost.
read_closing_lines() {
  local line
  samples='' lost='' took=''
  while IFS= read -r line; do
    if [[ $line =~ ^(pe-record|offcpu|malloctrace):\ ([0-9]+)\ (samples?|waits?|allocations?),\ .*\ %\ of\ ([0-9.]+)\ s(;|$) ]]; then
      samples=$((${samples:-0} + $(plain_number "${BASH_REMATCH[2]}"))) took=${took:-$(plain_number "${BASH_REMATCH[4]}")}
      [[ $line =~ ,\ ([0-9]+)\ lost ]] && lost=$((${lost:-0} + $(plain_number "${BASH_REMATCH[1]}")))
    fi
  done < <(grep -E '^(pe-record|offcpu|malloctrace): [0-9]+ (samples?|waits?|allocations?), ' "$draft/messages.txt" | tail -n 2)
}
