#!/bin/sh
# A build without any of the parts that a build may leave out.  It compiles, says what it lacks, and records.
# It compiles only pe-record, which has all these parts, without optimization, by the faster of our compilers.  One of
# five changes pays for that (PE_SLICE of scripts/test), and all do with PE_ALL.
# Usage: left-out.sh SOURCE_FOLDER BUILD_FOLDER TOOLS_FOLDER     (the last has the tools of the whole build)
set -u
source=$1 build=$2 tools=$3 failed=0
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
HOME=$dir && export HOME
fail() { echo "FAILED: $*"; failed=1; }
[ -n "${PE_ALL:-}" ] || [ "${PE_SLICE:-0}" = 0 ] || { echo 'skipped: in one of five runs, and with PE_ALL'; exit 77; }

if [ ! -e "$build/build.ninja" ]; then
  compiler=$(command -v clang++) || compiler=c++
  if command -v ld.lld >/dev/null; then CXX_LD=lld; export CXX_LD; fi
  CXX="$(command -v ccache) $compiler" meson setup "$build" "$source" \
    -Dlanguages= -Dbpf=disabled -Dptrace=disabled -Dinprocess=disabled -Dprobes=disabled \
    -Dtests=false -Dbuildtype=plain -Dwerror=true >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
fi
ninja -C "$build" tools/pe-record >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
PATH=$build/tools:$tools:$PATH

# refused STATUS REASON TOOL ARGUMENT...
refused() {
  wanted=$1 reason=$2
  shift 2
  "$@" >"$dir/out" 2>"$dir/err"
  status=$?
  [ "$status" -eq "$wanted" ] || fail "$*: exit $status"
  [ "$(cat "$dir/err")" = "$1: this build has no $reason (see --help)" ] || fail "$*: $(cat "$dir/err")"
  [ ! -s "$dir/out" ] || fail "$*: wrote a stream"
}
for engine in bpf ptrace; do
  refused 2 "engine $engine (-D$engine=disabled)" pe-record --engine $engine -- true
done
refused 2 'engine signal (-Dinprocess=disabled)' pe-record --engine signal -- true
refused 2 'engine ptrace (-Dptrace=disabled)' pe-record --clock wall -p $$
refused 2 'probes (-Dprobes=disabled)' pe-record -e uprobe:/bin/sh:main -- true
refused 2 'probes (-Dprobes=disabled)' pe-record --list 'usdt:/bin/sh:*'
refused 2 'probes (-Dprobes=disabled)' pe-record --span main -- true

pe-record --check >"$dir/check"
for part in 'engine bpf (-Dbpf=disabled)' 'engine ptrace (-Dptrace=disabled)' 'engine signal (-Dinprocess=disabled)' \
  'library for traced programs (-Dinprocess=disabled)' 'probes (-Dprobes=disabled)' 'java, node, php, python, ruby (-Dlanguages)'; do
  grep -qF "left out of this build              $part" "$dir/check" || fail "--check: not '$part'"
done
for what in 'eBPF: stacks walked in the kernel' 'signals: commands sample themselves' 'ptrace: threads stopped and read'; do
  grep -Eq "^$what +no +this build has no engine" "$dir/check" || fail "--check: $what"
done
"$source/scripts/stackpipe" check | grep -q '^left out of this build  *probes' || fail 'stackpipe check'
"$tools/pe-record" --check | grep 'left out' && fail 'the whole build lacks something'

# The filters of the whole build read what it records.
if grep -Eq '^perf_event_open: own processes +yes' "$dir/check"; then
  # shellcheck disable=SC2016 # the inner shell counts
  pe-record -q -F 499 -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done' 2>"$dir/err" |
    pe-symbolize -q | stackfold -q >"$dir/folded" || fail "the pipeline: $(cat "$dir/err")"
  grep -q '^sh;.* [0-9]*$' "$dir/folded" || fail "no stacks: $(cat "$dir/folded" "$dir/err")"
else
  grep -Eq '^--engine auto would use +none$' "$dir/check" || fail 'an engine without counters'
  echo 'skipped: recording: perf_event_open is not permitted'
fi
exit $failed
