// What became of the profiles of a spool, since it was made: a small file that outlives runs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pe::push {

struct Counts {
  using Field = std::uint64_t Counts::*;

  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;  ///< the spool was full
  std::uint64_t refused = 0;  ///< by the server
  std::uint64_t damaged = 0;  ///< half-written by a process that was killed

  friend bool operator==(const Counts&, const Counts&) = default;
  /// What has been added since `before`.
  [[nodiscard]] Counts since(const Counts& before) const;
  void add(const Counts& more);
};

/// A line "NAME COUNT" each.
[[nodiscard]] std::string counts_text(const Counts& counts);

/// What `text` does not have, or not as a count, is 0.
[[nodiscard]] Counts parse_counts(std::string_view text);

/// "2 dropped as the spool was full, 1 refused by the server"; empty if nothing is lost.
[[nodiscard]] std::string losses_text(const Counts& counts);

}  // namespace pe::push
