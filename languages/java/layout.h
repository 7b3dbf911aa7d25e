// Where a HotSpot JVM keeps its code and its methods.
//
// Nearly all of it is what the JVM itself describes (binary.h).  It does not describe these:
//
//   - the places of the method and of the bytecode's address in a frame of the interpreter:
//     src/hotspot/cpu/x86/frame_x86.hpp, the same in OpenJDK 17, 21 and 25;
//   - how integers are compressed: share/code/compressedStream.cpp of 17, share/utilities/
//     unsigned5.hpp since 20, in which no byte is zero;
//   - since 25, that the metadata of compiled code follows its relocations: share/code/nmethod.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::languages {

/// Offsets and sizes are in bytes.
struct HotspotLayout {
  std::uint32_t version = 0;           ///< 17
  std::uint64_t heaps = 0;             ///< avma of CodeCache::_heaps
  std::uint64_t interpreter = 0;       ///< avma of AbstractInterpreter::_code
  std::uint64_t call_stub_return = 0;  ///< avma of StubRoutines::_call_stub_return_address
  std::uint64_t return_barrier = 0;    ///< avma of StubRoutines::_cont_returnBarrier; 0: none
  std::uint64_t entry_return = 0;      ///< avma of ContinuationEntry::_return_pc; 0: none

  std::uint32_t array_length;  ///< in GrowableArray, as the next
  std::uint32_t array_data;
  std::uint32_t heap_memory;  ///< in CodeHeap, as the next two
  std::uint32_t heap_segments;
  std::uint32_t heap_segment_shift;
  std::uint32_t space_low;    ///< in VirtualSpace, as the next
  std::uint32_t space_high;   ///< its reserved end: heaps grow all the time
  std::uint32_t block_bytes;  ///< the size of HeapBlock
  std::uint32_t block_used;
  std::uint32_t queue_buffer;  ///< in StubQueue, as the next
  std::uint32_t queue_bytes;

  std::uint32_t blob_name;  ///< in CodeBlob, as the next five
  std::uint32_t blob_size;
  std::uint32_t blob_frame_words;
  std::uint32_t blob_frame_complete;
  std::uint32_t blob_code_start;
  std::uint32_t blob_code_end;
  /// The code's places and others are offsets from the blob, and offsets of frames have two bytes;
  /// before 23 the former are addresses, and the latter have four bytes.
  bool has_offsets;
  std::uint32_t blob_mutable_data;  ///< in CodeBlob, if has_offsets, as the next
  std::uint32_t blob_relocation_size;

  std::uint32_t code_method;  ///< in nmethod, as the next ones
  std::uint32_t code_compile_id;
  std::uint32_t code_metadata;  ///< only if not has_offsets
  std::uint32_t code_scopes;
  std::uint32_t code_pc_descs;
  std::uint32_t code_pc_descs_end;  ///< only if not has_offsets
  std::uint32_t code_immutable;     ///< only if has_offsets, as the next
  std::uint32_t code_immutable_size;
  std::uint32_t code_deopt_handler;
  std::uint32_t code_original_pc;

  std::uint32_t method_const;  ///< in Method
  std::uint32_t const_pool;    ///< in ConstMethod, as the next five
  std::uint32_t const_words;
  std::uint32_t const_flags;
  std::uint32_t const_code_size;
  std::uint32_t const_name;
  std::uint32_t const_bytes;    ///< the size of ConstMethod
  std::uint32_t has_lines_bit;  ///< in its flags
  std::uint32_t pool_holder;    ///< in ConstantPool, as the next two
  std::uint32_t pool_length;
  std::uint32_t pool_file;
  std::uint32_t pool_bytes;  ///< the size of ConstantPool
  std::uint32_t klass_name;
  std::uint32_t symbol_length;  ///< in Symbol, as the next
  std::uint32_t symbol_body;

  /// Words from the frame pointer of an interpreter's frame, which are negative.
  std::int32_t frame_sender_sp = -1, frame_method = -3, frame_bytecode = -8;
  /// What is added to each byte of a compressed integer.
  std::uint32_t compressed_excess = 0;
};

/// All fields of code and of methods that are read are within these bytes.
inline constexpr std::uint32_t kMostFieldOffset = 1024;

}  // namespace pe::languages
