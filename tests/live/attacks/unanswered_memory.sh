#!/bin/bash
# A program cannot make a recorder wait for memory that never comes: beside its stack it has a file of its own FUSE
# mount, which answers nothing.  Even SIGKILL would not end a recorder that reads it.
. "$(dirname "$0")/../lib.sh"
can_record --engine ptrace 2>"$dir/err" || skip "$(cat "$dir/err")"
"$PE_UNANSWERED" 0.01 2>"$dir/err"; status=$?
[ $status != 77 ] || skip "$(cat "$dir/err")"
expect 'alone: status' 7 $status
for kind in '' asynchronous; do
  # shellcheck disable=SC2086 # none, or a word
  timeout -k 5 60 pe-record --engine ptrace -F 499 -o "$dir/x.pe" -- "$PE_UNANSWERED" 0.5 $kind 2>"$dir/err"
  expect "$kind: status" 7 $?
  grep -q '(unanswered) lost names or callers' "$dir/err" || fail "$kind: not said: $(cat "$dir/err")"
done
finish
