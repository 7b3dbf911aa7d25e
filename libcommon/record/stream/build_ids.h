// Adds build ids to MMAP2 records that we have made from /proc.  The kernel adds them to its own.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stream/records/sample.h"

namespace pe::record {

class BuildIds {
 public:
  /// Adds build ids if events with `attr` request them.
  explicit BuildIds(const perf_event_attr& attr) : is_wanted_(attr.build_id != 0) {}

  /// Returns the record with the build id of its file, if it is an MMAP2 that lacks one.  Reads the
  /// file, once.  Valid as long as `record`, until the next call.
  stream::Record completed(const stream::Record& record);

 private:
  const std::string& of(const stream::MmapRecord& map);

  bool is_wanted_;
  using File = std::pair<std::uint64_t, std::uint64_t>;  ///< device, inode
  std::map<File, std::string> ids_;
  std::vector<std::byte> completed_;
};

}  // namespace pe::record
