// Reads the profiles of both sides into one tree.
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flamediff/options.h"
#include "folded/facts.h"
#include "painting/tree/tree_builder.h"

// Rewrites the names of frames, so that two profiles of a program have the same functions.

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

namespace pe::flamediff {

struct Profiles {
  painting::ProfileUnion all;         ///< first the profiles before, next those after
  std::vector<std::string> messages;  ///< skipped lines, a message for each file; joined frames
  std::string unit;                   ///< of all counts; empty if no file states one
  std::string meaning;  ///< of differences, if they are of other things than usually; or empty
};

/// Returns the unit that the facts of a file state; empty if they state none.  stackfold names
/// every unit but samples.
std::string stated_unit(std::span<const folded::Fact> facts);

/// Returns the unit of all files; empty if none states one.  Adds a message if some state a unit
/// other than samples, and others none.  Throws Error if they state different ones.  With
/// options.names_unit, it ignores them all.
std::string join_units(std::span<const std::string> units, const Options& options,
                       std::vector<std::string>& messages);

/// "-" means `stdin_fd`.  If options.cuts_build_details, joins the outermost frame of a renamed
/// program: each side has one that the other lacks, with 5 % of the side or more, and both call a
/// function of the same name.  The joined frame has the name after.  Throws Error.
Profiles read_profiles(const Options& options, int stdin_fd);

}  // namespace pe::flamediff
