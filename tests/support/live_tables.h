// Keeps the kernel's unwind tables up to date while a program runs, as a recorder does.
// SPDX-License-Identifier: MIT
#pragma once

#include <linux/perf_event.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

#include "base/error.h"
#include "recording/bpf/code_tables.h"
#include "recording/bpf/table_store.h"
#include "recording/counters/counter.h"
#include "stream/history.h"
#include "stream/records/sample.h"

namespace pe::testing {

/// CLOCK_MONOTONIC.
inline std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Follows what the kernel records about a process and its children.
class LiveTables {
 public:
  /// Process `pid` has not executed its program yet.
  LiveTables(pid_t pid, unwind::TableStore& store)
      : tables_(history_, store, objects::FileMatch::kAny) {
    attr_.size = sizeof attr_;
    attr_.type = PERF_TYPE_SOFTWARE;
    attr_.config = PERF_COUNT_SW_DUMMY;
    attr_.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    attr_.sample_id_all = attr_.mmap = attr_.mmap2 = attr_.comm = attr_.comm_exec = attr_.task = 1;
    attr_.inherit = 1;
    attr_.use_clockid = 1;
    attr_.clockid = CLOCK_MONOTONIC;
    const auto cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF));
    for (int cpu = 0; cpu < cpus; ++cpu) {
      int error = 0;
      counters_.push_back(stream::open_counter(attr_, {.pid = pid, .cpu = cpu}, error));
      auto ring = counters_.back() ? stream::Ring::map(counters_.back(), 64, error) : std::nullopt;
      if (!ring)
        throw_errno("records of mappings", error);
      rings_.push_back(std::move(*ring));
    }
    tables_.add_target(static_cast<std::uint32_t>(pid), now_ns());
  }

  /// Applies all new records to the history and the tables.
  void update() {
    std::vector<Kept> records;
    for (stream::Ring& ring : rings_)
      ring.drain([&](const stream::Record& record) {
        records.push_back({stream::time_of(record, attr_),
                           record.type,
                           record.misc,
                           {record.bytes.begin(), record.bytes.end()}});
      });
    std::stable_sort(records.begin(), records.end(),
                     [](const Kept& a, const Kept& b) { return a.time_ns < b.time_ns; });
    for (const Kept& kept : records) {
      history_.apply({kept.type, kept.misc, kept.bytes});
      tables_.follow(kept.time_ns);
    }
    tables_.publish();
  }

  [[nodiscard]] const stream::History& history() const { return history_; }
  [[nodiscard]] const unwind::CodeTables& tables() const { return tables_; }

 private:
  struct Kept {
    std::uint64_t time_ns;
    std::uint32_t type;
    std::uint16_t misc;
    std::vector<std::byte> bytes;
  };

  perf_event_attr attr_{};
  std::vector<Fd> counters_;
  std::vector<stream::Ring> rings_;
  stream::History history_;
  unwind::CodeTables tables_;
};

}  // namespace pe::testing
