// The tables by which a HotSpot JVM describes its own structures, and its layout by them.
//
// libjvm.so exports them for debuggers, also when it is stripped.  gHotSpotVMStructs lists fields
// with their offsets, or the addresses of static ones; gHotSpotVMTypes lists sizes of types;
// gHotSpotVMIntConstants lists constants.  Further symbols hold the layout of the entries.
//
// The tables are read from the memory of a process, which is untrusted: their lengths are bounded,
// as are those of their texts.
//
// Source: OpenJDK, src/hotspot/share/runtime/vmStructs.hpp.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "languages/common/memory.h"
#include "languages/java/layout.h"
#include "objects/image.h"

namespace pe::languages {

/// The exported variables that are read.
enum HotspotVariable : std::uint8_t {
  kVmFields,
  kVmFieldType,
  kVmFieldName,
  kVmFieldIsStatic,
  kVmFieldOffset,
  kVmFieldAddress,
  kVmFieldStride,
  kVmTypes,
  kVmTypeName,
  kVmTypeSize,
  kVmTypeStride,
  kVmConstants,
  kVmConstantName,
  kVmConstantValue,
  kVmConstantStride,
  kVmVariables
};

/// The places of these variables in libjvm.so.
struct HotspotBinary {
  std::array<std::uint64_t, kVmVariables> variables{};  ///< svma
  /// The svma of StubRoutines::_cont_returnBarrier and ContinuationEntry::_return_pc, which are not
  /// exported; 0 if the file has no such symbols, as before Java 21.
  std::uint64_t return_barrier = 0, entry_return = 0;
};
/// Returns nullopt if the file has no HotSpot JVM, or is not for x86-64.
std::optional<HotspotBinary> find_hotspot(const objects::Image& image);

class HotspotStructs {
 public:
  /// `bias` is the distance from svma to avma.  What is unreadable is missing in the result.
  HotspotStructs(Memory& memory, const HotspotBinary& binary, std::uint64_t bias);

  /// Returns the offset of a field, "CodeBlob::_name"; nullopt if it is not described.
  [[nodiscard]] std::optional<std::uint64_t> offset(std::string_view field) const {
    return find(offsets_, field);
  }
  /// Returns the avma of a static field.
  [[nodiscard]] std::optional<std::uint64_t> address(std::string_view field) const {
    return find(addresses_, field);
  }
  /// Returns the bytes of a type, "nmethod".
  [[nodiscard]] std::optional<std::uint64_t> size(std::string_view type) const {
    return find(sizes_, type);
  }
  [[nodiscard]] std::optional<std::int32_t> constant(std::string_view name) const {
    const auto value = find(constants_, name);
    return value ? std::optional(static_cast<std::int32_t>(*value)) : std::nullopt;
  }

 private:
  using Numbers = std::unordered_map<std::string, std::uint64_t>;

  static std::optional<std::uint64_t> find(const Numbers& numbers, std::string_view name);
  void read_fields(Memory& memory, const HotspotBinary& of_process);
  void read_types(Memory& memory, const HotspotBinary& of_process);
  void read_constants(Memory& memory, const HotspotBinary& of_process);

  Numbers offsets_, addresses_, sizes_, constants_;
};

/// Returns the layout of the JVM in a process, or why it is unknown: "Java 11".  It is empty if
/// the process is gone.
std::variant<HotspotLayout, std::string> hotspot_layout(Memory& memory,
                                                        const HotspotStructs& structs);

/// Returns the text at `avma`, up to its zero byte or `most` bytes; nullopt if it is unreadable.
std::optional<std::string> read_c_text(Memory& memory, std::uint64_t avma, std::size_t most);

}  // namespace pe::languages
