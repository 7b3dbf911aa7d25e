#!/bin/bash
# The folder of runs: names, what is in a run, finding one.
#
# A run is OUTPUT/YYYY-MM-DDTHH-MM-SSZ[-N], and holds
#   named.pe.gz     the sample stream with names, pe-stream(5)
#   stacks.folded   folded(5)
#   flame.svg       the picture
#   report.txt      for people
#   meta.json       for programs: one member a line, as list and others read it back
#   messages.txt    what the tools said
# It is made under a name that begins with a dot, and renamed when it is whole.
# shellcheck disable=SC2154 # names of other parts of the script

# The runs, oldest first, into the array `runs`; with --broken, also folders that only have the name of one.  Those of one second are in the order of their numbers.
read_runs() {  # [--broken]
  runs=()
  local folder name keys=() number
  for folder in "$output"/[0-9][0-9][0-9][0-9]-*T*Z*/; do
    folder=${folder%/}
    [ -f "$folder/meta.json" ] || { [ "${1-}" = --broken ] && [ -d "$folder" ]; } || continue
    name=${folder##*/} number=1
    [[ ! $name =~ Z-([0-9]{1,9})$ ]] || number=${BASH_REMATCH[1]}
    name=${name%%Z*}
    keys+=("${name//[^0-9T-]/} $number $folder")
  done
  [ ${#keys[@]} -gt 0 ] || return 0
  mapfile -d '' -t runs < <(printf '%s\0' "${keys[@]}" | sort -z -t ' ' -k1,1 -k2,2n -k3 | cut -z -d ' ' -f 3-)
}

# The folder of the run called $1 into `found`.
find_run() {  # RUN OPTION
  read_runs
  local count=${#runs[@]}
  case $1 in
    latest | previous)  # of those with samples
      local back=1 folder
      [ "$1" = latest ] || back=2
      found=
      for ((count--; count >= 0; count--)); do
        folder=${runs[count]}
        [ -s "$folder/stacks.folded" ] || continue
        back=$((back - 1))
        [ "$back" -gt 0 ] || { found=$folder; break; }
      done
      [ -n "$found" ] || die "$2: no $1 run with samples in '$output'"
      ;;
    */*) found=${1%/} ;;
    *)
      found=$output/$1
      [ -f "$found/stacks.folded" ] || found=$1
      ;;
  esac
  [ -f "$found/stacks.folded" ] || die "$2: not a run: '$1'"
  case $found in -*) found=./$found ;; esac  # a name must not be an option
}

run_name() { basename -- "$1"; }

# A member of a run's meta.json, as it is written there; strings without their quotes.
meta() {  # RUN KEY
  sed -n "s/^  \"$2\": \(.*[^,]\),\{0,1\}\$/\1/p" -- "$1/meta.json" 2>/dev/null | head -n 1 | sed 's/^"\(.*\)"$/\1/'
}

# What a workload ran, whatever the number of its process was: "process 12 (nginx)" and "process 13 (nginx)" are the same.
program_of() { sed 's/^"\{0,1\}process [0-9]* //; s/^"//; s/"$//' <<<"$1"; }  # WORKLOAD

# A number of a run's meta.json, or "-": the file may hold anything.
figure() {  # RUN KEY
  local number
  number=$(plain_number "$(meta "$1" "$2")")
  printf '%s' "${number:--}"
}

new_stamp() { date -u +%Y-%m-%dT%H-%M-%SZ; }

# Renames the folder `draft` to that of a run of its own, whose path is then in `made`.
keep_run() {  # STAMP
  local number=1
  made=$output/$1
  chmod -- =rwx "$draft"
  # mv -T refuses to replace a folder that is not empty.
  until mv -T -- "$draft" "$made" 2>/dev/null; do
    number=$((number + 1))
    [ "$number" -le 1000 ] || die "$made: cannot be made"
    made=$output/$1-$number
  done
  draft=
}

# Why a folder is not a whole run; nothing if it is one.
why_broken() {  # RUN
  local file
  for file in meta.json stacks.folded; do
    if [ ! -f "$1/$file" ]; then printf 'no %s' "$file"; return; fi
  done
  [ "$(meta "$1" format)" = 1 ] || printf 'meta.json cannot be read'
}

list_runs() {
  local folder problem
  printf '%-22s %-9s %9s %6s %8s  %s\n' run mode samples lost seconds workload
  for folder in "${runs[@]}"; do
    problem=$(why_broken "$folder")
    if [ -n "$problem" ]; then
      printf '%-22s broken: %s\n' "$(shown "$(run_name "$folder")")" "$problem"
      continue
    fi
    printf '%-22s %-9s %9s %6s %8s  %s\n' "$(shown "$(run_name "$folder")")" "$(shown "$(meta "$folder" mode)")" "$(figure "$folder" samples)" \
      "$(figure "$folder" lost)" "$(figure "$folder" seconds)" "$(shown "$(meta "$folder" workload)")"
  done
}

run_list() {
  read_runs --broken
  list_runs | print_all stdout || exit
  local drafts
  drafts=$(find "$output" -maxdepth 1 -name '.capture-*' -type d 2>/dev/null | wc -l)
  [ "$drafts" -eq 0 ] || say "not finished: $drafts capture$([ "$drafts" -eq 1 ] || echo s), $output/.capture-*: going on, or ended before a run was written"
  exit 0
}
