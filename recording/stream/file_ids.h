// Adds to MMAP2 records what identifies their file: the identity that the file has on this system,
// and a build id to records that we have made from /proc.  The kernel adds build ids to its own.
//
// Every mapping is examined when its record arrives.  That is one stat(2), 2 us.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/budget.h"
#include "stream/proc/process_table.h"
#include "stream/records/sample.h"

namespace pe::recording {

class FileIds {
 public:
  /// Adds build ids if events with `attr` request them.  `budget` must outlive this: a process that
  /// cannot pay gets no ids.  Null: no limits.
  explicit FileIds(const perf_event_attr& attr, Budget* budget = nullptr)
      : budget_(budget),
        trailer_bytes_(stream::trailer_bytes(attr)),
        with_build_ids_(attr.build_id != 0) {}

  /// Returns the record with the ids of its file, if it is an MMAP2 that lacks them.  Reads each
  /// file once.  Valid as long as `record`, until the next call.
  stream::Record completed(const stream::Record& record);

 private:
  const std::string& build_id_of(const stream::MmapRecord& map, const stream::MappedFile& file);

  bool may_look_up(std::uint32_t pid);

  Budget* budget_;
  std::size_t trailer_bytes_;
  bool with_build_ids_;
  std::map<FileIdentity, std::string> build_ids_;
  std::vector<std::byte> completed_;
};

}  // namespace pe::recording
