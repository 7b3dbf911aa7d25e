// Where the result goes: a file that is not touched before there is a result, or standard output.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/io/output.h"

namespace pe::flamediff {

class Target {
 public:
  /// `file`: empty for `standard`.  Both must outlive the target.
  Target(const std::string& file, Output& standard) : name_(file), standard_(standard) {}

  /// Throws Error if the file cannot be created.
  Output& open() {
    if (name_.empty())
      return standard_;
    if (!file_)
      file_.emplace(name_, Named::kWhenWhole);
    return *file_;
  }

  /// Nothing more comes: only now a file replaces the old one.  Throws Error.
  void finish() {
    open().flush();
    if (file_)
      file_->keep();
  }

 private:
  const std::string& name_;
  Output& standard_;
  std::optional<FileOutput> file_;
};

}  // namespace pe::flamediff
