#!/bin/bash
# A function whose CFA is saved below the stack pointer, as in OpenSSL's sha512, has its callers with every engine,
# although kernels copy stacks from the stack pointer up.
. "$(dirname "$0")/../lib.sh"
cat >"$dir/code.s" <<'END'
  .text
  .globl busy
  .type busy, @function
busy:
  .cfi_startproc
  mov %rsp, %rax
  .cfi_def_cfa_register %rax
  sub $256, %rsp
  and $-64, %rsp
  mov %rax, 200(%rsp)
  .cfi_escape 0x0f, 6, 0x77, 0xc8, 0x01, 0x06, 0x23, 8  # CFA = *(rsp + 200) + 8
  pushq 200(%rsp)
  .cfi_escape 0x0f, 5, 0x77, 0, 0x06, 0x23, 8           # CFA = *rsp + 8
  lea 8(%rsp), %rsp
  .cfi_escape 0x0f, 5, 0x77, 0x78, 0x06, 0x23, 8        # CFA = *(rsp - 8) + 8
  mov $500000000, %ecx
1:
  dec %ecx
  jne 1b
  mov 200(%rsp), %rsp
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size busy, . - busy
  .section .note.GNU-stack, "", @progbits
END
cat >"$dir/main.c" <<'END'
void busy(void);
__attribute__((noinline)) void outer(void) { busy(); __asm__(""); }
int main(void) { outer(); return 0; }
END
cc -O1 -o "$dir/below" "$dir/main.c" "$dir/code.s" || fail 'cc'
met=0
for engine in perf bpf ptrace signal; do
  pe-record -q --engine $engine -F 499 -o "$dir/b.pe" -- "$dir/below" 2>/dev/null || continue
  pe-symbolize -q "$dir/b.pe" | stackfold | grep ';busy\|;outer' >"$dir/folded"
  [ -s "$dir/folded" ] || continue
  met=$((met + 1))
  at_least "$engine: stacks with the callers, %" 99 "$(share '^below;_start;.*;main;outer;busy' "$dir/folded")"
done
at_least 'engines that recorded it' 2 "$met"
finish
