# Sourced by the benches, in sh or bash: the release build, and figures that scripts/bench puts into its table.
# shellcheck shell=sh
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$root/build-bench
# shellcheck disable=SC2034 # of those that source this
tools=$folder/tools

configured() {
  [ -e "$folder/build.ninja" ] || meson setup "$folder" "$root" --buildtype=release >/dev/null
}

# build TARGET...: in build-bench, by --buildtype=release
build() {
  configured
  ninja -C "$folder" "$@" >&2
}

# can_build TARGET: whether what it needs is installed
can_build() {
  configured
  ninja -C "$folder" -t targets all | grep -q "^$1:"
}

# told_machine TOOL [PROGRAM...]: what measures, and by which versions; programs that are not installed are left out.
# With scripts/bench in front of it, that has told it.
told_machine() {
  [ -z "${BENCH_FIGURES:-}" ] || return 0
  echo "machine: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, load $(cut -d' ' -f1-3 /proc/loadavg)"
  echo "versions: $("$tools/$1" --version), $(uname -sr)"
  shift
  for program in "$@"; do
    ! command -v "$program" >/dev/null || "$program" --version 2>/dev/null | head -n 1
  done
}

median() { sort -n | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# told FIELD...: a line for scripts/bench
told() {
  [ -n "${BENCH_FIGURES:-}" ] || return 0
  line=$1
  shift
  for field in "$@"; do line="$line	$field"; done
  printf '%s\n' "$line" >>"$BENCH_FIGURES"
}

# figure GROUP MEASURE WHO VALUE UNIT: a figure of the table; who comes first in a group is what others are compared with.
figure() { told figure "$@"; }

# lone_figure GROUP MEASURE WHO VALUE UNIT: one that is compared with nothing
lone_figure() { told lone "$@"; }

# skipped GROUP WHO WHY: a row that is not measured here
skipped() {
  echo "  skipped: $2 ($3)"
  told skipped "$1" '' "$2" "$3"
}
