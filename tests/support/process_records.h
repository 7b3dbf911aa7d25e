// Builds the kernel's records about processes, and applies each to a history.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "stream/history.h"
#include "stream/stream_writer.h"

namespace pe::testing {

class ProcessRecords {
 public:
  explicit ProcessRecords(stream::History& history) : history_(history) {}

  struct Place {
    std::uint64_t start, size, file_offset;
  };
  void map(std::uint32_t pid, const Place& place, std::string_view path) {
    builder_.begin(PERF_RECORD_MMAP, PERF_RECORD_MISC_USER)
        .add(pid)
        .add(pid)
        .add(place.start)
        .add(place.size)
        .add(place.file_offset)
        .add_string(path)
        .pad();
    finish();
  }
  void exec(std::uint32_t pid, std::string_view comm = "new") {
    builder_.begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC)
        .add(pid)
        .add(pid)
        .add_string(comm)
        .pad();
    finish();
  }
  void fork(std::uint32_t parent, std::uint32_t child) {
    task(PERF_RECORD_FORK, {child, parent, child, parent});
  }
  void exit(std::uint32_t pid, std::uint32_t tid) { task(PERF_RECORD_EXIT, {pid, pid, tid, tid}); }

 private:
  /// pid, ppid, tid, ptid.
  void task(std::uint32_t type, std::initializer_list<std::uint32_t> numbers) {
    builder_.begin(type);
    for (const std::uint32_t number : numbers)
      builder_.add(number);
    builder_.add(std::uint64_t{0});
    finish();
  }
  void finish() {
    history_.apply(stream::view_record(std::as_bytes(std::span(builder_.finish()))));
  }

  stream::History& history_;
  stream::RecordBuilder builder_;
};

}  // namespace pe::testing
