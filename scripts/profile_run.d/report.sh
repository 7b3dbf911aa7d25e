#!/bin/bash
# What a run tells: its report, its hot spots, its picture.
# shellcheck disable=SC2154 # names of other parts of the script

columns=120  # of a report's lines: names of C++ have hundreds; the folded text has them whole

# stacktop returns 2 for a profile without stacks.
list_functions() {
  stacktop --columns "$columns" "$@" 2>/dev/null
  were_drawn $?
}

# Of the run in `draft`, by what capture has found out.
write_report() {
  local stacks=$draft/stacks.folded
  if [ -n "$(unit_of "$mode")" ]; then
    stacks=$draft/.waits.folded
    without_scheduler <"$draft/stacks.folded" >"$stacks" || return
  fi
  printf 'Profile of %s\n\n' "$(shown "$what")"
  printf '%-12s %s\n' 'date' "${stamp:0:10} ${stamp:11:2}:${stamp:14:2}:${stamp:17:2} UTC"
  printf '%-12s %s s (asked for: %s)%s\n' 'duration' "$took" \
    "$([[ $seconds =~ ^0*(\.0*)?$ ]] && printf 'until it ends' || printf '%s s' "$seconds")" "${interrupted:+, interrupted}"
  printf '%-12s %s, %s%s\n' 'mode' "$mode" "$([ "$hz" -eq 0 ] || echo "$hz Hz, ")" "$event"
  printf '%-12s %s, %s lost\n' 'samples' "$samples" "$lost"
  printf '%-12s %s\n' 'symbols' "$(FRAMES=$frames UNNAMED=$unnamed SAMPLES=$samples awk 'BEGIN {
    frames = ENVIRON["FRAMES"]; unnamed = ENVIRON["UNNAMED"]
    if (frames > 0) printf "%.1f %% of %d frames have a name\n", 100 * (frames - unnamed) / frames, frames
    else print (ENVIRON["SAMPLES"] + 0 > 0 ? "every frame has a name" : "-") }')"
  [ ${#workload[@]} -eq 0 ] || printf '%-12s exit status %s\n' 'program' "$status"
  [ -z "$work_done" ] || printf '%-12s %s units\n' 'work' "$work_done"
  printf '%-12s %s\n' 'machine' "$(uname -srm)"
  case $mode in
    heap) printf '%-12s %s\n' 'counts' 'bytes allocated' ;;
    offcpu) printf '%-12s %s\n' 'counts' 'microseconds waited' ;;
    hotcold) printf '%-12s %s\n' 'counts' 'microseconds on CPU, and, of frames with the mark _[o], waited' ;;
  esac
  printf '\nHOT SPOTS\n\n'
  list_functions -n "$top" -- "$stacks" || return
  printf '\nWHAT THEY CALL (lines of 1 %% and more)\n\n'
  list_functions --tree --self -n 5 --percent-limit 1 --max-depth 8 -- "$stacks" || return
  printf '\nWHERE THE %s, FROM THE ROOT (lines of 2 %% and more)\n\n' "$([ "$mode" = heap ] && echo 'BYTES ARE' || echo 'TIME IS')"
  list_functions --tree --total -n 1 --percent-limit 2 --max-depth 30 -- "$stacks" || return
  [ "$stacks" = "$draft/stacks.folded" ] || rm -f -- "$stacks"
  [ "$mode" != heap ] || write_heap_tables || return
  write_comparison
  local closing='^(pe-record|offcpu|malloctrace): [0-9]'
  if grep -vqE "$closing" "$draft/messages.txt"; then
    printf '\nMESSAGES\n\n'
    grep -vE "$closing" "$draft/messages.txt" | shown_lines
  fi
  return 0
}

# Who held memory when there was most of it, and who holds it in the end.
write_heap_tables() {
  printf '\nHELD AT THE PEAK, IN BYTES (lines of 2 %% and more)\n\n'
  list_functions --tree --total -n 1 --percent-limit 2 --max-depth 30 -- "$draft/peak.folded" || return
  printf '\nNOT FREED, IN BYTES (lines of 2 %% and more)\n\n'
  list_functions --tree --total -n 1 --percent-limit 2 --max-depth 30 -- "$draft/leaks.folded" || return
}

write_comparison() {
  printf '\nAGAINST THE BASELINE\n\n'
  if [ -z "$baseline_folder" ]; then
    echo 'There is no earlier run of this workload and mode, and none was named.'
  elif ! command -v flamediff >/dev/null; then
    printf 'flamediff is not installed, which compares; the baseline would be %s.\n' "$(shown "$(run_name "$baseline_folder")")"
  else
    printf 'Baseline: %s\n\n' "$(shown "$(run_name "$baseline_folder")")"
    read_look "$mode"
    local only=(--only-significant)
    [ ${#counted[@]} -eq 0 ] || only=()  # where noise is not known, all
    flamediff --text "${counted[@]}" "${only[@]}" --top 10 -- "$baseline_folder/stacks.folded" "$draft/stacks.folded" 2>&1 ||
      echo 'They could not be compared.'
  fi
}

run_analyze() {
  find_run "$run" --run
  local width=()
  [ -t 1 ] || width=(--columns "$columns")  # a terminal has its own
  as_user stacktop "${width[@]}" -n "$top" --hints -- "$found/stacks.folded" || exit
  printf '\n'
  as_user stacktop "${width[@]}" --tree --self -n "$((top < 5 ? top : 5))" --percent-limit 1 --max-depth 8 -- "$found/stacks.folded"
}

# Is this option among those that follow --?
is_given() {  # OPTION
  local argument
  for argument in "${rest[@]}"; do
    case $argument in "$1" | "$1"=*) return 0 ;; esac
  done
  return 1
}

# The options that follow -- are flamesvg's, and come before ours.
run_flamegraph() {
  need flamesvg flamegraph
  find_run "$run" --run
  local file=${svg:-$found/flame.svg}
  local ours=() look
  read_look "$(meta "$found" mode)"
  is_given --colors || ours+=("${look[@]}")
  is_given --title || ours+=(--title "$(meta "$found" workload)")
  write_file "$file" flamesvg "${ours[@]}" "${rest[@]}" "$found/stacks.folded" || die "$file: not drawn"
  printf '%s\n' "$file" | print_all stdout
  exit
}
