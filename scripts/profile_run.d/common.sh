#!/bin/bash
# Messages, options, texts: what every command of profile_run needs.
# shellcheck disable=SC2034,SC2154 # names of other parts of the script

# A program with the user's own locale and path.
as_user() {  # PROGRAM ARGUMENT...
  (
    if [ -n "$users_locale" ]; then LC_ALL=$users_locale; else unset LC_ALL; fi
    program=$(command -v -- "$1") || { say "$1: not found"; exit 127; }
    shift
    PATH=$users_path
    exec "$program" "$@"
  )
}

say() { printf 'profile_run: %s\n' "$(shown "$1")" >&2; }
die() { say "$1"; exit "${2:-1}"; }
usage_error() { die "$1 (see --help)" 2; }

# What it reads to standard output.  A full disk must not look like success, and is told once; a reader that has gone
# away ends it without a word, as the tools.
print_all() {  # NAME
  local problem status
  { problem=$(cat 2>&1 >&3); status=$?; } 3>&1
  [ "$status" -ne 0 ] || return 0
  cat >/dev/null  # who writes is not to be told, too
  problem=${problem##*: }
  if [ "$status" -eq 141 ] || [ "$problem" = 'Broken pipe' ]; then exit 141; fi
  die "$1: $problem"
}

need() {  # TOOL WHAT-FOR
  command -v "$1" >/dev/null || die "$1 is not installed, which $2 needs"
}

# A JSON string.  Bytes that are no UTF-8 are left out.
json_text() {
  local text code out='' i
  text=$(printf '%s' "$1" | iconv -f UTF-8 -t UTF-8 -c 2>/dev/null; printf x)
  text=${text%x}
  for ((i = 0; i < ${#text}; i++)); do
    case ${text:i:1} in
      '"') out+='\"' ;;
      \\) out+="\\\\" ;;
      [[:cntrl:]]) printf -v code '\\u%04x' "'${text:i:1}" && out+=$code ;;
      *) out+=${text:i:1} ;;
    esac
  done
  printf '"%s"' "$out"
}

# Text of an XML element or attribute.  XML cannot have U+FFFE and U+FFFF.
xml_text() {
  shown "$1" | sed 's/\xef\xbf[\xbe\xbf]/?/g; s/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g'
}

# A figure as JSON has it, without zeros before it; nothing if it is none.
plain_number() {
  [[ $1 =~ ^0*([0-9]{1,15}(\.[0-9]{1,9})?)$ ]] || return 0
  printf '%s' "${BASH_REMATCH[1]}"
}

is_count() { [[ $1 =~ ^(0|[1-9][0-9]{0,8})$ ]]; }
is_decimal() { [[ $1 =~ ^[0-9]{1,9}(\.[0-9]{1,9})?$ ]]; }
is_time() { is_decimal "$1" && [[ $1 == *[1-9]* ]]; }
is_percent() { [[ $1 =~ ^[0-9]{1,3}(\.[0-9]{1,9})?%?$ ]]; }

is_regex() {
  [ -n "$1" ] || return
  grep -qE -- "$1" </dev/null 2>/dev/null || [ $? -eq 1 ]
}

check() {  # TEST OPTION VALUE WHAT
  "$1" "$3" || usage_error "$2: not $4: '$3'"
}

modes='default quick detailed system offcpu heap hotcold'
is_mode() { [[ $1 =~ ^[a-z]+$ && " $modes " == *" $1 "* ]]; }

# Splits at blanks and tabs into the array `words`: no quotes, no patterns, no variables.
split_words() {
  local IFS=$' \t'
  set -f
  # shellcheck disable=SC2206 # this is the splitting
  words=($1)
  set +f
}

output=profiles workload=() pid='' duration='' mode='' run=latest baseline='' before='' after=latest
baseline_workload=() runs_wanted='' work_regex=''
top=20 svg='' fail_over=5% summary='' rate=1 interval=60 keep=168 limits=() alert=() operands=() rest=()
push_url='' push_name='' push_labels=() push_tenant='' token_file='' ca_file='' spool_size='' insecure_http=''
has_mode='' has_rest=''

