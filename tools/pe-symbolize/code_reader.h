// Reads the code of a file: which function a return address returns from, and to which functions a
// function jumps.
//
// The instruction before a return address is a call.  x86-64 code cannot be decoded backwards, so
// the bytes are compared with the two calls that name their target: e8 with a distance, and ff 15
// with the distance of a slot.  Other bytes can look like e8; the target then is no function, or
// the code is decoded from the start of the function.
//
// A function is what one entry of the unwind information covers.  Its jumps are found by decoding
// it from the start to the end: compilers put no data between instructions.
//
// The file is untrusted: each address is checked before it is read, and a limit bounds the bytes
// that are decoded of one file.
//
// Cost: 0.5 us for a return address, 130 ns for each instruction of a function.
// Source: Intel SDM, volume 2, CALL and JMP.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/budget.h"
#include "base/byte_reader.h"
#include "objects/image.h"
#include "objects/plt.h"
#include "unwind/function_ranges.h"
#include "unwind/x86_64_instruction.h"

namespace pe::symbolize {

/// Returns the name without the suffixes that compilers append to parts and copies of a function.
std::string_view without_part(std::string_view symbol);

/// The start of a function in the same file, or the name of a function that the loader finds.
struct Target {
  std::uint64_t svma = 0;   ///< 0: only the name is known
  std::string symbol = {};  ///< empty: a function of the file
};

/// A jump out of a function.
struct Jump {
  std::uint64_t next_svma;  ///< of the next instruction
  Target to;
  bool is_conditional;
};

/// The jumps of a function that may lead to others.
struct Jumps {
  std::vector<Jump> named;                 ///< those whose target the code names
  std::vector<std::uint64_t> into_middle;  ///< addresses (svma) that are not the start of one
  bool has_computed = false;  ///< it also jumps to an address that it computes, not in a switch
  bool has_switch = false;    ///< it has what looks like a switch, and may be a table of functions
  bool is_whole = false;      ///< false: the code was not decoded to its end, or runs on after it
};

class CodeReader {
 public:
  using Range = unwind::FunctionRanges::Range;
  struct Source {
    /// Opens the same file again; nullopt if that is no longer possible.  May be empty.
    std::function<std::optional<objects::Image>()> open;
    /// Returns the functions of the file, which must outlive the reader.
    std::function<const unwind::FunctionRanges*()> ranges;
  };
  /// `spender` pays for the reading.
  CodeReader(objects::Image image, Spender spender, Source source);
  CodeReader(const CodeReader&) = delete;
  CodeReader(CodeReader&&) = delete;
  CodeReader& operator=(const CodeReader&) = delete;
  CodeReader& operator=(CodeReader&&) = delete;
  ~CodeReader() = default;

  [[nodiscard]] std::optional<std::uint64_t> svma_of(std::uint64_t file_offset) const noexcept {
    return image_.svma_of_file_offset(file_offset);
  }
  /// Returns the file offset of code; nullopt if no code is at `svma`.
  [[nodiscard]] std::optional<std::uint64_t> file_offset_of(std::uint64_t svma) const noexcept {
    return objects::file_offset_of_code(image_.segments(), svma);
  }

  /// Returns the function at `svma`.  nullopt where unwind information has none, in stubs that jump
  /// to other files, and in the code to which a signal handler returns.
  std::optional<Range> function_at(std::uint64_t svma);
  /// A call that may be before a return address.
  struct Call {
    std::uint64_t svma = 0;  ///< of its target, or of the slot that holds the target
    bool is_by_slot = false;
    bool operator==(const Call&) const = default;
  };
  /// Returns what may be called before `return_svma`, by the bytes there; nullopt if the call does
  /// not name its target.
  std::optional<Call> call_before(std::uint64_t return_svma);
  /// Returns the function that is called; nullopt if none starts there.
  std::optional<Target> target_of(const Call& call);
  /// Returns the jumps of a function to other places.
  Jumps jumps_of(const Range& function);

  /// Returns the functions of that name that the file offers to others, one for each version;
  /// nullopt if it has a table that cannot be read.
  std::optional<std::vector<objects::Export>> exports_of(std::string_view symbol);

  /// Closes the file until its contents are needed again.
  void close() noexcept {
    image_.close_file();
    pages_ = {};
  }
  [[nodiscard]] bool is_open() const noexcept { return image_.fd() >= 0; }
  /// Returns the bytes of code that have been decoded.
  [[nodiscard]] std::uint64_t decoded_bytes() const noexcept { return decoded_bytes_; }
  Spender& spender() noexcept { return spender_; }

  static constexpr std::uint64_t kMostFunctionBytes = std::uint64_t{1} << 20;
  static constexpr std::uint64_t kMostDecodedBytes = std::uint64_t{16} << 20;

 private:
  static constexpr std::uint64_t kPageBytes = 4096, kNoPage = ~std::uint64_t{0};
  struct Page {
    std::uint64_t number;
    std::array<std::byte, kPageBytes> bytes;
  };
  /// An instruction, its bytes, and those of the instruction before it.
  struct Step {
    unwind::Instruction instruction;
    Bytes bytes, before;
    std::uint64_t next_svma;
  };
  bool leaves_by_table(const Step& step, const Range& function);
  void add_jump(const Step& step, const Range& function, Jumps& jumps);
  bool read(std::uint64_t svma, std::span<std::byte> into);
  bool read_at(std::uint64_t file_offset, std::span<std::byte> into);
  bool reopen();
  const unwind::FunctionRanges& ranges();
  std::optional<std::vector<std::byte>> code_of(const Range& function);
  bool is_instruction(std::uint64_t svma);
  bool decodes_to(std::uint64_t svma);
  [[nodiscard]] bool is_stub(std::uint64_t svma) const noexcept;
  std::optional<Target> behind_stub(std::uint64_t svma);
  std::optional<std::string> symbol_of_slot(std::uint64_t slot_svma);
  std::optional<Target> target_at(std::uint64_t svma);

  objects::Image image_;
  Spender spender_;
  Source source_;
  const unwind::FunctionRanges* ranges_ = nullptr;  ///< once needed
  std::uint64_t decoded_bytes_ = 0;
  bool has_slots_ = false;
  std::optional<objects::ExportTable> exports_;  ///< nullopt: not yet read
  std::array<std::unique_ptr<Page>, 4096>
      pages_;                                   ///< of the file, by the lowest bits of the number
  std::map<std::uint64_t, std::string> slots_;  ///< names of functions, by svma
  std::unordered_map<std::uint64_t, bool> calls_;  ///< is_instruction(), by svma
};

}  // namespace pe::symbolize
