#!/bin/bash
# Two runs beside each other, by flamediff: for people, and for pipelines.
# shellcheck disable=SC2154 # names of other parts of the script

run_diff() {
  need flamediff diff
  [ -n "$before" ] || usage_error 'diff: --before is missing'
  find_run "$before" --before
  local first=$found second
  find_run "$after" --after
  second=$found
  must_count_alike --before "$first" "$(unit_of_run "$second")"
  read_look "$(meta "$second" mode)"
  local file=${svg:-$second/diff-$(run_name "$first").svg}
  flamediff "${counted[@]}" -o "$file" -- "$first/stacks.folded" "$second/stacks.folded" || die "$file: not drawn"
  flamediff --text "${counted[@]}" --top "$top" -- "$first/stacks.folded" "$second/stacks.folded" || exit
  printf '\n%s\n' "$file" | print_all stdout
  exit
}

# Text that came out of a profile, in Markdown: no line of it can end the block, for each begins with four blanks.
as_block() { sed 's/^/    /'; }

# What did not surely grow may have grown all the same; then flamediff says so.
verdict() {  # VERDICT-FILE STATUS
  case $2 in
    0) if grep -q '^flamediff: .* grew from .* cannot tell from noise' "$1"; then echo 'no function grew for sure'; else echo 'no function grew'; fi ;;
    3) echo 'functions grew' ;;
    *) echo 'not compared' ;;
  esac
}

write_summary() {  # FIRST SECOND VERDICT-FILE STATUS
  printf '## Profile: %s\n\n' "$(verdict "$3" "$4")"
  printf 'Limit: %s more of the samples, beyond noise.\n\n' "$fail_over"
  printf '|  | run | samples | lost |\n|---|---|---:|---:|\n'
  printf '| baseline | %s | %s | %s |\n' "$(cell "$(run_name "$1")")" "$(figure "$1" samples)" "$(figure "$1" lost)"
  printf '| now | %s | %s | %s |\n' "$(cell "$(run_name "$2")")" "$(figure "$2" samples)" "$(figure "$2" lost)"
  if [ -s "$3" ]; then
    printf '\n'
    shown_lines <"$3" | as_block
  fi
  printf '\n### Worse and better\n\n'
  flamediff --text "${counted[@]}" --only-significant --top "$top" -- "$1/stacks.folded" "$2/stacks.folded" 2>&1 | shown_lines | as_block
  printf '\n### Hot spots now\n\n'
  stacktop --columns "$columns" -n "$top" -- "$2/stacks.folded" 2>&1 | as_block
}

# A cell of a table: nothing in it means anything to Markdown or HTML.
cell() { shown "$1" | sed 's/[][\\`*_|<>&#!()]/ /g'; }

said=  # a temporary file: what flamediff said

# 0: nothing grew; 3: something did; 1: it could not be found out, or the program failed.
run_ci() {
  need flamediff ci
  [ -n "$baseline" ] || usage_error 'ci: --baseline is missing'
  find_run "$baseline" --baseline
  local first=$found second grown=0
  if [ ${#workload[@]} -gt 0 ] || [ -n "$has_rest$pid$has_mode" ]; then
    capture
    second=$made
    [ ${#workload[@]} -eq 0 ] || [ "$status" -eq 0 ] || die "${workload[0]}: exit status $status"
  else
    find_run "$run" --run
    second=$found
  fi
  must_count_alike --baseline "$first" "$(unit_of_run "$second")"
  said=$(mktemp) || die 'no temporary file'
  trap 'rm -f -- "$said"' EXIT
  read_look "$(meta "$second" mode)"
  flamediff --text "${counted[@]}" --top 1 --fail-over "$fail_over" -- "$first/stacks.folded" "$second/stacks.folded" >/dev/null 2>"$said" || grown=$?
  [ -z "$summary" ] || exec >>"$summary" || die "$summary: cannot be written"
  write_summary "$first" "$second" "$said" "$grown" | print_all "${summary:-stdout}" || exit
  cat "$said" >&2
  case $grown in 0 | 3) exit "$grown" ;; *) exit 1 ;; esac
}
