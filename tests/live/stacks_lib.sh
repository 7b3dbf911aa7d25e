# Tests source this file after lib.sh.  It defines how the stacks of data/src/stacks.cpp must look, case by
# case.
# PE_STACKS is the folder of its builds.  PE_VERBOSE=1 prints all measurements, not only failures.
# shellcheck shell=bash

# If Debian's libc has no debug symbols, the start of a thread and the caller of main() have no names.
nameless='(\[libc\.so\.6\]|libc\.so\.6\+0x[0-9a-f]+)'
thread_root="((__)?clone3|$nameless);(start_thread|$nameless);"
main_root="_start;__libc_start_main[^;]*;(__libc_start_call_main|$nameless);main;run_case;"

# frames NAME COUNT: prints COUNT frames called NAME, each with its semicolon
frames() { printf "$1;%.0s" $(seq "$2"); }

# root_of CASE: prints how the case's stacks start, after the name of the thread
root_of() {
  case $1 in
    thread*) echo "($thread_root|$main_root)" ;;  # the second is the main thread's: it starts and joins threads
    *) echo "$main_root" ;;
  esac
}

# path_of CASE: prints the frames from the root to where the case spends its time
path_of() {
  case $1 in
    alloca) echo 'alloca_case;spin' ;;
    realigned) echo 'realigned_case;realigned;spin' ;;
    signal) echo 'signal_case;interrupted_(within|first);[^;]+;handle_signal;spin' ;;
    exception) echo 'exception_case[ ;.]' ;;
    plt) echo 'plt_case(;call_tiny_often)?(;[^;]+)? ' ;;
    lazy) echo 'lazy_case;lazy_entry ' ;;
    thread*) echo "(pthread_root|([^;]+;)*std_thread_root);$(frames descend "${1#thread=}")spin" ;;
    recursion) echo "recursion_case;$(frames dive 20)spin" ;;
    recursion=*) echo "recursion_case;$(frames dive "${1#recursion=}")spin" ;;
    memcpy) echo 'memcpy_case;copy_blocks;[^;]+ ' ;;
    qsort) echo 'qsort_case;([^;]+;)+compare_slowly ' ;;
    vdso) echo 'vdso_case;read_clocks[ ;]' ;;
    syscall) echo 'syscall_case;read_zeros;[^;]*read' ;;
    tail) echo 'tail_case;(tail_jump;)?tail_target;spin' ;;
    noreturn) echo 'noreturn_case;ends_in_a_call;give_up;spin' ;;
    unwritten=*) echo "unwritten_case;$(frames deeper_unwritten $((${1#unwritten=} / 16)))spin" ;;
    deep=*) echo "deep_case;$(frames deeper $((${1#deep=} / 16)))spin" ;;
  esac
}

# check_case LABEL FOLDED CASE SAMPLES: requires at least SAMPLES samples, 99 % of them complete to the root,
# and 95 % on the known path.  The rest are in other code of the case: it reads the clock, and an outer loop
# runs the inner one.
# exception: 97 % here, and 99 % for all builds together.  While the C++ runtime enters a landing pad, it
# overwrites the registers that it saved with those of the landing pad.  This affects 0 to 3 of 250 samples;
# perf sees the same.
# deep, unwritten: 97 %, because the recorder finds out by trial how much of the process's memory it must
# read.  The stacks of 20 to 40 ms stay cut.
check_case() {
  local root path complete known least=99
  grep "^$3;" "$2" >"$dir/case"
  if [ "$3" = exception ]; then
    least=97
    cat "$dir/case" >>"$dir/exceptions"
  fi
  case $3 in deep=* | unwritten=*) least=97 ;; esac
  at_least "$1, $3: samples" "$4" "$(awk '{ n += $NF } END { print n + 0 }' "$dir/case")"
  root="^[^;]+;$(root_of "$3")" path=$(path_of "$3")
  complete=$(share "$root" "$dir/case") known=$(share "$root$path" "$dir/case")
  [ -z "${PE_VERBOSE:-}" ] || echo "$1, $3: $complete % complete, $known % on the known path"
  at_least "$1, $3: complete stacks, %" $least "$complete"
  at_least "$1, $3: stacks on the known path, %" 95 "$known"
  awk -v c="$complete" -v k="$known" -v l=$least 'BEGIN { exit !(c < l || k < 95) }' &&
    grep -vE "$root$path" "$dir/case" | awk '{ print $NF, $0 }' | sort -rn | head -3 | cut -c1-500
}

