// SPDX-License-Identifier: MIT
#include "unwind/walk/go_frames.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "objects/go_functions.h"
#include "unwind/architecture.h"

namespace pe::unwind {
namespace {

/// Reads one of Go's varints: LEB128 of at most 32 bits.
std::optional<std::uint32_t> take_number(ByteReader& reader) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    const auto byte = reader.take<std::uint8_t>();
    if (!byte)
      return std::nullopt;
    value |= std::uint64_t{*byte & 0x7fU} << shift;
    if ((*byte & 0x80U) == 0)
      return static_cast<std::uint32_t>(value);
  }
  return std::nullopt;
}

/// Writes entries as in DWARF 5, 6.4.1, with the instructions that are needed here.
class Writer {
 public:
  Writer() {
    constexpr std::uint32_t kIsCie = 0xffffffff;
    begin(kIsCie);
    // Version 1, no augmentation; code counts in bytes, data in words downwards; rip is returned.
    put({1, 0, 1, 0x78, architecture::kInstructionPointer});
    put({DW_CFA_def_cfa, architecture::kStackPointer, architecture::kWordBytes});
    put({DW_CFA_offset | architecture::kInstructionPointer, 1});
    end();
  }

  void begin_function(const objects::GoFunction& function) {
    begin(0);
    put_value(function.start_svma);
    put_value(function.bytes);
  }
  void end() {
    const auto length = static_cast<std::uint32_t>(bytes_.size() - start_ - sizeof(std::uint32_t));
    std::memcpy(bytes_.data() + start_, &length, sizeof length);
  }

  void advance(std::uint32_t code_bytes) {
    put({DW_CFA_advance_loc4});
    put_value(code_bytes);
  }
  /// The stack pointer is `bytes` below the return address.  A function with a frame first stores
  /// the caller's frame pointer in it.
  void frame(std::uint32_t bytes) {
    put({DW_CFA_def_cfa_offset});
    put_number(std::uint64_t{bytes} + architecture::kWordBytes);
    if (bytes > 0)
      put({DW_CFA_offset | architecture::kFramePointer, 2});
    else
      put({DW_CFA_same_value, architecture::kFramePointer});
  }
  void no_caller() { put({DW_CFA_undefined, architecture::kInstructionPointer}); }
  /// rip = *(rbp + 8), rbp = *rbp, rsp = rbp + 16.
  void caller_by_frame_pointer() {
    constexpr std::uint8_t kByFramePointer = DW_OP_breg0 + architecture::kFramePointer;
    put({DW_CFA_def_cfa, architecture::kFramePointer, 16});
    put({DW_CFA_expression, architecture::kInstructionPointer, 2, kByFramePointer, 8});
    put({DW_CFA_expression, architecture::kFramePointer, 2, kByFramePointer, 0});
    put({DW_CFA_val_expression, architecture::kStackPointer, 2, kByFramePointer, 16});
  }

  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void begin(std::uint32_t id) {
    start_ = bytes_.size();
    put_value(std::uint32_t{0});
    put_value(id);
  }
  template <TriviallyCopyable T>
  void put_value(const T& value) {
    const auto added = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), added.begin(), added.end());
  }
  void put(std::initializer_list<std::uint64_t> values) {
    for (const std::uint64_t value : values)
      bytes_.push_back(static_cast<std::byte>(value));
  }
  void put_number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U)
      put({(value & 0x7fU) | 0x80U});
    put({value});
  }

  std::vector<std::byte> bytes_;
  std::size_t start_ = 0;
};

/// Functions of the scheduler: the goroutine that called one has left the thread, and may run
/// elsewhere.  Also the function that a signal handler returns to: the handler is the first of its
/// stack.
bool leaves_its_caller(std::string_view name) {
  return name == "runtime.mcall" || name == "runtime.gogo" || name.starts_with("runtime.sigreturn");
}

/// A frame of more than a GiB is invalid, because Go's stacks are not larger.
void write_frames(const objects::GoFunction& function, Writer& writer) {
  constexpr std::uint32_t kMostBytes = std::uint32_t{1} << 30;
  constexpr std::size_t kMostPairs = std::size_t{1} << 16;  // common functions have 10 bytes
  ByteReader reader(function.pairs.first(std::min(function.pairs.size(), kMostPairs)));
  std::uint64_t at = 0;
  std::uint32_t last_bytes = 0;
  auto value = std::numeric_limits<std::uint32_t>::max();  // -1
  for (bool is_first = true; at < function.bytes; is_first = false) {
    const auto change = take_number(reader);
    const auto bytes = take_number(reader);
    if (!change || !bytes || *bytes == 0 || (*change == 0 && !is_first))
      break;
    value += (*change & 1U) != 0 ? ~(*change >> 1U) : *change >> 1U;
    if (value > kMostBytes)
      break;
    if (at != 0)
      writer.advance(last_bytes);
    writer.frame(value);
    at += *bytes;
    last_bytes = *bytes;
  }
}

void write_function(const objects::GoFunction& function, Writer& writer) {
  writer.begin_function(function);
  if ((function.flags & objects::GoFunction::kIsFirst) != 0 || leaves_its_caller(function.name))
    writer.no_caller();
  else if ((function.flags & objects::GoFunction::kWritesStackPointer) != 0)
    writer.caller_by_frame_pointer();
  else
    write_frames(function, writer);
  writer.end();
}

}  // namespace

std::vector<std::byte> go_frames(Bytes table, std::uint64_t text_svma,
                                 const objects::Image* image) {
  const objects::GoFunctions functions(table, text_svma);
  if (functions.size() == 0)
    return {};
  Writer writer;
  for (std::size_t i = 0; i < functions.size() && writer.size() < kMaxGoFramesBytes; ++i) {
    if (image != nullptr && (!image->may_go_on() || !image->may_hold(writer.size())))
      return {};
    if (const auto function = functions.function(i))
      write_function(*function, writer);
  }
  return writer.take();
}

std::vector<std::byte> go_frames(const objects::Image& image) {
  const auto table = objects::go_table(image);
  return table ? go_frames(table->section.bytes, table->text_svma, &image)
               : std::vector<std::byte>();
}

}  // namespace pe::unwind
