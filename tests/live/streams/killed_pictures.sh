#!/bin/bash
# A stage of a script's pipeline is killed while it works, as happens for lack of memory.  The status is 125,
# the old flame graph stays, and no incomplete run looks complete.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
TMPDIR=$(mktemp -d "$dir.home.XXXX"); export TMPDIR  # recordings that were not drawn stay there
has() { grep -qF -e "$2" "$3" || fail "$1: no '$2' in $(cat "$3")"; }  # LABEL TEXT FILE
# kill_stage TOOL: makes a folder for PATH, in which TOOL is killed after its first bytes
kill_stage() {
  rm -rf bin
  mkdir bin
  printf '#!/bin/bash\n"%s" "$@" | head -c 300\nkill -KILL $$\n' "$(command -v "$1")" >"bin/$1"
  chmod +x "bin/$1"
}
scripts=(flamegraph)
! offcpu -q -o w.pe -- true 2>err || scripts+=(hotcold)
for tool in pe-symbolize stackfold flamesvg; do
  kill_stage $tool
  for script in "${scripts[@]}"; do
    echo '<svg class="flamegraph">old' >old.svg
    PATH=$dir/bin:$PATH "$PE_SCRIPTS/$script" old.svg -- "$PE_WORKLOAD" shares 0.2 >out 2>err
    expect "$script, $tool killed" 125 $?
    expect "$script, $tool killed: the picture" '<svg class="flamegraph">old' "$(cat old.svg)"
    has "$script, $tool killed" "$script: old.svg: not written" err
    PATH=$dir/bin:$PATH "$PE_SCRIPTS/$script" new.svg -- "$PE_WORKLOAD" shares 0.2 >out 2>err
    [ ! -e new.svg ] || fail "$script, $tool killed: half a picture"
    expect "$script, $tool killed: left" 'bin err old.svg out' "$(find . -mindepth 1 -maxdepth 1 ! -name w.pe ! -name 'kept*' -printf '%f\n' | sort | xargs)"
  done
done
for tool in pe-symbolize stackfold flamesvg stacktop; do
  kill_stage $tool
  PATH=$dir/bin:$PATH "$PE_SCRIPTS/profile_run" capture --output "kept-$tool" -- "$PE_WORKLOAD" shares 0.2 >out 2>err
  expect "capture, $tool killed" 125 $?
  has "capture, $tool killed" 'the run could not be written; the recording is kept in ' err
  "$PE_SCRIPTS/profile_run" list --output "kept-$tool" >out 2>err
  expect "capture, $tool killed: runs" 1 "$(wc -l <out)"
done

# The recorder is killed before its summary (--summary FD, its first words): its status is not the program's.
rm -rf bin
mkdir bin
# shellcheck disable=SC2016 # of the wrapper
printf '#!/bin/bash\n[[ $* != *-o* ]] || "%s" "${@:3}" 2>/dev/null\nout=$(grep -oz "[^ ]*raw.pe" /proc/$$/cmdline | tr -d "\\0")\ntruncate -s -100 "$out"\nkill -KILL $$\n' \
  "$(command -v pe-record)" >bin/pe-record
chmod +x bin/pe-record
PATH=$dir/bin:$PATH "$PE_SCRIPTS/profile_run" capture --output killed -- "$PE_WORKLOAD" shares 0.2 >out 2>err
expect 'capture, pe-record killed' 125 $?
has 'capture, pe-record killed' 'pe-record failed (exit status 137), so the run is incomplete' err
"$PE_SCRIPTS/profile_run" list --output killed >out 2>err
expect 'capture, pe-record killed: runs' 1 "$(wc -l <out)"
has 'capture, pe-record killed' 'unfinished: 1 capture,' err
echo '<svg class="flamegraph">old' >old.svg
PATH=$dir/bin:$PATH "$PE_SCRIPTS/flamegraph" old.svg -- "$PE_WORKLOAD" shares 0.2 >out 2>err
expect 'flamegraph, pe-record killed' 125 $?
expect 'flamegraph, pe-record killed: the picture' '<svg class="flamegraph">old' "$(cat old.svg)"
# If the program itself is killed, that is not our failure.
# shellcheck disable=SC2016 # for the shell that runs it
"$PE_SCRIPTS/profile_run" capture --output dead -- sh -c '"$0" shares 0.2; kill -KILL $$' "$PE_WORKLOAD" >out 2>err
expect 'capture of a program that is killed' 137 $?
[ -d "$(cat out)" ] || fail 'capture of a program that is killed: no run'
finish
