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

#include "unwind/architecture.h"

namespace pe::unwind {
namespace {

constexpr std::uint32_t kMagic118 = 0xfffffff0, kMagic120 = 0xfffffff1;
constexpr std::uint64_t kTextStartOffset = 24;  ///< of the field in the header
constexpr std::size_t kEntryBytes = 8;          ///< of an entry in the list of functions

struct Header {
  std::uint32_t magic;
  std::array<std::uint8_t, 2> zeros;
  std::uint8_t code_unit, pointer_bytes;
  std::uint64_t functions, files, text_start;
  std::uint64_t names, compile_units, file_names, pairs, function_list;  ///< offsets
};
static_assert(sizeof(Header) == 72);

struct Description {
  std::uint32_t code, name, arguments, deferred, stack_pointer, file, line, pair_count,
      compile_unit;
};

enum Flag : std::uint8_t { kIsFirst = 1, kWritesStackPointer = 2 };

/// The facts of one function.
struct Function {
  std::uint64_t start_svma, bytes;
  std::string_view name;
  std::uint8_t flags;
  Bytes pairs;
};

/// Returns the bytes from `offset` on; empty if that is outside.
Bytes from(Bytes bytes, std::uint64_t offset) {
  return offset < bytes.size() ? bytes.subspan(static_cast<std::size_t>(offset)) : Bytes();
}

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

class Table {
 public:
  Table(Bytes bytes, std::uint64_t text_svma) : bytes_(bytes), text_svma_(text_svma) {
    ByteReader reader(bytes);
    const auto header = reader.take<Header>();
    if (!header || (header->magic != kMagic118 && header->magic != kMagic120) ||
        header->zeros != decltype(header->zeros){} || header->pointer_bytes != 8 ||
        header->code_unit != 1)
      return;
    header_ = *header;
    if (header_.text_start != 0)
      text_svma_ = header_.text_start;
    constexpr std::uint64_t kMostText = std::uint64_t{1} << 62;  // so that sums do not overflow
    if (text_svma_ > kMostText)
      return;
    list_ = from(bytes, header_.function_list);
    // One more word follows the entries: the end of the last function.
    const std::uint64_t most = list_.size() / kEntryBytes;
    count_ = header_.functions < most ? static_cast<std::size_t>(header_.functions) : 0;
  }

  [[nodiscard]] std::size_t size() const noexcept { return count_; }

  /// Returns nullopt if the function is unreadable.
  [[nodiscard]] std::optional<Function> function(std::size_t number) const {
    const std::uint32_t start = word(number * kEntryBytes);
    const std::uint32_t end = word((number + 1) * kEntryBytes);
    const std::uint32_t offset = word(number * kEntryBytes + sizeof start);
    ByteReader reader(from(list_, offset));
    const auto description = reader.take<Description>();
    const bool has_line = header_.magic == kMagic120;
    constexpr std::size_t kId = 1;
    if (end <= start || !description || !reader.skip((has_line ? sizeof(std::uint32_t) : 0) + kId))
      return std::nullopt;
    const auto flags = reader.take<std::uint8_t>();
    if (!flags)
      return std::nullopt;
    ByteReader name(from(from(bytes_, header_.names), description->name));
    return Function{.start_svma = text_svma_ + start,
                    .bytes = end - start,
                    .name = name.take_string().value_or(std::string_view()),
                    .flags = *flags,
                    .pairs = from(from(bytes_, header_.pairs), description->stack_pointer)};
  }

 private:
  [[nodiscard]] std::uint32_t word(std::size_t offset) const {
    return ByteReader(from(list_, offset)).take<std::uint32_t>().value_or(0);
  }

  Bytes bytes_;
  std::uint64_t text_svma_;
  Header header_{};
  Bytes list_;
  std::size_t count_ = 0;
};

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

  void begin_function(const Function& function) {
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
void write_frames(const Function& function, Writer& writer) {
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

void write_function(const Function& function, Writer& writer) {
  writer.begin_function(function);
  if ((function.flags & kIsFirst) != 0 || leaves_its_caller(function.name))
    writer.no_caller();
  else if ((function.flags & kWritesStackPointer) != 0)
    writer.caller_by_frame_pointer();
  else
    write_frames(function, writer);
  writer.end();
}

/// For a program that can be loaded anywhere, a relocation's addend gives the place of the code.
std::optional<std::uint64_t> relocated_word(const objects::Image& image, std::uint64_t svma) {
  struct Relocation {
    std::uint64_t svma, info;
    std::int64_t addend;
  };
  const auto section = image.section_bytes(".rela.dyn");
  ByteReader reader(section ? Bytes(section->bytes) : Bytes());
  while (const auto relocation = reader.take<Relocation>())
    if (relocation->svma == svma)
      return static_cast<std::uint64_t>(relocation->addend);
  return std::nullopt;
}

}  // namespace

std::vector<std::byte> go_frames(Bytes table, std::uint64_t text_svma,
                                 const objects::Image* image) {
  const Table functions(table, text_svma);
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
  auto table = image.section_bytes(".gopclntab");
  if (!table)
    table = image.section_bytes(".data.rel.ro.gopclntab");
  const objects::Section* text = image.section(".text");
  if (!table || text == nullptr)
    return {};
  return go_frames(table->bytes,
                   relocated_word(image, table->svma + kTextStartOffset).value_or(text->svma),
                   &image);
}

}  // namespace pe::unwind
