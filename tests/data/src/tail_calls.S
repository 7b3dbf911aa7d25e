# Functions that end in jumps, and code that only looks so.  A return address of a function to_NAME is 5 bytes
# after its start, 6 if it calls through a slot.
# SPDX-License-Identifier: MIT
        .macro  function name
        .p2align 4
        .type   "\name", @function
"\name":
        .cfi_startproc
        .endm
        .macro  end name
        .cfi_endproc
        .size   "\name", . - "\name"
        .endm
        .macro  caller name
        function to_\name
        call    "\name"
        ret
        end     to_\name
        .endm

        .text
        function leaf
        nop
        nop
        nop
        ret
        end     leaf
        function leaf2
        nop
        ret
        end     leaf2
        function quiet
        nop
        ret
        end     quiet

        caller  direct
        function direct
        jmp     leaf
        end     direct
        caller  conditional
        function conditional
        test    %eax, %eax
        je      leaf
        jmp     leaf2
        end     conditional
        caller  chain
        function chain
        jmp     chain_b
        end     chain
        function chain_b
        nop
        jmp     leaf2
        end     chain_b

        # Two ways, and one that is shorter than another.
        caller  ways
        function ways
        je      way_a
        jmp     way_b
        end     ways
        caller  shortcut
        function shortcut
        je      way_a
        jmp     shared
        end     shortcut
        function way_a
        jmp     shared
        end     way_a
        function way_b
        jmp     shared
        end     way_b
        function shared
        nop
        ret
        end     shared
        # The second function may also jump elsewhere.
        caller  open
        function open
        jmp     open_b
        end     open
        function open_b
        je      leaf2
        jmp     *8(%rdi)
        end     open_b

        caller  computed
        function computed
        jmp     *8(%rdi)
        end     computed
        caller  through_array
        function through_array
        jmp     *(%rdx, %rax, 8)
        end     through_array
        caller  switch
        function switch
        lea     leaf(%rip), %rdx
        movslq  (%rdx, %rax, 4), %rax
        add     %rdx, %rax
        jmp     *%rax
        end     switch
        caller  notrack_switch
        function notrack_switch
        notrack jmp *%rax
        end     notrack_switch
        caller  quiet

        # They jump to chain_b, and perhaps elsewhere: by a table of functions that looks like a switch, by a
        # thunk that changes its return address, into the middle of a function, to code without unwind
        # information, and without symbols to a part of themselves.
        caller  with_table
        function with_table
        je      chain_b
        lea     leaf(%rip), %rdx
        movslq  (%rdx, %rax, 4), %rax
        add     %rdx, %rax
        jmp     *%rax
        end     with_table
        caller  with_thunk
        function with_thunk
        je      chain_b
        call    2f
1:      pause
        jmp     1b
2:      mov     %rax, (%rsp)
        ret
        end     with_thunk
        caller  with_middle
        function with_middle
        je      chain_b
        jmp     leaf + 1
        end     with_middle
        caller  with_bare
        function with_bare
        je      chain_b
        jmp     bare
        end     with_bare
        caller  with_part
        function with_part
        je      leaf
        jmp     chain_b
        end     with_part

        caller  with_push
        function with_push
        je      chain_b
        push    %r11
        ret
        end     with_push
        caller  with_last_call
        function with_last_call
        je      chain_b
        call    quiet
        end     with_last_call
        caller  with_trap
        function with_trap
        je      chain_b
        ud2
        end     with_trap
        caller  with_next
        function with_next
        je      chain_b
        nop
        end     with_next
        function below
        jmp     leaf2
        end     below

        # Parts of a function.
        caller  hot
        function hot
        test    %eax, %eax
        je      hot.cold
        ret
        end     hot
        caller  halves
        function halves
        test    %eax, %eax
        jne     halves.part.0
        ret
        end     halves
        function halves.part.0
        nop
        ret
        end     halves.part.0
        caller  clone
        function clone
        jmp     clone.isra.0
        end     clone
        function clone.isra.0
        jmp     clone.constprop.1
        end     clone.isra.0
        function clone.constprop.1
        nop
        ret
        end     clone.constprop.1
        .section .text.unlikely, "ax", @progbits
        .type   hot.cold, @function
hot.cold:
        .cfi_startproc
        nop
        jmp     leaf2
        end     hot.cold
        .text

        # Two names of one address.
        caller  alias_b
        function alias_a
alias_b:
        .type   alias_b, @function
        nop
        ret
        end     alias_a
        .size   alias_b, . - alias_b

        # A thunk of C++, and the thunks of retpolines.
        caller  _ZThn16_N4Impl2goEi
        function _ZThn16_N4Impl2goEi
        jmp     _ZN4Impl2goEi
        end     _ZThn16_N4Impl2goEi
        function _ZN4Impl2goEi
        nop
        ret
        end     _ZN4Impl2goEi
        caller  __x86_indirect_thunk_rax
        function __x86_indirect_thunk_rax
        jmp     *%rax
        end     __x86_indirect_thunk_rax
        caller  retpoline
        function retpoline
        jmp     __x86_indirect_thunk_rax
        end     retpoline

        # Calls that enter no function.
        function to_middle
        call    leaf + 1
        ret
        end     to_middle
        function to_next
        call    1f
1:      pop     %rax
        ret
        end     to_next
        # In -0x18(%rbp), e8 is five bytes before the return address.
        function to_looks_like_call
        mov     -0x18(%rbp), %rdi
        call    *0x10(%r8)
        ret
        end     to_looks_like_call

        # The call is the last instruction: the return address is that of another function.
        function to_end
        .skip   11, 0x90
        call    direct
        end     to_end

        # Without unwind information.
        .p2align 4
        .type   bare, @function
bare:   jmp     leaf
        .size   bare, . - bare
        caller  bare

        # A signal handler returns to it.  glibc's unwind information starts one byte before it.
        .p2align 4
        .cfi_startproc
        .cfi_signal_frame
        nop
        .type   signal_return, @function
signal_return:
        mov     $15, %rax
        syscall
        end     signal_return

        # To another file.
        function to_ext_plt
        call    ext@PLT
        ret
        end     to_ext_plt
        function to_ext_slot
        call    *ext@GOTPCREL(%rip)
        ret
        end     to_ext_slot
        caller  jump_plt
        function jump_plt
        jmp     ext@PLT
        end     jump_plt
        caller  jump_slot
        function jump_slot
        nop
        jmp     *ext@GOTPCREL(%rip)
        end     jump_slot
        function to_chosen
        call    chosen@PLT
        ret
        end     to_chosen
        caller  jump_chosen
        function jump_chosen
        jmp     chosen@PLT
        end     jump_chosen
        # To the allocator.
        caller  make
        function make
        jmp     malloc@PLT
        end     make
        function to_malloc
        call    malloc@PLT
        ret
        end     to_malloc
        .section .note.GNU-stack, "", @progbits
