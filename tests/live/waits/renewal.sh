#!/bin/bash
# When the kernel's tables of stacks and waits are nearly full, they are renewed.  No wait is lost, and each has
# its own stack.
. "$(dirname "$0")/../lib.sh"

offcpu --engine bpf -o "$dir/try.pe" -- sleep 0.1 2>"$dir/why" || skip "no eBPF here: $(cat "$dir/why")"

offcpu -v --engine bpf -o "$dir/w.pe" -- "$PE_MANY_WAITS" >"$dir/said" 2>"$dir/err"
expect 'status' 0 $?
# count BEFORE AFTER: prints the number between these texts in the closing lines, or 0
count() { grep -oP "$1\K[0-9]+(?=$2)" "$dir/err" || echo 0; }
at_least 'renewals' 2 "$(count 'renewed ' ' times')"

pe-symbolize -q "$dir/w.pe" | stackfold >"$dir/folded"
# Every sleep has a stack of its own, except for those whose stack had no room, or whose end was not seen.
sleeping=$(grep -cE ';main(;(one|zero)){80};sleep_once;' "$dir/folded")
missing=$(($(count '' ' stacks? had no room') + $(count '' ' waits? ended unseen') + $(count '' ' waits? had no room')))
at_least 'different sleeps' "$(cat "$dir/said")" $((sleeping + missing))
# The other thread's stacks stay, and the last ones of a thread get new numbers.
without=$(awk '!/;start_thread;|;__libc_start_main/ { n++ } END { print n + 0 }' "$dir/folded")
at_least "stacks without room, and $without waits have none" "$without" "$(count '' ' stacks? had no room')"
for place in 'sleep_apart' 'pthread_mutex_lock'; do
  at_least "other thread's waits in $place" 1 "$(grep -c ";start_thread;wait_throughout;$place;" "$dir/folded")"
done
finish
