# Symbols as in hand-written code.  Every byte is a nop, so the offsets in the
# comments also hold for i386.
# SPDX-License-Identifier: MIT
        .text
        .globl  sized, nested_outer, nested_inner, nested_innermost, no_size_global, last_label
        .type   sized, @function
sized:                          # 0: 16 bytes, but its size says 8
        .skip   16, 0x90
        .size   sized, 8

        .type   no_size_function, @function
no_size_function:               # 16: reaches to the next symbol
        .skip   16, 0x90
no_size_global:                 # 32: neither type nor size
        .skip   16, 0x90

        .type   nested_outer, @function
nested_outer:                   # 48: 64 bytes
        .skip   16, 0x90
        .type   nested_inner, @function
nested_inner:                   # 64: 32 bytes, within nested_outer
        .skip   8, 0x90
        .type   nested_innermost, @function
nested_innermost:               # 72: 8 bytes, within nested_inner
        .skip   8, 0x90
        .size   nested_innermost, 8
        .skip   16, 0x90
        .size   nested_inner, 32
        .skip   8, 0x90
label_inside:                   # 104: ends where nested_outer does
        .skip   8, 0x90
        .size   nested_outer, 64
        .skip   16, 0x90        # 112: belongs to no symbol

        .type   overlap_first, @function
overlap_first:                  # 128: 24 bytes
        .skip   16, 0x90
        .type   overlap_second, @function
overlap_second:                 # 144: 24 bytes, beyond the end of overlap_first
        .skip   8, 0x90
        .size   overlap_first, 24
        .skip   16, 0x90
        .size   overlap_second, 24
        .skip   8, 0x90         # 168: belongs to no symbol

last_label:                     # 176: reaches to the end of the section, at 192
        .skip   16, 0x90

        .data
        .globl  data_label
data_label:                     # not code
        .skip   16
        .set    absolute_number, 0x20
        .section .note.GNU-stack, "", @progbits
