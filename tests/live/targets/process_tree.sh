#!/bin/bash
# --root tree: each of 200 programs that run for a millisecond is below the command line of its parent, and has its own with
# the engine bpf.  Waits for children are left out, and their sum is reported.
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC2016 # the scripts' variables
echo 'for i in $(seq 100); do /bin/true "$1" "$i"; done' >"$dir/many.sh"
# shellcheck disable=SC2016
echo 'bash "$1" A & bash "$1" B; wait' >"$dir/both.sh"
set -- bash "$dir/both.sh" "$dir/many.sh"
both="bash $dir/both.sh $dir/many.sh;bash $dir/many.sh"

# Each process calls _exit() once.
libc=$(ldd "$BASH" | awk '/libc\.so/ { print $3 }')
if pe-record --engine bpf -e "uprobe:$libc:_exit" -o "$dir/b.pe" -- "$@" 2>"$dir/err"; then
  fold "$dir/b.pe" --root tree >"$dir/b.folded"
  for parent in A B; do
    expect "programs of $parent, by bpf" 100 \
      "$(grep -o "^$both $parent;true $parent [0-9]*;" "$dir/b.folded" | sort -u | wc -l)"
  done
  expect 'all programs, by bpf' 200 "$(awk '/;true/ { n += $NF } END { print n + 0 }' "$dir/b.folded")"
elif grep -qi ebpf "$dir/err"; then
  echo "not by bpf: $(cat "$dir/err")"
else
  fail "bpf: $(cat "$dir/err")"
fi
# The perf engine reads command lines in /proc, so those of brief processes may be missing.  Names and parents are not.
if pe-record --engine perf -e sched:sched_process_exit -c 1 -o "$dir/p.pe" -- "$@" 2>"$dir/err"; then
  fold "$dir/p.pe" --root tree >"$dir/p.folded"
  expect 'programs, by perf' 200 "$(PARENTS="^bash( $dir/both.sh $dir/many.sh)?;bash( $dir/many.sh [AB])?;true( [AB] [0-9]*)?;" \
    awk '$0 ~ ENVIRON["PARENTS"] { n += $NF } END { print n + 0 }' "$dir/p.folded")"
fi

offcpu -o "$dir/o.pe" -- "$@" 2>"$dir/err"
expect status 0 $?
fold "$dir/o.pe" --root command >"$dir/command.folded"
fold "$dir/o.pe" --root tree >"$dir/tree.folded" 2>"$dir/said"
grep -q 's of waits for children left out, because the children are drawn (keep them: stackfold --root command)$' "$dir/said" ||
  fail "says: $(cat "$dir/said")"
# Users without privileges have no kernel frames.
if grep -q ';do_syscall_64' "$dir/command.folded"; then
  at_least 'waits for children, as commands, us' 1000 "$(awk '/;do_wait/ { n += $NF } END { print n + 0 }' "$dir/command.folded")"
  expect 'waits for children in the tree' 0 "$(grep -c ';do_wait' "$dir/tree.folded")"
fi
# It may have no other waits than those for its children.
grep -q "^bash $dir/many.sh A;" "$dir/command.folded" || fail 'no waits of A'
[ "$failed" = 0 ] || head -c 3000 "$dir"/*.folded

# The front door passes the option on, and refuses other values before it records anything.
"$PE_SCRIPTS/stackpipe" record -q --root tree -o "$dir/r.folded" -- "$@" || fail 'stackpipe record'
grep -q "^$both [AB];" "$dir/r.folded" || fail 'no tree by stackpipe record'
"$PE_SCRIPTS/stackpipe" waits -q --root tree -o "$dir/w.folded" -- "$@" || fail 'stackpipe waits'
grep -q "^$both [AB];.*_\[o\] " "$dir/w.folded" || fail 'no tree by stackpipe waits'
! grep -q '^[^;]*_\[o\];' "$dir/w.folded" || fail 'roots have marks of waits'
"$PE_SCRIPTS/stackpipe" record --root parent -o "$dir/n.folded" -- touch "$dir/ran" 2>"$dir/err"
expect 'status of a wrong value' 2 $?
[ ! -e "$dir/ran" ] || fail 'recorded with a wrong value'
finish
