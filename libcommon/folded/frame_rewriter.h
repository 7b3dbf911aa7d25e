// Names of frames without what differs from build to build, so that two builds of a program have
// the same functions.
//
// Heuristics about how compilers write names; they are wrong where a name only looks like that:
// two instances of a template become one, and so would a function that is really called `f.cold`.
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

/// `name` with
///  - numbers `0x...` in place of all hexadecimal ones that begin so;
///  - `<...>` in place of template arguments: what stands in angle brackets right behind a letter,
///    digit or `::`.  Operators, `<init>` and `<module>` stay, and so does all behind a bracket
///    that is never closed;
///  - no endings that compilers give to parts and copies of functions: .cold, .isra.0,
///    .constprop.0, .part.0, .lto_priv.0, .llvm.123, .__uniq.123, .clone.0, .localalias, the same
///    as demanglers write them (" [clone .cold]"), and the hash of a Rust function ("::h" and 16
///    digits).
/// A mark such as _[k] at its end stays.  Time is linear, whatever the name.
std::string without_build_details(std::string_view name);

class FrameRewriter {
 public:
  /// What any of `expressions` matches is cut out of names, after without_build_details() if
  /// `cuts_build_details`.  Throws UsageError("--strip: ...") for option "strip".
  FrameRewriter(const std::string& option, std::span<const std::string> expressions,
                bool cuts_build_details);
  FrameRewriter(const FrameRewriter&) = delete;
  FrameRewriter& operator=(const FrameRewriter&) = delete;
  FrameRewriter(FrameRewriter&&) noexcept;
  FrameRewriter& operator=(FrameRewriter&&) = delete;
  ~FrameRewriter();

  /// Would rewrite() change anything, ever?
  [[nodiscard]] bool is_empty() const noexcept {
    return expressions_.empty() && !cuts_build_details_;
  }
  /// `frame` itself if nothing would be left of it.
  [[nodiscard]] std::string rewrite(std::string_view frame) const;

 private:
  std::vector<std::unique_ptr<re2::RE2>> expressions_;
  bool cuts_build_details_;
};

/// `text` with "0x..." in place of hexadecimal numbers that begin with 0x, as difffolded.pl -s.
std::string without_hex_numbers(std::string_view text);

}  // namespace pe::folded
