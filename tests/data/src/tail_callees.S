# Functions that tail_calls.S calls in another file.
# SPDX-License-Identifier: MIT
        .text
        .macro  function name
        .p2align 4
        .type   \name, @function
\name:
        .cfi_startproc
        .endm
        .macro  end name
        .cfi_endproc
        .size   \name, . - \name
        .endm

        .globl  ext, chosen
        function ext
        nop
        jmp     ext_inner
        end     ext
        function ext_inner
        nop
        ret
        end     ext_inner

        # Its code chooses chosen_fast when the program starts.
        .p2align 4
        .type   chosen, @gnu_indirect_function
chosen: .cfi_startproc
        lea     chosen_fast(%rip), %rax
        ret
        end     chosen
        function chosen_fast
        nop
        ret
        end     chosen_fast
        .section .note.GNU-stack, "", @progbits
