// The unwind tables of the files that processes have mapped.
//
// A file is opened when a stack first leads into its code, read once, and closed again.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "proc/mapped_file.h"
#include "unwind/unwind_table.h"

namespace pe::stacks {

class Images {
 public:
  explicit Images(proc::FileMatch match) : match_(match) {}

  /// The number of a mapped file; `pid` is a process in which it may be found.
  std::uint32_t number_of(const proc::Mapping& mapping, std::uint32_t pid);

  /// nullptr if the file cannot be had.
  unwind::UnwindTable* table(std::uint32_t number);

 private:
  struct Image {
    proc::Mapping mapping;  ///< one of those that it has
    std::uint32_t pid;
    bool is_opened = false;
    std::unique_ptr<unwind::UnwindTable> table;
  };

  proc::FileMatch match_;
  std::unordered_map<const proc::MappedFile*, std::uint32_t> numbers_;
  std::vector<Image> images_;
};

}  // namespace pe::stacks
