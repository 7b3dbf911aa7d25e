// The output of the result: a file, which changes only once the result is complete, or standard
// output.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/io/output.h"

namespace pe::flamediff {

class Target {
 public:
  /// `file`: empty to use `standard`.  Both must outlive the target.
  Target(const std::string& file, Output& standard) : name_(file), standard_(standard) {}

  /// Throws Error if the file cannot be created.
  Output& open() {
    if (name_.empty())
      return standard_;
    if (!file_)
      file_.emplace(name_, Named::kWhenWhole);
    return *file_;
  }

  /// Completes the output; only now the new file replaces the old one.  Throws Error.
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
