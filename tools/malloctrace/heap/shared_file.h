// The memory that a traced process shares, as a file of which nothing is believed.
//
// It is read by pread(2), never mapped: what has been read cannot change under who checks it, holes
// cost no memory, and the process cannot make us fault.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/fd.h"
#include "malloctrace/heap/layout.h"

namespace pe::heap {

class SharedFile {
 public:
  /// Takes over what a process sent.  If it is no such memory, why not: "no memfd of the right
  /// size", for a message.
  static std::variant<SharedFile, std::string> check(Fd fd);

  /// nullopt if it cannot be read, or is of another version.
  [[nodiscard]] std::optional<Header> header() const;

  /// The first elements of a section that is written without a gap: at most `count`, and no more
  /// than have been written; but for one, of which a part may have been.
  template <typename T>
  [[nodiscard]] std::vector<T> read(std::uint64_t at, std::uint64_t count) const {
    return read_sparse<T>(at, std::min(count, bytes_without_hole(at) / sizeof(T) + 1));
  }
  /// `count` elements, for which there must be room: zeros where nothing has been written.
  template <typename T>
  [[nodiscard]] std::vector<T> read_sparse(std::uint64_t at, std::uint64_t count) const {
    std::vector<T> values(count);
    const std::size_t read = read_bytes(at, std::as_writable_bytes(std::span(values))) / sizeof(T);
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(read), values.end());
    return values;
  }

  /// Offset of the first byte from `at` on that has been written; nullopt: none has.
  [[nodiscard]] std::optional<std::uint64_t> next_data(std::uint64_t at) const;

  /// How much memory it takes.
  [[nodiscard]] std::uint64_t data_bytes() const;

  /// Tells the process what time it is: Header::tick and tick_ms.
  void set_tick(std::uint32_t tick, std::uint32_t tick_ms) const;

 private:
  explicit SharedFile(Fd fd) : fd_(std::move(fd)) {}
  /// How many have been written from `at` on until the first that has not.
  [[nodiscard]] std::uint64_t bytes_without_hole(std::uint64_t at) const;
  /// How many bytes were read.
  [[nodiscard]] std::size_t read_bytes(std::uint64_t at, std::span<std::byte> into) const;

  Fd fd_;
};

}  // namespace pe::heap
