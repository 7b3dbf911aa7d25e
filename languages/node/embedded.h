// V8's builtins in a file without symbols.
//
// V8 puts their code into the file in one block, without unwind information.  The file also has a
// table of their places in that block, and a table with a name for each.  We find the place of the
// block by the bytes that fill the room between builtins, so all three parts must fit together.
//
// Sources: V8, src/snapshot/embedded/embedded-data.h (EmbeddedData::LayoutDescription),
// src/builtins/builtins.cc (BuiltinMetadata), src/snapshot/embedded/embedded-data.cc (kZapCode).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "objects/image.h"

namespace pe::languages {

inline constexpr std::size_t kMostV8Builtins = 20'000;

struct V8Version {
  std::uint32_t major = 0, minor = 0;
  bool operator==(const V8Version&) const = default;
};

/// Returns the version of V8 in a text of a Node: "10.2.154.26-node.36"; nullopt if it has none.
std::optional<V8Version> v8_version_in(std::string_view text);

class EmbeddedV8 {
 public:
  struct Builtin {
    std::uint64_t start = 0, end = 0;  ///< svma
    std::string name;                  ///< "ArrayMap"; empty: it has none
  };

  /// Reads the constants of the image, which must outlive this.
  explicit EmbeddedV8(const objects::Image& image);

  [[nodiscard]] std::optional<V8Version> version() const;
  /// Returns the builtins by address; none if a part is missing, or does not fit the others.
  [[nodiscard]] std::vector<Builtin> builtins() const;

 private:
  /// A builtin in the block.
  struct Place {
    std::uint32_t offset = 0, bytes = 0;
  };
  [[nodiscard]] std::vector<Place> places() const;
  [[nodiscard]] std::vector<Place> places_at(std::size_t at, std::size_t stride) const;
  [[nodiscard]] std::vector<std::string> names(std::size_t count) const;
  [[nodiscard]] std::vector<std::string> names_at(Bytes table, std::size_t count) const;
  [[nodiscard]] std::optional<std::string> name_at(std::uint64_t svma) const;
  [[nodiscard]] std::optional<std::uint64_t> block_of(const std::vector<Place>& places) const;
  [[nodiscard]] std::string_view text() const noexcept;

  const objects::Image& image_;
  objects::SectionBytes constants_{};
};

}  // namespace pe::languages
