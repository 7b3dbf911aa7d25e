#!/bin/bash
# merge_fleet on this machine writes the same bytes as one stackfold, or reports why it cannot.
. "$(dirname "$0")/../live/lib.sh"
. "$(dirname "$0")/fleet_lib.sh"
command -v zstd >/dev/null || skip "no zstd here"
make_fleet
stackfold=$PE_TOOLS/stackfold

merge -j 1 -- "${names[@]}"; same 'at once'
merge -j 2 -- "${names[@]}"; same 'two branches'
merge -j 3 --fan-in 2 -- "${names[@]}"; same 'a tree of five levels'
expect 'lambdas of all machines' "java;L\$\$Lambda.run $((3 * 28))" "$(grep -a 'Lambda.run' "$dir/out")"
cp "$dir/want" "$dir/stripped"; stackfold "$dir/all" >"$dir/want"
merge --no-strip -j 3 --fan-in 2 -- "${names[@]}"; same 'names as they are'
expect 'lambdas as they are' 28 "$(grep -ac 'Lambda\$[0-9]*.run' "$dir/out")"
if command -v parallel >/dev/null; then
  merge --parallel --no-strip -j 2 --fan-in 5 -- "${names[@]}"; same 'names as they are, by GNU parallel'
fi
cp "$dir/stripped" "$dir/want"
[ ! -e pwned ] || fail 'a name was run'
printf '%s\0' "${names[@]}" >"$dir/list"
merge --fan-in=4 --files-from="$dir/list"; same 'names from a file'
"$tool" --fan-in 7 --files-from - <"$dir/list" >"$dir/out" 2>"$dir/err"; status=$?; same 'names from a pipe'
merge --stats --fan-in 5 --files-from "$dir/list"
grep -q "^merge_fleet: 29 files: read [0-9]* lines, a count of 13835058.*; wrote $(wc -l <"$dir/want") stacks$" "$dir/err" || fail "--stats: $(cat "$dir/err")"
cmp -s "$dir/want" "$dir/out" || fail '--stats: the output differs'

# Incomplete input must not look complete: with a single merge, and with several.
for way in '-j 1' '--fan-in 3'; do
  IFS=' ' read -ra options <<<"$way"
  merge "${options[@]}" -- "${names[@]}" 'not there'; refused "$way, missing" 'not there: No such file or directory'; empty "$way, missing"
  mkdir folder; merge "${options[@]}" -- "${names[@]}" folder; refused "$way, a folder" 'folder: not a readable file'; rmdir folder
  for cut in 'host-10' 'two words' 'a&b\1.gz' 'host-12.gz' 'host-14.zst'; do
    cp "$cut" "$dir/whole"; truncate -s -3 "$cut"
    merge "${options[@]}" -- "${names[@]}"; refused "$way, $cut is cut" "$cut"
    cp "$dir/whole" "$cut"
  done
  cp host-11 "$dir/whole"; sort -r "$dir/whole" >host-11
  merge "${options[@]}" -- "${names[@]}"; refused "$way, out of order" 'host-11:2'
  gzip <"$dir/whole" | sed 's/$/x/' >host-11
  merge "${options[@]}" -- "${names[@]}"; refused "$way, damaged" 'host-11: gzip'
  cat "$stackfold" >host-11
  merge "${options[@]}" -- "${names[@]}"; refused "$way, no folded text" 'host-11:'
  cp "$dir/whole" host-11
  "$tool" "${options[@]}" -- "${names[@]}" >/dev/full 2>"$dir/err"; expect "$way, a full disk" 1 $?
  left "$way, a full disk"
done
merge --fan-in 3 --temp "$dir/none" -- "${names[@]}"; refused 'no folder for what is half merged' "$dir/none"
merge; expect 'no file: status' 2 "$status"
merge --fan-in 1 host-11; expect '--fan-in 1: status' 2 "$status"
merge --jobs=none host-11; expect '--jobs: status' 2 "$status"

# Some branches silently lose a line, or die.
fake() { printf '%s\n' '#!/bin/bash' "$1" >"$dir/bin/stackfold"; chmod +x "$dir/bin/stackfold"; }
fake "case \"\$1\" in --merge-sorted) set -o pipefail; '$stackfold' \"\$@\" | sed 2d ;; *) exec '$stackfold' \"\$@\" ;; esac"
PATH=$dir/bin:$PATH merge --fan-in 3 -- "${names[@]}"; refused 'a lost line' 'something was lost'
fake "case \"\$*\" in *host-20*) kill -9 \$\$ ;; esac; exec '$stackfold' \"\$@\""
PATH=$dir/bin:$PATH merge --fan-in 3 -- "${names[@]}"; refused 'killed' 'status 137'; empty killed
mkfifo "$dir/begun"
fake "case \"\$1\" in --merge-sorted) echo \$\$ >'$dir/begun'; exec sleep 1000 ;; esac; exec '$stackfold' \"\$@\""
for way in '-j 1' '-j 1 --fan-in 3'; do
  IFS=' ' read -ra options <<<"$way"
  PATH=$dir/bin:$PATH "$tool" "${options[@]}" -- "${names[@]}" >"$dir/out" 2>"$dir/err" &
  read -r sleeper <"$dir/begun"
  # A signal to another thread does not end the wait of the main one: like a signal that comes just before the wait.
  threads=("/proc/$!/task/"*)
  kill "${threads[-1]##*/}"; wait "$!"; expect "$way, told to end" 143 $?
  left "$way, told to end"
  for ((i = 0; i < 500; i++)); do kill -0 "$sleeper" 2>/dev/null || break; sleep 0.02; done
  ! kill -0 "$sleeper" 2>/dev/null || fail "$way, told to end: stackfold runs on"
done
finish
