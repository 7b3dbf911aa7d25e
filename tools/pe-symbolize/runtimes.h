// Advice for programs whose functions a runtime makes or interprets: how to get their names.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "names/resolver.h"
#include "stream/proc/process_table.h"

namespace pe::symbolize {

/// A runtime, by what its processes have mapped.
struct Runtime {
  std::string_view file;         ///< how the name of a mapped file starts
  std::string_view interpreter;  ///< a function that stands for the program's own; empty: none
  std::string_view advice;       ///< "%" stands for the number of a process
};

/// Null if none of the table is mapped.
const Runtime* runtime_of(const stream::AddressSpace& space);

/// Which runtimes hid names.
class RuntimeAdvice {
 public:
  /// One place of a process has been resolved.  `space` is what the process has mapped; null if
  /// that is not known.
  void see(std::uint32_t pid, const stream::AddressSpace* space, const names::Resolved& resolved);

  /// A line for each runtime that hid names.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  struct Process {
    const Runtime* runtime = nullptr;
    bool lacks_names = false, is_interpreted = false, has_map = false;
  };
  std::map<std::uint32_t, Process> processes_;
};

}  // namespace pe::symbolize
