#!/bin/bash
# The disk is full, standard output is closed or its reader is gone, at every stage.  One message reports the
# file that could not be written, and why; if the reader is gone, there is none.  The status is not 0.  No
# incomplete file can be mistaken for a complete one.
# shellcheck disable=SC2317 # functions are called by name
. "$(dirname "$0")/../lib.sh"
if [ -z "${IN_NAMESPACE:-}" ] && unshare --mount true 2>/dev/null; then
  IN_NAMESPACE=1 exec unshare --mount "$0"  # a namespace, to mount a disk of our own
fi
cd "$dir" || exit 1
export HOME=$dir
scripts=$PE_SCRIPTS engines=
for engine in perf bpf signal ptrace; do
  can_record --engine $engine 2>/dev/null && engines+=" $engine"
done
sleep 600 & target=$!
pe-record -q -F 997 -o r.pe -- "$PE_WORKLOAD" shares 0.2 2>err || fail "$(cat err)"
pe-symbolize -q r.pe >n.pe
stackfold n.pe >n.folded 2>/dev/null
stackfold --to pprof n.pe >n.pb.gz
for _ in {1..400}; do cat n.folded; done | awk '{ print "frame" NR % 2000 ";" $0 }' >long.folded  # more than 64 KiB
for _ in 1 2; do "$scripts/profile_run" capture --output runs -- "$PE_WORKLOAD" shares 0.1 >/dev/null 2>err || fail "$(cat err)"; done

# every_stage HOW: calls HOW STATUS-OF-FAILURE COMMAND... for each command that writes to standard output
every_stage() {
  local engine
  for engine in $engines; do
    "$1" 125 pe-record -q -e cpu-clock -F 997 --engine "$engine" -- "$PE_WORKLOAD" shares 0.05
    [ "$engine" = signal ] || "$1" 1 pe-record -q -e cpu-clock -F 997 --engine "$engine" -p $target -d 0.1
    case $engine in perf | bpf) "$1" 125 offcpu -q --engine "$engine" -- sleep 0.01 ;; esac
  done
  "$1" 125 malloctrace -q -- true
  "$1" 125 malloctrace -q --report -- true
  "$1" 1 pe-record --check
  "$1" 1 pe-symbolize -q r.pe
  for form in pprof speedscope firefox; do "$1" 1 stackfold --to $form n.folded; done
  "$1" 1 stackfold n.folded
  "$1" 1 stackfold --merge-sorted n.folded n.folded
  "$1" 1 flamesvg --title t long.folded
  "$1" 1 flamediff --period 1 n.folded long.folded
  "$1" 1 flamediff --period 1 --text n.folded long.folded
  "$1" 1 flamediff --folded n.folded long.folded
  for form in --tsv --json --tree; do "$1" 1 stacktop $form n.folded; done
  "$1" 1 "$scripts/merge_fleet" n.folded n.folded
  "$1" 1 "$scripts/profile_run" --help
  "$1" 1 "$scripts/profile_run" list --output runs
  "$1" 1 "$scripts/profile_run" trend --output runs work
  "$1" 1 "$scripts/profile_run" diff --output runs --before previous
  "$1" 1 "$scripts/profile_run" ci --shares --output runs --baseline previous
  "$1" 1 "$scripts/profile_run" flamegraph --output runs
  "$1" 125 "$scripts/profile_run" capture --output runs -- "$PE_WORKLOAD" shares 0.1
}

# check LABEL STATUS PATTERN: checks the last command: its status, and that exactly one line reports the
# failure, in the name of the called command.  Other lines may be numbers, and notes on the input.
check() {
  expect "$1: status, '$(cat "$err")'" "$2" "$status"
  [ "$3" = quiet ] || expect "$1: lines that tell of it, in '$(cat "$err")'" 1 "$(grep -cE "^[a-z_-]+: $3\$" "$err")"
  if grep -qE 'line [0-9]+: |terminate called|core dumped|Aborted' "$err"; then fail "$1: $(cat "$err")"; fi
}

full() { "${@:2}" >/dev/full 2>"$err"; status=$?; check "full: ${*:2}" "$1" '.*stdout: No space left on device'; }
closed() { "${@:2}" >&- 2>"$err"; status=$?; check "closed: ${*:2}" "$1" '.*stdout: Bad file descriptor'; }
# The pipe's reader has ended without reading.
exec {gone}> >(:)
wait $!
gone() {
  "${@:2}" 1>&"$gone" 2>"$err"; status=$?; check "reader gone: ${*:2}" 141 quiet
  ! grep -qi 'pipe' "$err" || fail "reader gone: ${*:2}: $(cat "$err")"
}
# Each way has a target of its own, because only one process can trace a target.
in_way() {  # HOW
  local err=$1.err target
  sleep 600 & target=$!
  every_stage "$1"
  kill $target
  finish
}
for how in full closed gone; do
  in_way $how >$how.told 2>&1 &
  ways[$!]=$how
done
for way in "${!ways[@]}"; do wait "$way" || { cat "${ways[way]}.told"; failed=1; }; done
expect 'runs that could not be told of are kept' 5 "$("$scripts/profile_run" list --output runs | grep -c default)"

# Output files of the tools: on a disk that is full, and on one that fills up.
mkdir disk
out=disk/out
if [ -n "${IN_NAMESPACE:-}" ] && mount -t tmpfs -o size=256k none disk 2>err; then
  disk=disk
else
  echo "no disk of our own (root, and unshare --mount): files are /dev/full only: $(cat err)"
  disk='' out=/dev/full