# check_exceptions: checks "$dir/exceptions", which has the samples of all builds
check_exceptions() {
  at_least 'exceptions of all builds: thrown from below, %' 85 "$(share ';exception_case(\.cold)?;throw_below[ ;.]' "$dir/exceptions")"
  at_least 'exceptions of all builds: complete stacks, %' 99 "$(share "^[^;]+;$main_root" "$dir/exceptions")"
}

# check_altstack LABEL FOLDED: a copy of the handler's own stack holds the registers of the function that the
# signal interrupted, but not that function's callers.  The stack must have at least this function; a stack
# with more must be complete.
check_altstack() {
  local handler="interrupted_within;$nameless;handle_signal;spin"
  grep '^altstack;' "$2" >"$dir/case"
  at_least "$1, altstack: the handler below what it interrupted, or all, %" 99 \
    "$(share "^altstack;(\[unknown\];|${main_root}altstack_case;)?$handler" "$dir/case")"
}

# program_of BUILD: sets `program` to the file of this build.  It fails if there is none, because
# scripts/setup installs both compilers.
program_of() {
  program=$PE_STACKS/stacks_$1
  [ -x "$program" ] || { fail "$program is not built: no compiler for it?"; return 1; }
}

# Interrupts come anywhere, and more often on a busy machine.
without_kernel_frames() { sed -E 's/(;[^;]*_\[k\])+ ([0-9]+)$/ \2/'; }

# While the kernel allocates the page that the stack has just reached, the copy is empty.  This takes long if
# memory is short.  perf, too, sees nothing but the function that reached the page.
without_first_touches() { sed -E '/^[^;]+;[^;]+;asm_exc_page_fault_\[k\]/d'; }

# fold_cases LABEL STREAM: makes $dir/LABEL.folded, and $dir/LABEL.closing of the messages
fold_cases() {
  pe-symbolize "$2" 2>"$dir/$1.closing" | stackfold --kernel 2>>"$dir/$1.closing" |
    without_first_touches | without_kernel_frames >"$dir/$1.folded"
}

# check_cases LABEL STREAM SAMPLES CASE...: after a failure it prints what pe-symbolize reported about the
# stream
check_cases() {
  local case failed_before=$failed
  fold_cases "$1" "$2"
  for case in "${@:4}"; do
    if [ "$case" = altstack ]; then
      check_altstack "$1" "$dir/$1.folded"
    else
      check_case "$1" "$dir/$1.folded" "$case" "$3"
    fi
  done
  [ "$failed" = "$failed_before" ] || cat "$dir/$1.closing"
}

# Some builds are checked together: a case has as many samples as in one build alone, and all builds have a part in it.
# One build whose stacks are wrong in a case spoils the case.
declare -A pooled_ms=()

# pool_cases LABEL STREAM MS CASE...: adds the stream, in which each case runs for MS milliseconds, to the common samples
pool_cases() {
  local case
  fold_cases "$1" "$2"
  cat "$dir/$1.folded" >>"$dir/pooled.folded"
  cat "$dir/$1.closing" >>"$dir/pooled.closing"
  for case in "${@:4}"; do
    at_least "$1, $case: samples" $(($3 / 2)) "$(grep "^$case;" "$dir/$1.folded" | awk '{ n += $NF } END { print n + 0 }')"
    pooled_ms[$case]=$((${pooled_ms[$case]:-0} + $3))
  done
}
# check_pool: checks the common samples
check_pool() {
  local case failed_before=$failed
  for case in "${!pooled_ms[@]}"; do
    check_case 'all other builds' "$dir/pooled.folded" "$case" $((pooled_ms[$case] * 6 / 10))
  done
  [ "$failed" = "$failed_before" ] || cat "$dir/pooled.closing"
}
