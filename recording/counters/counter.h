// Opens kernel counters, and reads the rings that receive their records.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "recording/request.h"
#include "stream/proc/own_rights.h"
#include "stream/records/record.h"

namespace pe::stream {

/// The threads and the CPU that a counter watches.
struct CounterPlace {
  pid_t pid = -1;  ///< a thread, or the descriptor of a cgroup; -1: every thread
  int cpu = -1;    ///< -1: any
  bool is_cgroup = false;
};

/// Calls perf_event_open(2).  Returns the counter, or none and errno in `error`.
Fd open_counter(const perf_event_attr& attr, const CounterPlace& place, int& error);

/// Returns whether the kernel can write build ids into MMAP2 records (perf_event_attr.build_id;
/// Linux 5.12).
bool has_build_ids();

/// Returns the kernel's id of a counter, which its records contain.
std::optional<std::uint64_t> id_of(const Fd& counter);

/// Returns how long a counter has counted.  It must have been opened with read_format
/// PERF_FORMAT_TOTAL_TIME_ENABLED.
std::optional<std::uint64_t> enabled_ns_of(const Fd& counter);

/// Returns how many records of a counter found no room in its ring, including those of threads that
/// inherited it.  The counter must have been opened with read_format PERF_FORMAT_TOTAL_TIME_ENABLED
/// and PERF_FORMAT_LOST (Linux 6.0).
std::optional<std::uint64_t> lost_of(const Fd& counter);

/// A ring buffer that the kernel, or a thread of ours (engine_records.h), writes and we read
/// (perf_event_open(2), "MMAP layout").
class Ring {
 public:
  /// Maps `pages` (a power of two) of data for `counter`.  Returns nullopt and errno in `error` if
  /// the kernel refuses.
  static std::optional<Ring> map(const Fd& counter, std::size_t pages, int& error);
  /// Makes a ring of our own memory for `data_bytes` (a power of two, at least a page), or fewer if
  /// there is not so much.  Memory is in use only while it holds records.  Throws Error.
  static Ring allocate(std::size_t data_bytes);
  Ring(Ring&& other) noexcept;
  Ring& operator=(Ring&& other) noexcept;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  /// Calls `on_record(Record, bool stays)` for every record that has come since the last call.
  /// Does not give their room back to the kernel.  If `stays`, the view is valid until release()
  /// has passed the record.  The other records wrap around the ring's end: their view is valid only
  /// until on_record() returns.
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
  /// Returns the position that look() has reached.
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }
  /// Gives the room of all records before position `seen` back to the writer.  Our own memory is
  /// given back, and freed, in larger pieces.
  void release(std::uint64_t seen) noexcept;
  /// Returns whether records that look() has seen occupy less than a quarter of the ring.
  [[nodiscard]] bool is_roomy() const noexcept;

  /// Calls `on_record(Record)` for every new record, and gives all room back to the kernel.  No
  /// view is valid after the call.
  template <typename OnRecord>
  void drain(OnRecord&& on_record) {
    look([&](const Record& record, bool /*stays*/) { on_record(record); });
    release(seen_);
  }

 private:
  friend class RingWriter;
  Ring(void* map, std::size_t map_bytes, std::size_t data_offset, bool is_own) noexcept
      : map_(map), map_bytes_(map_bytes), data_offset_(data_offset), is_own_(is_own) {}
  void free_until(std::uint64_t position) noexcept;
  [[nodiscard]] std::uint64_t read_head() const noexcept;
  [[nodiscard]] std::uint64_t tail() const noexcept;
  Bytes record_at(std::uint64_t tail, std::uint64_t head);

  void* map_ = nullptr;
  std::size_t map_bytes_ = 0;
  std::size_t data_offset_ = 0;
  bool is_own_ = false;             ///< private memory, not a counter's
  std::uint64_t seen_ = 0;          ///< like the kernel's head, it never wraps
  std::vector<std::byte> wrapped_;  ///< a copy of a record that wraps around the ring's end
};

/// Makes `counter` write into the ring that was mapped for `owner`.  Returns false and errno in
/// `error` if the kernel refuses.
bool share_ring(const Fd& counter, const Fd& owner, int& error);

/// Sets the filter of a tracepoint's counter, such as "bytes > 4096" (perf_event_open(2),
/// PERF_EVENT_IOC_SET_FILTER).  Counters that inherit it use it, too.  Returns false and errno in
/// `error` if the kernel refuses.
bool set_filter(const Fd& counter, const std::string& filter, int& error);

/// Starts (or stops) the counter, also in threads that inherited it.  Returns false if the kernel
/// refuses.
bool enable(const Fd& counter);
bool disable(const Fd& counter);

}  // namespace pe::stream

// Plans the size of the rings, the part of each stack that goes into them, and when they wake us.
//
// A stack copy of 64 KiB reaches the root of nearly every stack, but the ring reserves that room
// for each sample.  The memory that rings may lock is limited (perf_event_mlock_kb and ulimit -l;
// perf_event_open(2)).

namespace pe::recording {

struct RingPlan {
  std::size_t pages = 0;              ///< of each CPU's ring, a power of two
  std::uint32_t stack_bytes = 0;      ///< of each copy; 0: no copies
  std::uint32_t watermark_bytes = 0;  ///< this much in a ring wakes us
  bool lacks_memory = false;          ///< they would be larger if more memory was available

  [[nodiscard]] std::size_t ring_bytes() const noexcept;
  /// Returns the size of the separate rings for PERF_RECORD_SWITCH (Request::with_switches): a
  /// quarter.  They hold some hundred times as many switches as the other rings hold samples.
  [[nodiscard]] std::size_t switch_pages() const noexcept;
  [[nodiscard]] std::size_t switch_ring_bytes() const noexcept;
};

/// Returns the preferred plan for `cpus` CPUs, if so many bytes of memory are available.
RingPlan first_plan(const Request& request, std::size_t cpus,
                    std::uint64_t available = stream::available_memory());
/// Returns a plan with rings half as large; nullopt if they are small already, or the user chose
/// their size.
std::optional<RingPlan> smaller_plan(const RingPlan& plan, const Request& request,
                                     std::size_t cpus);

/// Returns whether stacks are copied at all.
bool copies_stacks(const Request& request) noexcept;

}  // namespace pe::recording
