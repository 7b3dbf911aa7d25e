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
#include "perf/record.h"

namespace pe::perf {

/// Whom a counter watches.
struct CounterPlace {
  pid_t pid = -1;  ///< a thread; -1: every one; or the descriptor of a cgroup
  int cpu = -1;    ///< -1: any
  bool is_cgroup = false;
};

/// perf_event_open(2).  Returns the counter, or none and errno in `error`.
Fd open_counter(const perf_event_attr& attr, const CounterPlace& place, int& error);

/// The kernel's id of a counter, as its records carry it.
std::optional<std::uint64_t> id_of(const Fd& counter);

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

  /// Calls `on_record(Record)` for every record that is there, then gives its
  /// room back to the kernel.  The views die when the call returns.
  template <typename OnRecord>
  void drain(OnRecord&& on_record) {
    const std::uint64_t head = read_head();
    std::uint64_t tail = this->tail();
    while (tail < head) {
      const Bytes bytes = record_at(tail, head);
      if (bytes.size() < sizeof(perf_event_header))
        break;
      on_record(view_record(bytes));
      tail += bytes.size();
    }
    give_back(head);
  }

 private:
  Ring(void* map, std::size_t map_bytes, std::size_t data_offset) noexcept
      : map_(map), map_bytes_(map_bytes), data_offset_(data_offset) {}
  [[nodiscard]] std::uint64_t read_head() const noexcept;
  [[nodiscard]] std::uint64_t tail() const noexcept;
  void give_back(std::uint64_t new_tail) noexcept;
  Bytes record_at(std::uint64_t tail, std::uint64_t head);

  void* map_ = nullptr;
  std::size_t map_bytes_ = 0;
  std::size_t data_offset_ = 0;
  std::vector<std::byte> wrapped_;  ///< a record that lies across the ring's end
};

/// Makes `counter` write into the ring that was mapped for `owner`; false and errno in `error` if
/// it cannot.
bool share_ring(const Fd& counter, const Fd& owner, int& error);

/// Starts (or stops) counting; false if the kernel refuses.
bool enable(const Fd& counter);
bool disable(const Fd& counter);

}  // namespace pe::perf
