#!/bin/bash
# A symbol without a size names its own function only, not those that follow without a symbol.
. "$(dirname "$0")/../lib.sh"
cat >"$dir/code.s" <<'END'
  .text
  .globl first
  .type first, @function
first:
  xor %eax, %eax
  ret
  .p2align 4
  .type second, @function
second:
  mov $200000000, %ecx
1:
  dec %ecx
  jne 1b
  ret
  .p2align 4
  .globl run
  .type run, @function
run:
  sub $8, %rsp
  call first
  call second
  add $8, %rsp
  ret
  .size run, . - run
  .section .note.GNU-stack, "", @progbits
END
echo 'void run(void); int main(void) { run(); run(); return 0; }' >"$dir/main.c"
cc -O1 -rdynamic -o "$dir/whole" "$dir/main.c" "$dir/code.s" || fail 'cc'
strip -o "$dir/sizeless" "$dir/whole"
start=$(nm "$dir/whole" | awk '$3 == "second" { sub(/^0+/, "", $1); print $1 }')
pe-record -q -F 499 -o "$dir/s.pe" -- "$dir/sizeless" || fail 'record'
pe-symbolize -q "$dir/s.pe" | stackfold >"$dir/folded"
expect 'samples named by the symbol before' 0.0 "$(share '[; ]first( |;|$)' "$dir/folded")"
at_least 'samples named by the place of their function, %' 50 "$(share "sizeless\+0x$start( |;)" "$dir/folded")"
finish
