// Reads a method of a HotSpot JVM: its class, its name, its file and its lines.
//
// A Method leads to its ConstMethod, which holds the bytecode, the table of lines, and a pool of
// texts; the pool leads to the class.
//
// Sources: OpenJDK, src/hotspot/share/oops/method.hpp, constMethod.hpp, constantPool.hpp,
// symbol.hpp; code/compressedStream.cpp for the table of lines.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "languages/common/memory.h"
#include "languages/java/layout.h"

namespace pe::languages {

/// Reads the integers that HotSpot compresses (UNSIGNED5): a byte below 192 ends a number, others
/// have the lowest six bits of what follows.
class CompressedReader {
 public:
  /// `excess` is HotspotLayout::compressed_excess.
  CompressedReader(Bytes bytes, std::uint32_t excess) : reader_(bytes), excess_(excess) {}

  /// Returns nullopt at the end.
  std::optional<std::uint8_t> byte() { return reader_.take<std::uint8_t>(); }
  std::optional<std::uint32_t> number();
  std::optional<std::int32_t> signed_number();

 private:
  ByteReader reader_;
  std::uint32_t excess_;
};

/// The fields by which a Method differs from another that had its address before.
struct MethodFields {
  std::uint64_t constant = 0, pool = 0, name = 0, klass = 0;  ///< avma of their structures
  std::uint32_t bytecodes = 0;                                ///< bytes of its bytecode

  bool operator==(const MethodFields&) const = default;
};
/// Returns nullopt if it is unreadable, or no method.
std::optional<MethodFields> read_method_fields(Memory& memory, const HotspotLayout& layout,
                                               std::uint64_t method);

/// A method as its language shows it.
struct JavaMethod {
  std::string name;  ///< "java.util.HashMap.get"
  std::string file;  ///< "java/util/HashMap.java"; empty: unknown
  std::uint32_t first_line = 0;
  struct Line {
    std::uint32_t bytecode;  ///< offset of the first one
    std::uint32_t line;
  };
  std::vector<Line> lines;  ///< by bytecode

  /// Returns the line of a bytecode; first_line if it has none.
  [[nodiscard]] std::uint32_t line_at(std::uint32_t bytecode) const noexcept;
};
/// Returns nullopt if its name is unreadable.
std::optional<JavaMethod> read_java_method(Memory& memory, const HotspotLayout& layout,
                                           const MethodFields& fields);

}  // namespace pe::languages
