#!/bin/bash
# merge_fleet by GNU parallel, on this machine and by ssh on several hosts, writes the same bytes as one process, also if
# a host ends in the middle.
. "$(dirname "$0")/../live/lib.sh"
. "$(dirname "$0")/fleet_lib.sh"
for program in zstd ssh /usr/sbin/sshd parallel; do
  command -v "$program" >/dev/null || skip "no $program here"
done
case $(parallel --version 2>/dev/null) in 'GNU parallel'*) ;; *) skip "no GNU parallel here" ;; esac
make_fleet
PATH=$PATH:$PE_SCRIPTS
hosts=()
start_hosts "$dir/ssh" 3
remote=(--ssh 'h1,h2,h3' --ssh-config "$dir/ssh/config")

merge --parallel -j 2 --fan-in 8 -- "${names[@]}"; same 'GNU parallel'
merge "${remote[@]}" -j 2 --fan-in 8 --temp "$dir/temp" -- "${names[@]}"; same 'ssh'
three=("${names[0]}" "${names[8]}" 'ünï.zst')
merge "${remote[@]}" -j 1 --stats -- "${three[@]}"
grep -q '^merge_fleet: 3 files: read [0-9]* lines, a count of' "$dir/err" || fail "ssh --stats: $(cat "$dir/err")"
stackfold --merge-sorted --strip-names "${three[@]:0:2}" <(zstd -dcq 'ünï.zst') | cmp -s - "$dir/out" || fail 'ssh: a single merge differs'
[ ! -e pwned ] || fail 'a name was run'

# Incomplete input must not look complete.
cp host-17.gz "$dir/whole"; truncate -s -3 host-17.gz
for way in --parallel '--ssh h1,h3 --ssh-config '"$dir/ssh/config"; do
  IFS=' ' read -ra options <<<"$way"
  merge "${options[@]}" -j 2 --fan-in 12 -- "${names[@]}"; refused "$way, a file is cut" 'host-17.gz'; empty "$way, a file is cut"
done
cp "$dir/whole" host-17.gz
merge "${remote[@]}" -- 'not there'; refused 'ssh: a missing file' 'not there: No such file'; empty 'ssh: a missing file'

# GNU parallel reads more than names in --sshlogin.
for bad in -oProxyCommand=x 'h1;touch pwned' ..; do
  merge --ssh "$bad" host-11; expect "--ssh '$bad': status" 2 "$status"
done
merge --ssh h1 --parallel host-11; expect '--ssh and --parallel: status' 2 "$status"
merge --ssh-config /dev/null host-11; expect '--ssh-config alone: status' 2 "$status"
merge --ssh h1 --ssh-config "$dir/none" host-11; refused 'no configuration' "$dir/none"

# merge_fleet is asked to end: its merge on the host ends, too.  GNU parallel would overlook one that is just starting, so
# there is only one.
block_first "$dir/ssh/h1/stackfold"
"$tool" --ssh h1 --ssh-config "$dir/ssh/config" -j 1 --fan-in 10 -- "${names[@]}" >"$dir/out" 2>"$dir/err" </dev/null & merging=$!
read -r sleeper <"$begun"
kill "$merging"; wait "$merging"; expect 'ssh, asked to end' 143 $?
left 'ssh, asked to end'
await_end 'ssh, asked to end' "$sleeper"
rm "$dir/ssh/h1/stackfold"

# A host ends after a merge has sent a part of its output.  No part of it counts.
block_first "$dir/ssh/h2/stackfold"
"$tool" "${remote[@]}" -j 1 --fan-in 10 -- "${names[@]}" >"$dir/out" 2>"$dir/err" </dev/null & merging=$!
read -r sleeper <"$begun"
chain=()
process=$sleeper
while [ "$process" -gt 1 ] && [ "$process" -ne "${hosts[2]}" ]; do
  case $(cat "/proc/$process/comm") in sshd*) chain+=("$process") ;; esac
  process=$(parent_of "$process")
done
[ "${#chain[@]}" -gt 0 ] || fail 'no session of sshd is above the merge'
kill -9 "${hosts[2]}" "${chain[@]}"
wait "$merging"; status=$?
grep -avE '^(ssh|Connection|client_loop|Read from remote)' "$dir/err" >"$dir/err.2"; mv "$dir/err.2" "$dir/err"
same 'ssh, a host ends'
await_end 'ssh, a host ends' "$sleeper"

kill -9 "${hosts[1]}" "${hosts[3]}"
wait "${hosts[1]}" "${hosts[3]}" 2>/dev/null
merge "${remote[@]}" -j 1 --fan-in 15 -- "${names[@]}"; refused 'ssh: no host is left' 'status 255'; empty 'ssh: no host is left'
printf '#!/bin/sh\n' >"$dir/bin/parallel"; chmod +x "$dir/bin/parallel"
PATH=$dir/bin:$PATH merge --parallel -j 2 -- "${names[@]}"; refused 'another parallel' 'GNU parallel is not installed: apt-get install parallel'
finish
