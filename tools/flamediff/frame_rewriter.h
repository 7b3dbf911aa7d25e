// Rewrites the names of frames, so that two profiles of a program have the same functions.
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

/// Replaces template arguments, text in angle brackets directly after a letter, digit or `::`, by
/// `<...>`.  Operators, `<init>` and `<module>` stay, and so does all text after a bracket that is
/// never closed.  The time is linear for every text.
std::string without_template_arguments(std::string_view text);

class FrameRewriter {
 public:
  /// Removes each match of `expressions` from names.  If `cuts_build_details`, first removes what
  /// without_build_details() removes, template arguments, and the marks of functions that are
  /// inlined, compiled or interpreted.  Throws UsageError("--strip: ...") for option "strip".
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

}  // namespace pe::folded
