#!/bin/bash
# Profiling without end: a folded file an hour, the oldest removed, alerts.
# shellcheck disable=SC2154 # names of other parts of the script

# Once for each file and function, on standard error, and by the user's program, which gets the function, its
# share, the limit and the file as arguments: no shell sees them.
raise_alert() {  # FUNCTION SHARE LIMIT FILE WHY
  [ -z "${alerted["$4|$1"]-}" ] || return 0
  alerted["$4|$1"]=yes
  say "alert: $1: $5, in $4"
  # What it leaves running must not keep the folder.
  [ ${#alert[@]} -eq 0 ] || (exec {lock}<&-; [ -z "$pusher" ] || exec {pusher}>&-; as_user "${alert[@]}" "$1" "$2" "$3" "$4") ||
    say "--alert: ${alert[0]}: exit status $?"
}

# What is true at every look is said at the first: messages that differ in numbers alone are the same.
say_once() {  # MESSAGE
  local key="said ${1//[0-9]/}"
  [ -z "${already["$key"]-}" ] || return 0
  already["$key"]=yes
  say "$1"
}

# The recorder's messages, each once.
pass_messages() {  # FILE
  local message
  while IFS= read -r message; do say_once "$message"; done <"$1"
}

check_limits() {  # FILE
  local limit function share found
  for limit in "${limits[@]}"; do
    function=${limit%=*}
    read -r _ share found < <(share_of "$function" "$1")
    [ "$share" != - ] || continue
    if [ "$found" = 0 ]; then
      say_once "--limit $limit%: no function of this name in what was recorded so far"
      continue
    fi
    SHARE=$share LIMIT=${limit##*=} awk 'BEGIN { exit !(ENVIRON["SHARE"] + 0 > ENVIRON["LIMIT"] + 0) }' || continue
    raise_alert "$function" "$share" "${limit##*=}" "$1" "$share % of the samples, the limit is ${limit##*=} %"
  done
}

# What grew since the hour before, or beside a baseline, beyond noise.
check_growth() {  # FILE BEFORE
  local status=0 said
  [ -n "$2" ] && command -v flamediff >/dev/null || return 0
  said=$(flamediff --text --top 1 --fail-over "$fail_over" -- "$2" "$1" 2>&1 >/dev/null) || status=$?
  [ "$status" -eq 3 ] || return 0
  said=$(grep -m 1 ' grew from ' <<<"$said")
  said=${said#flamediff: --fail-over: }
  raise_alert growth "$said" "$fail_over" "$1" "$said"
}

# Adds a chunk to the file of its hour.
add_chunk() {  # FILE CHUNK
  if [ -f "$1" ]; then
    write_file "$1" stackfold -- "$1" "$2"
  else
    mv -f -- "$2" "$1"
  fi || die "$1: cannot be written"
}

# The oldest go, and never the file at hand.  Those of hours to come are from before the clock was set back, and older.
remove_oldest() {  # FOLDER FILE
  local files=("$1"/[0-9][0-9][0-9][0-9]-*Z.folded) i present=0
  [ "$keep" -gt 0 ] || return 0
  while [ "$present" -lt ${#files[@]} ] && [[ ! ${files[present]} > $2 ]]; do present=$((present + 1)); done
  if [ "$present" -lt ${#files[@]} ]; then
    say_once "watch: the clock was set back: files of hours to come, from ${files[present]} on, are taken for the oldest"
  fi
  files=("${files[@]:present}" "${files[@]:0:present}")
  for ((i = 0; i < ${#files[@]} - keep; i++)); do rm -f -- "${files[i]}"; done
}

# Hundredths of a second since the machine was started, into `uptime`: nobody sets that clock.
read_uptime() {
  read -r uptime _ </proc/uptime || die '/proc/uptime: cannot be read'
  uptime=$((10#${uptime/./}))
}

# The time now, and so many hundredths of a second ago.
times_of() {  # HUNDREDTHS
  date +%s.%3N | awk -v before="$1" '{ printf "%.3f %.3f\n", $1 - before / 100, $1 }'
}

# The file of the hour before `file`, if there is one.
hour_before() {  # FOLDER FILE
  local other previous=''
  for other in "$1"/[0-9][0-9][0-9][0-9]-*Z.folded; do
    [ "$other" != "$2" ] || break
    previous=$other
  done
  [ ! -f "$previous" ] || printf '%s' "$previous"
}

scratch=  # a folder for what is being recorded; it goes at the end
lock=  # a descriptor: of two that watch in one folder each would write over what the other adds

# At the end, however it comes.
end_watch() {
  end_push
  rm -rf -- "$scratch"
}

# Of a watch that was killed: the lock is ours, so nobody writes there any more.
remove_left_chunks() {  # FOLDER
  local left
  for left in "$1"/.chunk-*; do
    [ -d "$left" ] || continue
    rm -rf -- "$left"
    say "watch: a watch was killed here; what it had not yet added is lost"
  done
}

run_watch() {
  need pe-record watch
  need flock watch
  [ -z "${workload[*]}$has_rest" ] || usage_error 'watch: takes --pid, or watches the whole system'
  [ -z "$has_mode" ] || [ "$mode" = system ] || usage_error 'watch: has no modes'
  local target=(-a) folder=$output/watch file compared='' end='' recorded chunk from until missing=0 uptime began
  declare -A alerted=() already=()
  [ -z "$pid" ] || target=(-p "$pid")
  [ -z "$baseline" ] || { find_run "$baseline" --baseline; must_count_alike --baseline "$found" samples; compared=$found/stacks.folded; }
  mkdir -p -- "$folder" || die "$folder: cannot be made"
  exec {lock}<"$folder"
  flock -n "$lock" || die "$folder: another profile_run watches here; give one of them another --output"
  remove_left_chunks "$folder"
  scratch=$(mktemp -d -- "$folder/.chunk-XXXXXX") || die "$folder: cannot be written"
  chunk=$scratch/chunk
  read_uptime
  [ -z "$duration" ] || end=$(awk -v now="$uptime" -v more="$duration" 'BEGIN { printf "%.0f\n", now + 100 * more }')
  stop=
  trap end_watch EXIT
  trap 'stop=yes' INT TERM HUP
  start_push "$folder"
  while [ -z "$stop" ]; do
    file=$folder/$(date -u +%Y-%m-%dT%HZ).folded
    recorded=0
    read_uptime
    began=$uptime
    pe-record -q -F "$rate" -d "$interval" -o "$chunk.pe" "${target[@]}" 2>"$chunk.said" || recorded=$?
    read_uptime
    # An interval in which nothing ran is no failure.
    if grep -q '^pe-record: nothing was recorded: ' "$chunk.said"; then
      recorded=0
      sed -i '/^pe-record: nothing was recorded: /d' "$chunk.said"
    fi
    pass_messages "$chunk.said"
    [ "$recorded" -eq 0 ] || die "pe-record: exit status $recorded$(why_not_written "$scratch")"
    # The clock may have been set meanwhile.
    read -r from until < <(times_of $((uptime - began)))
    if { pe-symbolize "$chunk.pe" >"$chunk.named" && stackfold --annotate -- "$chunk.named" >"$chunk"; } 2>"$chunk.said"; then
      [ ! -s "$chunk" ] || push_chunk "$chunk.named" "$from" "$until" "$chunk.said"
      add_chunk "$file" "$chunk"
      remove_oldest "$folder" "$file"
      check_limits "$file"
      check_growth "$file" "${compared:-$(hour_before "$folder" "$file")}"
    else
      pass_messages "$chunk.said"
      missing=$((missing + 1))
    fi
    [ -z "$pid" ] || kill -0 "$pid" 2>/dev/null || break
    read_uptime
    [ -z "$end" ] || [ "$uptime" -lt "$end" ] || break
  done
  say "wrote to $folder"
  [ "$missing" -eq 0 ] || die "watch: intervals that could not be folded, and are missing: $missing"
  exit 0
}
