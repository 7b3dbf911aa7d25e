#!/bin/bash
# Two runs beside each other, by flamediff: for people, and for pipelines.
# shellcheck disable=SC2154 # names of other parts of the script

# Arguments of flamediff for two sides of runs, into `sides`; with what they cost for each unit of work where all of them
# know how much they did, recorded alike, into `per`.
read_sides() {  # the arrays befores and afters
  local folder number kind='' joined=() is_known=yes
  per=()
  for folder in "${befores[@]}" "${afters[@]}"; do
    number=$(figure "$folder" work)
    [[ $number == *[1-9]* ]] || is_known=
    joined+=("$number")
    kind+="$(figure "$folder" rate_hz) $(meta "$folder" event) $(meta "$folder" mode)"$'\n'
  done
  if [ -n "$is_known" ] && [ "$(sort -u <<<"${kind%$'\n'}" | wc -l)" = 1 ]; then
    local IFS=+
    per=(--per "${joined[*]:0:${#befores[@]}},${joined[*]:${#befores[@]}}")
  elif [ -n "$work_regex" ]; then
    die '--work: the runs do not all know how much work they did, at the same rate and in the same mode'
  fi
  sides=(-- "${befores[@]/%//stacks.folded}" "${afters[@]/%//stacks.folded}")
  [ ${#joined[@]} -eq 2 ] || sides=(--runs "${befores[@]/%//stacks.folded}" -- "${afters[@]/%//stacks.folded}")
}

run_diff() {
  need flamediff diff
  [ -n "$before" ] || usage_error 'diff: --before is missing'
  find_run "$before" --before
  local befores=("$found") afters sides per
  find_run "$after" --after
  afters=("$found")
  must_count_alike --before "${befores[0]}" "$(unit_of_run "$found")"
  read_look "$(meta "$found" mode)"
  read_sides
  local file=${svg:-$found/diff-$(run_name "${befores[0]}").svg}
  flamediff "${counted[@]}" "${per[@]}" -o "$file" "${sides[@]}" || die "$file: not drawn"
  flamediff --text "${counted[@]}" "${per[@]}" --top "$top" "${sides[@]}" || exit
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

# A row of the table of runs.
write_run() {  # SIDE RUN
  local work
  work=$(figure "$2" work)
  printf '| %s | %s | %s | %s | %s |\n' "$1" "$(cell "$(run_name "$2")")" "$(figure "$2" samples)" "$(figure "$2" lost)" "$work"
}

# Of the runs in befores and afters.
write_summary() {  # VERDICT-FILE STATUS
  local folder
  printf '## Profile: %s\n\n' "$(verdict "$1" "$2")"
  printf 'Limit: %s more of %s, beyond noise.\n\n' "$fail_over" \
    "$([ ${#per[@]} -eq 0 ] && echo 'the samples' || echo 'the cost of a unit of work before')"
  printf '|  | run | samples | lost | work |\n|---|---|---:|---:|---:|\n'
  for folder in "${befores[@]}"; do write_run baseline "$folder"; done
  for folder in "${afters[@]}"; do write_run now "$folder"; done
  if [ -s "$1" ]; then
    printf '\n'
    shown_lines <"$1" | as_block
  fi
  printf '\n### What changed\n\n'
  flamediff --text "${counted[@]}" "${per[@]}" --only-significant --top "$top" "${sides[@]}" 2>&1 | shown_lines | as_block || return
  printf '\n### Hot spots now\n\n'
  list_functions -n "$top" -- "${afters[-1]}/stacks.folded" | as_block
}

# With what is in the file already.
append_summary() {
  if [ -f "$summary" ]; then cat -- "$summary" || return; fi
  write_summary "$@"
}

# A cell of a table: nothing in it means anything to Markdown or HTML.
cell() { shown "$1" | sed 's/[][\\`*_|<>&#!()]/ /g'; }

said=  # a temporary file: what flamediff said

# Records the workload; the run is then the last one of `recorded`.
record_for_ci() {
  capture
  [ ${#workload[@]} -eq 0 ] || [ "$status" -eq 0 ] || die "${workload[0]}: exit status $status"
  recorded+=("$made")
}

# N runs of each side in turn, so that both meet the same weather on this machine.  Nothing is run that a stored run names.
record_sides() {
  [ -z "$baseline" ] || usage_error '--runs, --baseline: only one of them; --baseline-workload records that side, too'
  [ ${#baseline_workload[@]} -gt 0 ] || usage_error '--runs: --baseline-workload is missing, the program before the change'
  [ -z "$pid" ] || usage_error '--runs, --pid: only one of them'
  [ ${#rest[@]} -eq 0 ] || [ ${#workload[@]} -eq 0 ] || usage_error '--workload, --: only one of them'
  [ ${#rest[@]} -eq 0 ] || workload=("${rest[@]}")
  [ ${#workload[@]} -gt 0 ] || usage_error '--runs: --workload or a program behind -- is missing'
  local now=("${workload[@]}") number recorded
  rest=()
  for ((number = 0; number < runs_wanted; number++)); do
    recorded=()
    workload=("${baseline_workload[@]}")
    record_for_ci
    workload=("${now[@]}")
    record_for_ci
    befores+=("${recorded[0]}") afters+=("${recorded[1]}")
  done
}

# The runs that --baseline and --run mean; a new one if there is a program.
find_sides() {
  [ ${#baseline_workload[@]} -eq 0 ] || usage_error '--baseline-workload: only with --runs'
  [ -n "$baseline" ] || usage_error 'ci: --baseline is missing'
  find_run "$baseline" --baseline
  befores=("$found")
  if [ ${#workload[@]} -gt 0 ] || [ -n "$has_rest$pid$has_mode" ]; then
    local recorded=()
    record_for_ci
    afters=("${recorded[@]}")
  else
    find_run "$run" --run
    afters=("$found")
  fi
}

# 0: nothing grew; 3: something did; 1: it could not be found out, or the program failed.
run_ci() {
  need flamediff ci
  local befores=() afters=() sides per grown=0
  if [ -n "$runs_wanted" ]; then record_sides; else find_sides; fi
  must_count_alike --baseline "${befores[0]}" "$(unit_of_run "${afters[0]}")"
  read_look "$(meta "${afters[0]}" mode)"
  read_sides
  said=$(mktemp) || die 'no temporary file'
  trap 'rm -f -- "$said"' EXIT
  flamediff --text "${counted[@]}" "${per[@]}" --top 1 --fail-over "$fail_over" "${sides[@]}" >/dev/null 2>"$said" || grown=$?
  if [ -n "$summary" ]; then
    local problem
    problem=$(write_file "$summary" append_summary "$said" "$grown" 2>&1) || die "$summary: ${problem##*: }"
  else
    write_summary "$said" "$grown" | print_all stdout || exit
  fi
  cat "$said" >&2
  case $grown in 0 | 3) exit "$grown" ;; *) exit 1 ;; esac
}
