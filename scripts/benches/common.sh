# The harness of the benches, in bash.  A bench sources it, has a function for each of its parts, and ends with "$@":
# scripts/bench runs it with the name of a part, and prints the tables.  A part looks like this:
#
#   table 'a million lines of text'                    # its title
#   row stackfold "$tools/stackfold" "$input"          # a name and a command; the others are compared with the first row
#   peer perl perl.pl "perl x.pl '$input' | sort"      # another tool, if it is installed; otherwise the table says so
#   rounds 5 median all_cpu                            # measures all rows in turn, 5 times; the table has medians
#
# The last words of `rounds` are a function that runs "${commands[$row]}" and adds values to columns by `keep`.
# shellcheck shell=bash
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$root/build-bench
# shellcheck disable=SC2034 # of those that source this
tools=$folder/tools compiler=${CXX:-clang++} FLAMEGRAPH=${FLAMEGRAPH:-}
TIMEFORMAT='%3R %3U %3S'
work=$(mktemp -d "${FOLDER:-${TMPDIR:-/tmp}}/bench.XXXXXX")
target=  # process that is recorded
at_end=:  # command that a part leaves for its end
trap 'eval "$at_end"; [ -z "$target" ] || kill "$target" 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

configured() { [ -e "$folder/build.ninja" ] || meson setup "$folder" "$root" --buildtype=release >/dev/null; }

# build TARGET...: builds in build-bench with --buildtype=release
build() {
  configured
  ninja -C "$folder" "$@" >&2
}

# can_build TARGET: succeeds if everything that the target needs is installed
can_build() {
  configured
  ninja -C "$folder" -t targets all | grep -q "^$1:"
}

# ---- Tables

# told FIELD...: writes a line for scripts/bench
told() { (IFS=$'\t'; printf '%s\n' "$*") >>"$BENCH_FIGURES"; }

# figure GROUP MEASURE WHO VALUE UNIT: adds a figure to the table.  The others of a group are compared with its first
# WHO.
figure() {
  echo "  $3: $2 $4 $5"
  told figure "$@"
}

# lone_figure GROUP MEASURE WHO VALUE UNIT: adds a figure that is compared with nothing
lone_figure() {
  echo "  $3: $2 $4 $5"
  told lone "$@"
}

# skipped GROUP WHO WHY: adds a row that is not measured here
skipped() {
  echo "  skipped: $2 ($3)"
  told skipped "$1" '' "$2" "$3"
}

declare -A commands kept units results failed
table() {
  title=$1 rows=() columns=() commands=() kept=() units=() results=() failed=()
  echo "$title"
}

# row NAME COMMAND...: one word is text for the shell
row() {
  rows+=("$1")
  case $# in 2) commands[$1]=$2 ;; *) commands[$1]=$(printf '%q ' "${@:2}") ;; esac
}

# peer NEEDS NAME COMMAND...: adds the row if all programs that it NEEDS are installed; *.pl is in FLAMEGRAPH
peer() {
  local program
  for program in $1; do
    case $program in
      *.pl) [ -n "$FLAMEGRAPH" ] || { skipped "$title" "$2" 'FLAMEGRAPH names no checkout'; return; } ;;
      *) command -v "$program" >/dev/null || { skipped "$title" "$2" "$program is not installed"; return; } ;;
    esac
  done
  row "${@:2}"
}

# keep COLUMN UNIT VALUE: adds a value of this round to the row; an empty one, which could not be measured, is left out
keep() {
  [ -n "${units[$1]+set}" ] || columns+=("$1")
  units[$1]=$2
  [ -z "$3" ] || kept[$row/$1]+=$3$'\n'
}

