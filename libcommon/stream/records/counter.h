// Opening kernel counters, and the rings that their records arrive in.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "stream/records/record.h"

namespace pe::stream {

/// Whom a counter watches.
struct CounterPlace {
  pid_t pid = -1;  ///< a thread; -1: every one; or the descriptor of a cgroup
  int cpu = -1;    ///< -1: any
  bool is_cgroup = false;
};

/// perf_event_open(2).  Returns the counter, or none and errno in `error`.
Fd open_counter(const perf_event_attr& attr, const CounterPlace& place, int& error);

/// Can the kernel put build ids into MMAP2 records (perf_event_attr.build_id; Linux 5.12)?
bool has_build_ids();

/// The kernel's id of a counter, as its records carry it.
std::optional<std::uint64_t> id_of(const Fd& counter);

/// How many records of a counter that was opened with read_format PERF_FORMAT_LOST (Linux 6.0)
/// found no room in its ring, those of what it was inherited by among them.
std::optional<std::uint64_t> lost_of(const Fd& counter);

/// The ring buffer of one CPU: the kernel writes, we read (perf_event_open(2), "MMAP layout").
class Ring {
 public:
  /// Maps `pages` (a power of two) of data for `counter`; nullopt and errno in `error` if it is
  /// refused.
  static std::optional<Ring> map(const Fd& counter, std::size_t pages, int& error);
  Ring(Ring&& other) noexcept;
  Ring& operator=(Ring&& other) noexcept;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  /// Calls `on_record(Record, bool stays)` for every record that has come since the last call.
  /// Their room is not yet given back to the kernel.  Those that stay are where they are until
  /// give_back() has passed them; the view of others (they lie across the ring's end) dies when the
  /// call returns.
  template <typename OnRecord>
  void look(OnRecord&& on_record) {
    const std::uint64_t head = read_head();
    while (seen_ < head) {
      const Bytes bytes = record_at(seen_, head);
      if (bytes.size() < sizeof(perf_event_header)) {
        seen_ = head;
        break;
      }
      seen_ += bytes.size();
      on_record(view_record(bytes), bytes.data() != wrapped_.data());
    }
  }
  /// How far look() has come.
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }
  /// Gives the room of what was seen before `seen` back to the kernel, unless it has been.
  void give_back(std::uint64_t seen) noexcept;
  /// Is less than an eighth of the ring taken by records that have been seen?
  [[nodiscard]] bool is_roomy() const noexcept;

  /// Looks, calling `on_record(Record)`, and gives everything back.  All views die when the call
  /// returns.
  template <typename OnRecord>
  void drain(OnRecord&& on_record) {
    look([&](const Record& record, bool /*stays*/) { on_record(record); });
    give_back(seen_);
  }

 private:
  Ring(void* map, std::size_t map_bytes, std::size_t data_offset) noexcept
      : map_(map), map_bytes_(map_bytes), data_offset_(data_offset) {}
  [[nodiscard]] std::uint64_t read_head() const noexcept;
  [[nodiscard]] std::uint64_t tail() const noexcept;
  Bytes record_at(std::uint64_t tail, std::uint64_t head);

  void* map_ = nullptr;
  std::size_t map_bytes_ = 0;
  std::size_t data_offset_ = 0;
  std::uint64_t seen_ = 0;          ///< like the kernel's head: counted on over the ring's end
  std::vector<std::byte> wrapped_;  ///< a record that lies across the ring's end
};

/// Makes `counter` write into the ring that was mapped for `owner`; false and errno in `error` if
/// it cannot.
bool share_ring(const Fd& counter, const Fd& owner, int& error);

/// Starts (or stops) counting, in those that inherited it too; false if the kernel refuses.
bool enable(const Fd& counter);
bool disable(const Fd& counter);

}  // namespace pe::stream
