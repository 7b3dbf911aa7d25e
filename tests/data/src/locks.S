# Functions of locks.cpp with uncommon call frame information; both post g_semaphore.
# SPDX-License-Identifier: MIT
        .text
# The CFA is rsp + 15 + 1, an expression that the kernel's unwinder cannot follow.
        .globl  release_uncommon
        .type   release_uncommon, @function
release_uncommon:
        .cfi_startproc
        endbr64
        subq    $8, %rsp
        .cfi_escape 0x0f, 4, 0x77, 15, 0x31, 0x22
        leaq    g_semaphore(%rip), %rdi
        call    sem_post@PLT
        addq    $8, %rsp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   release_uncommon, . - release_uncommon

# The CFA is 16, the value at rsp, where no memory is.
        .globl  release_lost
        .type   release_lost, @function
release_lost:
        .cfi_startproc
        endbr64
        pushq   $16
        .cfi_escape 0x0f, 3, 0x77, 0, 0x06
        leaq    g_semaphore(%rip), %rdi
        call    sem_post@PLT
        popq    %rax
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   release_lost, . - release_lost

        .section .note.GNU-stack, "", @progbits
