#!/bin/bash
# Stacks of threads that have not run an instruction yet are complete, and samples inside execve(2) have no frame
# of the program that is being replaced.  Counted from the folded text.
. "$(dirname "$0")/../lib.sh"
cat >"$dir/starts.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *nothing(void *unused) { return unused; }
int main(int argc, char **argv) {
  (void)argc;
  for (int i = 0; i < 2000; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) != 0) return 1;
    pthread_join(thread, NULL);
  }
  for (int i = 0; i < 200; ++i) {
    if (fork() == 0) { execl("/bin/true", "true", (char *)NULL); _exit(1); }
    wait(NULL);
  }
  return argv[0] == NULL;
}
END
cc -O1 -pthread -o "$dir/starts" "$dir/starts.c" || fail 'cc'
can_record --engine perf || skip 'no counters'
for engine in perf bpf; do
  pe-record -v --engine $engine -F 1999 -o "$dir/s.pe" -- "$dir/starts" 2>"$dir/err" || continue
  pe-symbolize -q "$dir/s.pe" | stackfold --annotate >"$dir/folded"
  expect "$engine: frames of programs that were replaced" '' "$(grep -E '^[^;#]*;\[unknown\][^;]*;entry_SYSCALL' "$dir/folded")"
  expect "$engine: starts of threads" 1 "$(grep -c -m1 ';clone3_' "$dir/folded")"
  printed=$(grep -o '[0-9.]* % of stacks complete' "$dir/err" | cut -d' ' -f1)
  expect "$engine: share of complete stacks, printed" "$(sed -n 's/^# complete-stacks: \([0-9.]*\) %/\1/p' "$dir/folded")" "$printed"
  at_least "$engine: complete stacks, %" 95 "$printed"
done
finish
