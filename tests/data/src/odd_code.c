// Functions with data between their instructions, and static probes and symbols that name places
// where no instruction starts.  A probe there changes what the functions return.
//
// Usage: odd_code TIMES: calls each function TIMES times, and prints a line for each that has
// returned something else than the first time, or if a variable has changed.
// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FUNCTION(NAME, CODE)                                                     \
  ".globl " NAME "\n.type " NAME ", @function\n" NAME ":\n.cfi_startproc\n" CODE \
  ".cfi_endproc\n.size " NAME ", . - " NAME "\n"
#define SYMBOL(NAME) ".globl " NAME "\n.type " NAME ", @function\n.size " NAME ", 4\n" NAME ":\n"
#define NOTE(NAME, PLACE, SEMAPHORE)                                                          \
  ".pushsection .note.stapsdt, \"\", \"note\"\n.balign 4\n.4byte 8, 9f - 8f, 3\n"             \
  ".asciz \"stapsdt\"\n8: .8byte " PLACE ", 0, " SEMAPHORE "\n.asciz \"odd\"\n.asciz \"" NAME \
  "\"\n"                                                                                      \
  ".asciz \"\"\n9: .balign 4\n.popsection\n"

int in_table(int x);     // of bytes, one of which is that of `ret`
int behind_data(int x);  // the data looks like the start of an instruction
int in_switch(int x);    // a jump table
int calculated(int x);
__asm__(
    ".text\n" FUNCTION(
        "in_table",
        "lea table(%rip), %rax\nmovslq %edi, %rdi\nmovzbl (%rax, %rdi), %eax\njmp 1f\n" SYMBOL(
            "table") ".byte 0x90, 0xc3, 0x90, 0xc3\n1: ret\n")
        FUNCTION("behind_data", "mov %edi, %eax\njmp 1f\n.byte 0xb8\n1: ret\nnop\nnop\nnop\nnop\n")
            FUNCTION(
                "in_switch",
                "cmp $2, %edi\nja 9f\nlea jumps(%rip), %rdx\nmov %edi, %eax\n"
                "movslq (%rdx, %rax, 4), %rax\nadd %rdx, %rax\njmp *%rax\n"
                "1: mov $10, %eax\nret\n2: mov $20, %eax\nret\n3: mov $30, %eax\nret\n"
                "9: xor %eax, %eax\nret\n"
                ".pushsection .rodata\n.balign 4\njumps: .long 1b - jumps, 2b - jumps, 3b - jumps\n"
                ".popsection\n") FUNCTION("calculated", "lea 1(%rdi, %rdi, 2), %eax\n1: nop\nret\n")
                NOTE("inside", "calculated + 2", "0") NOTE("data", "table + 1", "0")
                    NOTE("changes", "calculated + 4", "odd_value")
                        NOTE("right", "calculated + 4", "0"));
__attribute__((section(".data"))) unsigned short odd_value = 0;

static const int kSwitched[4] = {10, 20, 30, 0};

static void check(const char* name, long i, int got, int wanted) {
  if (got != wanted)
    printf("%s: call %ld returned %d, not %d\n", name, i, got, wanted);
}

int main(int count, char** arguments) {
  const long times = count > 1 ? atol(arguments[1]) : 1;
  for (long i = 0; i < times; ++i) {
    check("in_table", i, in_table((int)(i % 4)), i % 2 == 0 ? 0x90 : 0xc3);
    check("behind_data", i, behind_data((int)i), (int)i);
    check("in_switch", i, in_switch((int)(i % 4)), kSwitched[i % 4]);
    check("calculated", i, calculated((int)i), (int)(3 * i + 1));
    check("value", i, *(volatile unsigned short*)&odd_value, 0);
  }
  return 0;
}
