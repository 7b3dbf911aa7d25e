// Removes build details from the names of frames, so that two builds of a program have the same
// functions.
//
// The rules are heuristics about how compilers write names.  They merge two instances of a
// template.  They also rewrite a function whose real name is `f.cold`.
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace pe::folded {

/// Returns `name` with these changes:
///  - `0x...` replaces each hexadecimal number that starts with 0x;
///  - `<...>` replaces template arguments: text in angle brackets directly after a letter, digit
///    or `::`.  Operators, `<init>` and `<module>` stay, and so does all text after a bracket that
///    is never closed;
///  - endings that compilers give to parts and copies of functions are removed: .cold, .isra.0,
///    .constprop.0, .part.0, .lto_priv.0, .llvm.123, .__uniq.123, .clone.0, .localalias, the same
///    as demanglers write them (" [clone .cold]"), and the hash of a Rust function ("::h" and 16
///    digits).
/// A mark such as _[k] at the end stays.  The time is linear for every name.
std::string without_build_details(std::string_view name);

class FrameRewriter {
 public:
  /// Removes each match of `expressions` from names, after without_build_details() if
  /// `cuts_build_details`.  Throws UsageError("--strip: ...") for option "strip".
  FrameRewriter(const std::string& option, std::span<const std::string> expressions,
                bool cuts_build_details);
  FrameRewriter(const FrameRewriter&) = delete;
  FrameRewriter& operator=(const FrameRewriter&) = delete;
  FrameRewriter(FrameRewriter&&) noexcept;
  FrameRewriter& operator=(FrameRewriter&&) = delete;
  ~FrameRewriter();

  /// Does rewrite() leave every name unchanged?
  [[nodiscard]] bool is_empty() const noexcept {
    return expressions_.empty() && !cuts_build_details_;
  }
  /// Returns the rewritten name, or `frame` itself if nothing would be left of it.
  [[nodiscard]] std::string rewrite(std::string_view frame) const;

 private:
  std::vector<std::unique_ptr<re2::RE2>> expressions_;
  bool cuts_build_details_;
};

/// Replaces hexadecimal numbers that start with 0x by "0x...", as difffolded.pl -s does.
std::string without_hex_numbers(std::string_view text);

}  // namespace pe::folded