fi
err=err
# leave PAGES: leaves that many pages of the disk free
leave() {
  rm -rf disk/* disk/.[!.]*
  dd if=/dev/zero of=disk/fill bs=4096 count=$((64 - $1)) status=none
}
message=".*(disk|$(dirname $out))/[^ ]*: No space left on device"

# on_disk ROOMS STATUS COMMAND...: for commands that have --output
on_disk() {
  local room
  for room in $1; do
    [ -z "$disk" ] || leave "$room"
    "$3" -o $out "${@:4}" >/dev/null 2>err; status=$?
    check "disk, $room pages: ${*:3}" "$2" "$message"
    [ -n "$disk" ] || continue
    # The remaining file must not look complete.
    case $3 in
      flamediff | flamesvg | pe-symbolize | stackfold | stacktop) [ ! -s disk/out ] || fail "disk, $room pages: ${*:3}: half a file is left" ;;
      *) if pe-symbolize disk/out >/dev/null 2>err; then fail "disk, $room pages: ${*:3}: half a stream passes for whole"; fi ;;
    esac
  done
}
for engine in $engines; do
  kept=--keep-stacks  # for a stream that does not fit
  [ "$engine" != bpf ] || kept=--no-cache  # this engine has no stacks to keep
  on_disk '0 1' 125 pe-record -q -e cpu-clock -F 997 --engine "$engine" $kept -- "$PE_WORKLOAD" shares 0.1
  case $engine in perf | bpf) on_disk 0 125 offcpu -q --engine "$engine" -- sleep 0.01 ;; esac
done
on_disk 0 125 malloctrace -q -- true
for kind in --folded --period\ 1; do
  # shellcheck disable=SC2086 # an option and its value
  on_disk '0 2' 1 flamediff $kind n.folded long.folded
done

for command in 'flamesvg long.folded' 'pe-symbolize -q r.pe' 'stackfold long.folded' 'stacktop --tsv long.folded'; do
  # shellcheck disable=SC2086 # a command and its arguments
  on_disk 0 1 $command
done

if [ -n "$disk" ]; then
  # fails STATUS PATTERN COMMAND...: runs the command while the disk has no room
  fails() {
    leave 0
    "${@:3}" >out 2>err; status=$?
    check "disk: ${*:3}" "$1" "$2"
  }
  # Flame graphs: a new one does not exist; an old one is unchanged if the drawing did not start.
  for script in flamegraph hotcold; do
    fails 125 'disk/p.svg: not written' "$scripts/$script" disk/p.svg -- "$PE_WORKLOAD" shares 0.1
    [ ! -e disk/p.svg ] || fail "$script: half a picture is left"
    # The recording is in TMPDIR, and a line names it.
    kept=$(grep ' kept[:;] ' err | grep -oE '/[^ ]*/(raw|waits)\.pe') || fail "$script: the recording is not kept: $(cat err)"
    pe-symbolize -q "$kept" >/dev/null 2>&1 || fail "$script: the kept recording: $kept"
    rm -r "${kept%/*}"
    echo '<svg class="flamegraph">old' >old.svg
    TMPDIR=$dir/disk fails 125 "$message" "$scripts/$script" old.svg -- true
    expect "$script: the old picture" '<svg class="flamegraph">old' "$(cat old.svg)"
  done
  for command in "diff --before previous" flamegraph "trend work"; do
    # shellcheck disable=SC2086 # words
    fails 1 'disk/p.svg: not written' "$scripts/profile_run" $command --output runs --svg disk/p.svg
    [ ! -s disk/p.svg ] || fail "profile_run $command: half a picture is left"
  done
  fails 1 "$message" "$scripts/profile_run" ci --shares --output runs --baseline previous --summary disk/summary
  fails 125 "$message" "$scripts/profile_run" capture --output disk -- "$PE_WORKLOAD" shares 0.1
  expect 'capture: runs' '' "$("$scripts/profile_run" list --output disk 2>/dev/null | grep default)"
  # A watch goes on, and says so.
  "$scripts/profile_run" watch --output disk --pid $target --interval 0.1 --duration 0.1 2>err; expect 'watch: status' 0 $?
  grep -q 'no room on the disk: samples are dropped until there is some' err || fail "watch: $(cat err)"
  fails 1 "$message" "$scripts/profile-push" --spool disk/spool n.pb.gz
  expect 'profiles in the spool' '' "$(find disk/spool -name '*.gz')"
  for number in {1..40}; do cp n.folded host"$number".folded; done
  fails 1 "$message"': nothing is written' "$scripts/merge_fleet" --temp disk host*.folded
  [ ! -s out ] || fail 'merge_fleet: half of it is written'
  expect 'merge_fleet: left' fill "$(ls disk)"

  # The recorder counts binaries that it could not keep; the recording itself succeeds.
  cp "$PE_WORKLOAD" gone
  ./gone shares 60 & gone=$!
  until [ "$(readlink "/proc/$gone/exe")" = "$dir/gone" ]; do sleep 0.02; done
  rm gone
  HOME=$dir/disk fails 0 '.* binary file not kept: ~/.debug cannot be written: .*' pe-record -e cpu-clock -F 997 -p $gone -d 0.3 -o kept.pe
  kill $gone
  at_least 'samples, ~/.debug on a full disk' 1 "$(fold kept.pe 2>/dev/null | awk '{ n += $NF } END { print n + 0 }')"
  # Snapshots are complete, or do not exist.
  fails 125 'disk/heap: No space left on device' malloctrace -q --snapshot 0.1 -o disk/heap -- sleep 0.5
  at_least 'snapshots that are told not to be there' 1 "$(grep -c '^malloctrace: no snapshot: disk/heap.1: No space left on device$' err)"
  expect 'snapshots' '' "$(ls disk/heap.* 2>/dev/null)"
  umount disk
fi
finish
