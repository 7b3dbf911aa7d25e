# The benches source this file, in sh or bash.  It has the release build, and the figures for the table of
# scripts/bench.
# shellcheck shell=sh
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$root/build-bench
# shellcheck disable=SC2034 # of those that source this
tools=$folder/tools

configured() {
  [ -e "$folder/build.ninja" ] || meson setup "$folder" "$root" --buildtype=release >/dev/null
}

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

# told_machine TOOL [PROGRAM...]: prints the machine and the versions; it leaves out programs that are not
# installed.  If scripts/bench runs this bench, it has printed them already.
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

# told FIELD...: writes a line for scripts/bench
told() {
  [ -n "${BENCH_FIGURES:-}" ] || return 0
  line=$1
  shift
  for field in "$@"; do line="$line	$field"; done
  printf '%s\n' "$line" >>"$BENCH_FIGURES"
}

# figure GROUP MEASURE WHO VALUE UNIT: adds a figure to the table.  The others of a group are compared with
# its first WHO.
figure() { told figure "$@"; }

# lone_figure GROUP MEASURE WHO VALUE UNIT: adds a figure that is compared with nothing
lone_figure() { told lone "$@"; }

# skipped GROUP WHO WHY: adds a row that is not measured here
skipped() {
  echo "  skipped: $2 ($3)"
  told skipped "$1" '' "$2" "$3"
}