# The value of the option at hand into `value`.
take_value() {  # OPTION ARGUMENT...
  [ $# -ge 2 ] || usage_error "$1: a value is missing"
  value=$2
}

# A path that no program takes for an option, into `path`.
set_path() {
  path=$1
  case $path in -*) path=./$path ;; esac
}

for_watch() { only_with watch "$1"; }  # OPTION

only_with() {  # COMMANDS OPTION
  [[ " $1 " == *" $command "* ]] || usage_error "$2: only with ${1// / or }"
}

set_option() {  # OPTION VALUE
  local path
  case $1 in
    --rate | --interval | --keep | --limit | --alert | --push | --push-* | --token-file | --ca-file | --spool-size) for_watch "$1" ;;
  esac
  case $1 in
    --output) [ -n "$2" ] || usage_error '--output: no folder'; set_path "$2"; output=$path ;;
    --workload) split_words "$2"; workload=("${words[@]}")
      [ ${#workload[@]} -gt 0 ] || usage_error '--workload: no program' ;;
    --pid) check is_count "$1" "$2" 'a process'; pid=$2 ;;
    --duration) check is_decimal "$1" "$2" 'a number of seconds'; duration=$(plain_number "$2") ;;
    --mode) check is_mode "$1" "$2" "one of ${modes// /, }"
      mode=$2 has_mode=yes ;;
    --run) run=$2 ;;
    --baseline) baseline=$2 ;;
    --before) before=$2 ;;
    --after) after=$2 ;;
    --work) only_with 'capture ci' "$1"; check is_regex "$1" "$2" 'a regular expression'; work_regex=$2 ;;
    --runs) only_with ci "$1"; check is_count "$1" "$2" 'a number of runs'
      [ "$2" != 0 ] || usage_error "--runs: not a number above 0: '$2'"
      runs_wanted=$2 ;;
    --baseline-workload) only_with ci "$1"; split_words "$2"; baseline_workload=("${words[@]}")
      [ ${#baseline_workload[@]} -gt 0 ] || usage_error '--baseline-workload: no program' ;;
    --top) check is_count "$1" "$2" 'a number of functions'; top=$2 ;;
    --svg) set_path "$2"; svg=$path ;;
    --fail-over) check is_percent "$1" "$2" 'a percentage'; fail_over=${2%\%}% ;;
    --summary) set_path "$2"; summary=$path ;;
    --rate) check is_count "$1" "$2" 'a number of samples a second'; rate=$2 ;;
    --interval) check is_time "$1" "$2" 'a number of seconds'; interval=$2 ;;
    --keep) check is_count "$1" "$2" 'a number of hours'; keep=$2 ;;
    --limit) if ! [[ $2 == ?*=* ]] || ! is_percent "${2##*=}"; then usage_error "--limit: not FUNCTION=PERCENT: '$2'"; fi
      limits+=("${2%\%}") ;;
    --push) [ -n "$2" ] || usage_error '--push: no server'; push_url=$2 ;;
    --push-name) push_name=$2 ;;
    --push-label) push_labels+=("$2") ;;
    --push-tenant) push_tenant=$2 ;;
    --token-file) set_path "$2"; token_file=$path ;;
    --ca-file) set_path "$2"; ca_file=$path ;;
    --spool-size) spool_size=$2 ;;
    --alert) split_words "$2"; alert=("${words[@]}") ;;
    *) usage_error "unrecognised option '$1'" ;;
  esac
}

parse_options() {
  local option value
  while [ $# -gt 0 ]; do
    case $1 in
      --) shift; rest=("$@") has_rest=yes; break ;;
      -h | --help) help | print_all stdout; exit ;;
      --insecure-http) for_watch "$1"; insecure_http=yes ;;
      --*=*) set_option "${1%%=*}" "${1#*=}" ;;
      --*) option=$1; take_value "$@"; shift; set_option "$option" "$value" ;;
      -?*) usage_error "unrecognised option '$1'" ;;
      *) operands+=("$1") ;;
    esac
    shift
  done
  if [ "$command" = trend ]; then
    [ ${#operands[@]} -eq 1 ] || usage_error 'trend: needs one function'
  elif [ ${#operands[@]} -gt 0 ]; then
    usage_error "$command: what is '${operands[0]}'? A program goes behind --"
  fi
}
