// Where the result goes: a file that is not touched before there is a result, or standard output.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "io/output.h"

namespace pe::flamediff {

class Target {
 public:
  /// `file`: empty for `standard`.  Both must outlive the target.
  Target(const std::string& file, io::Output& standard) : name_(file), standard_(standard) {}
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  Target(Target&&) = delete;
  Target& operator=(Target&&) = delete;
  /// A file that could not be written to its end, as on a full disk, is left empty.
  ~Target() {
    if (file_ && !is_whole_)
      file_->discard();
  }

  /// Throws Error if the file cannot be created.
  io::Output& open() {
    if (name_.empty())
      return standard_;
    if (!file_)
      file_.emplace(name_);
    return *file_;
  }

  /// Nothing more comes.  Throws Error.
  void finish() {
    open().flush();
    is_whole_ = true;
  }

 private:
  const std::string& name_;
  io::Output& standard_;
  std::optional<io::FileOutput> file_;
  bool is_whole_ = false;
};

}  // namespace pe::flamediff
