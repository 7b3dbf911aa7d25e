// The memory that a traced process shares, as an untrusted file.
//
// It is read by pread(2), never mapped.  So data cannot change while we check it, holes cost no
// memory, and the process cannot make us fault.
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
  /// Takes ownership of the file that a process sent.  If it is not such memory, returns the reason
  /// for a message, such as "no shared memory of the right size".
  static std::variant<SharedFile, std::string> check(Fd fd);

  /// nullopt if it cannot be read or has another version.
  [[nodiscard]] std::optional<Header> header() const;

  /// Returns the first elements of a section that is written without a gap: at most `count`, and
  /// only elements that have been written.  The last one may be written only in part.
  template <typename T>
  [[nodiscard]] std::vector<T> read(std::uint64_t at, std::uint64_t count) const {
    return read_sparse<T>(at, std::min(count, bytes_without_hole(at) / sizeof(T) + 1));
  }
  /// Returns `count` elements, for which there must be room.  Unwritten ones are zeros.
  template <typename T>
  [[nodiscard]] std::vector<T> read_sparse(std::uint64_t at, std::uint64_t count) const {
    std::vector<T> values(count);
    const std::size_t read = read_bytes(at, std::as_writable_bytes(std::span(values))) / sizeof(T);
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(read), values.end());
    return values;
  }

  /// Returns the offset of the first written byte from `at` on; nullopt: there is none.
  [[nodiscard]] std::optional<std::uint64_t> next_data(std::uint64_t at) const;

  /// Returns how much memory the file uses.
  [[nodiscard]] std::uint64_t data_bytes() const;

  /// Gives the process the time: Header::tick and tick_ms.
  void set_tick(std::uint32_t tick, std::uint32_t tick_ms) const;

 private:
  explicit SharedFile(Fd fd) : fd_(std::move(fd)) {}
  /// Returns the number of written bytes from `at` up to the first hole.
  [[nodiscard]] std::uint64_t bytes_without_hole(std::uint64_t at) const;
  /// Returns the number of bytes read.
  [[nodiscard]] std::size_t read_bytes(std::uint64_t at, std::span<std::byte> into) const;

  Fd fd_;
};

}  // namespace pe::heap
