// Tells the records of the recorded processes from those of others.  The rings of whole CPUs have
// both.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <unordered_set>

#include "recording/request.h"
#include "stream/records/sample.h"

namespace pe::offcpu {

class OwnProcesses {
 public:
  /// `target` is single processes, or everything.
  explicit OwnProcesses(const recording::Target& target);

  /// Returns true for a record about one of these processes, about one that they have forked since,
  /// about the kernel, or about no process.  The records must come in the order of time.
  bool has(const stream::Record& record);

 private:
  bool has_all_;
  std::unordered_set<std::uint32_t> pids_;
};

}  // namespace pe::offcpu