median() { sort -n | awk '{ v[NR] = $0 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# Other load only adds.
least() { sort -n | head -n 1; }

# rounds COUNT HOW MEASURE...: measures every row in turn, so that other load meets all of them.  HOW is median or least.
# A row that fails is not measured again.
rounds() {
  local round row column
  for ((round = 0; round < $1; ++round)); do
    for row in "${rows[@]}"; do
      if [ -z "${failed[$row]:-}" ] && ! "${@:3}"; then
        failed[$row]=$(grep -avE '^$|^ |^Traceback' "$work/said" | tail -n 1 || :)
        failed[$row]=${failed[$row]:-it failed}
      fi
    done
  done
  for row in "${rows[@]}"; do
    [ -z "${failed[$row]:-}" ] || { skipped "$title" "$row" "does not run here: ${failed[$row]}"; continue; }
    for column in "${columns[@]}"; do
      [ -n "${kept[$row/$column]:-}" ] || continue
      results[$row/$column]=$(printf %s "${kept[$row/$column]}" | "$2")
      figure "$title" "$column" "$row" "${results[$row/$column]}" "${units[$column]}"
    done
  done
}

# calc EXPRESSION: prints its value by awk, or nothing if an operand is missing
calc() { awk "BEGIN { x = $1; printf (x < 0 ? -x : x) < 10000 ? \"%.4g\n\" : \"%.0f\n\", x }" 2>/dev/null; }

# ---- Ways to measure

# timed COMMAND...: runs it; sets $elapsed and $cpu, its own time and the CPU time of all its processes, in seconds.  Its
# output is discarded, its messages go to $work/said.
timed() {
  local status=0
  # In a shell of its own, which has no other children whose CPU time counts.
  ({ time "$@" >/dev/null 2>"$work/said" </dev/null; } 2>"$work/time") || status=$?
  # shellcheck disable=SC2034 # of the benches
  read -r elapsed cpu < <(awk '{ print $1, $2 + $3 }' "$work/time")
  return $status
}

# shellcheck disable=SC2016 # for the shell that runs it
own_times='TIMEFORMAT="%3R %3U %3S"; { time "$@" >/dev/null 2>&1; } 2>"$0"'
# under RECORDER COMMAND...: runs the command by the recorder, whose text is before it; sets $own_elapsed and $own_cpu, the
# command's own times, in addition to those of `timed`
under() {
  timed eval "$1 bash -c \"\$own_times\" '$work/used' $(printf '%q ' "${@:2}")" || return
  # shellcheck disable=SC2034 # of the benches
  read -r own_elapsed own_cpu < <(awk '{ print $1, $2 + $3 }' "$work/used")
}

# all_cpu: the CPU time of all processes of the row's command
all_cpu() {
  timed eval "${commands[$row]}" || return
  keep CPU s "$cpu"
}

# counts_runs: makes the kernel count the runs of eBPF programs and their time until the part ends; fails if it cannot
counts_runs() {
  local stats
  stats=$(cat /proc/sys/kernel/bpf_stats_enabled) && command -v bpftool >/dev/null || return
  at_end="sysctl -qw kernel.bpf_stats_enabled=$stats 2>/dev/null || :"
  sysctl -qw kernel.bpf_stats_enabled=1 2>/dev/null
}

# runs_of PID: prints the name of each eBPF program of the process, the nanoseconds of its runs, and their number.  Other processes of
# this machine have programs of the same names.
runs_of() {
  sed -n 's/^prog_id:[[:space:]]*//p' "/proc/$1/fdinfo"/* 2>/dev/null | sort -u | while read -r id; do bpftool prog show id "$id"; done |
    sed -nE 's/.* name ([^ ]+) .*run_time_ns ([0-9]+) run_cnt ([0-9]+).*/\1 \2 \3/p'
}

# user_cpu BYTES: user time and largest memory of the row's one process, and its speed with an input of so many BYTES
user_cpu() {
  local figures seconds
  figures=$(eval "\"$folder/tests/bench/measure\" 1 ${commands[$row]}" 2>"$work/said") || return
  seconds=${figures% *}
  keep 'user CPU' s "$seconds"
  keep memory MB "$(calc "${figures#* } / 1e6")"
  keep speed GB/s "$(calc "$1 / $seconds / 1e9")"
}

# folded_samples RECORDING [OPTION...]: writes $work/folded; sets $samples, $lost and $complete (stacks that reach the program's start,
# in percent)
folded_samples() {
  "$tools/pe-symbolize" --no-inline "${@:2}" "$1" 2>"$work/named-said" | "$tools/stackfold" --weight samples >"$work/folded" 2>/dev/null || :
  samples=$(sed -nE 's/.*: ([0-9]+) samples?.*/\1/p' "$work/named-said" | head -n 1)
  lost=$(sed -nE 's/.*[ ;]([0-9]+) samples? lost.*/\1/p' "$work/named-said" | head -n 1)
  lost=${lost:-0} complete=$(awk '{ all += $NF } /__libc_start_main|;start_thread;/ { n += $NF } END { if (all) printf "%.1f\n", 100 * n / all }' "$work/folded")
  # pe-symbolize is silent if nothing was lost, and all has a name.
  samples=${samples:-$(awk '{ all += $NF } END { print all + 0 }' "$work/folded")}
}
