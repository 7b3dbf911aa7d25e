// The code that a HotSpot JVM has made (methods that it compiled, its interpreter, and stubs), and
// the methods in it.
//
// Code is in a few heaps.  A heap consists of segments, and a map with a byte a segment leads to
// the start of the block that a segment belongs to.  A block holds one CodeBlob: a header with the
// size of the frame, and the code.
//
// All of it is untrusted, and may change while it is read: every length is bounded.
//
// Sources: OpenJDK, src/hotspot/share/memory/heap.cpp (CodeHeap::find_block_for), code/codeBlob.hpp
// and code/nmethod.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "languages/common/memory.h"
#include "languages/java/layout.h"

namespace pe::languages {

/// The fields of a blob; those of a method differ if another one has its place.
struct CodeBlob {
  enum class Kind : std::uint8_t {
    kMethod,       ///< compiled, or the entry of a native one
    kInterpreter,  ///< all frames have the interpreter's form
    kStub,         ///< code of the JVM itself, with a frame if frame_words is not 0
  };
  Kind kind = Kind::kStub;
  std::uint64_t start = 0, end = 0;            ///< avma, as the next ones
  std::uint64_t code_start = 0, code_end = 0;  ///< without the header and data
  std::uint64_t name = 0;                      ///< of a text
  std::uint32_t frame_words = 0;               ///< with the return address; 0: not known
  std::uint64_t frame_complete = 0;            ///< the frame exists from here on

  // Of compiled methods only:
  std::uint64_t method = 0;  ///< avma of the Method, as the next ones of tables
  std::uint64_t metadata = 0;
  std::uint64_t scopes = 0, scopes_end = 0;
  std::uint64_t pc_descs = 0, pc_descs_end = 0;
  std::uint64_t deopt_handler = 0;  ///< replaces return addresses of frames to be interpreted
  std::uint32_t original_pc = 0;    ///< bytes from the frame's end to the replaced address
  std::uint32_t compile_id = 0;

  [[nodiscard]] bool contains(std::uint64_t avma) const noexcept {
    return avma >= code_start && avma < code_end;
  }
  bool operator==(const CodeBlob&) const = default;
};

/// Code with more bytes is ignored.
inline constexpr std::uint64_t kMostCodeBytes = std::uint64_t{64} << 20U;

class CodeCache {
 public:
  /// Reads where the heaps are; none if that is unreadable.
  void read(Memory& memory, const HotspotLayout& layout);

  /// Whether `avma` is in a heap.
  [[nodiscard]] bool contains(std::uint64_t avma) const noexcept;
  /// Returns whether the interpreter had been made at the last read().
  [[nodiscard]] bool has_interpreter() const noexcept { return interpreter_end_ != 0; }
  /// Returns the avma of the blob with the code at `avma`; nullopt if there is none.
  std::optional<std::uint64_t> find(Memory& memory, const HotspotLayout& layout,
                                    std::uint64_t avma) const;
  /// Reads a blob; nullopt if it is unreadable or damaged.
  std::optional<CodeBlob> blob(Memory& memory, const HotspotLayout& layout,
                               std::uint64_t start) const;

 private:
  struct Heap {
    std::uint64_t low = 0, high = 0;  ///< avma
    std::uint64_t segments = 0;       ///< avma of the map
    std::uint32_t shift = 0;          ///< log2 of the bytes of a segment
  };
  std::vector<Heap> heaps_;
  std::uint64_t interpreter_start_ = 0, interpreter_end_ = 0;
};

// The methods that a HotSpot JVM has compiled into one piece of code, inlined ones too.
//
// A table of PcDesc, by offset in the code, leads into a stream of compressed integers: for each
// method at that place where its caller is described, its number among the code's metadata, and the
// bytecode that it executes, plus one.  The JVM describes the places of calls and of its other safe
// points.  Between them, the next one is used, as the JVM itself does; there, which of the inlined
// methods executes is a guess, while the method that inlines them is right.
//
// Sources: OpenJDK, src/hotspot/share/code/pcDesc.hpp, scopeDesc.cpp, debugInfo.hpp; nmethod.cpp
// (find_pc_desc).

/// A method at a place in compiled code.
struct Scope {
  std::uint64_t method = 0;    ///< avma of the Method
  std::uint32_t bytecode = 0;  ///< offset of the bytecode that it executes
  bool operator==(const Scope&) const = default;
};

/// Returns the methods at `avma` in compiled code, the innermost first.  There is always one: the
/// code's own method.  `avma` is a return address, or an address that is executed.
std::vector<Scope> scopes_at(Memory& memory, const HotspotLayout& layout, const CodeBlob& blob,
                             std::uint64_t avma);

/// More methods than that, inlined into each other, are cut at the root.
inline constexpr std::size_t kMostScopes = 256;

}  // namespace pe::languages
