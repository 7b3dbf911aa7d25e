// Joins samples with the user part of their call chain, where the kernel writes that part later:
// when the thread returns to its program, in a record of its own (PERF_RECORD_CALLCHAIN_DEFERRED,
// perf record --call-graph fp,defer; from Linux 6.19 on).
//
// The sample's chain then ends with a mark and a number, and the later record starts with this
// number.  Source: linux/perf_event.h; tools/perf/util/session.c.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "stream/records/sample.h"
#include "stream/stream_writer.h"

namespace pe::stream {

/// Whether the event asks for such records (attr.defer_callchain).
bool may_defer(const perf_event_attr& attr) noexcept;

/// Returns the number by which the user part of the sample's chain arrives; nullopt if the chain
/// has all of it, or it has arrived.
std::optional<std::uint64_t> deferred_part(const Sample& sample);

class DeferredChains {
 public:
  /// Receives a sample's time and record.  The record is valid until the callback returns.
  using OnSample = std::function<void(std::uint64_t, const Record&)>;

  /// Keeps a sample until its user part arrives.  Returns false if it need not wait, or if too many
  /// wait.
  bool keep(const Record& record, const perf_event_attr& attr);
  /// Passes on the samples whose user part the record has; joined, up to kMaxBytes of them.
  void join(const Record& deferred, const OnSample& on_sample);
  /// Passes on the samples with times up to `until_ns`, as they are.
  void release(std::uint64_t until_ns, const OnSample& on_sample);

  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

 private:
  struct Kept {
    perf_event_attr attr;
    std::uint64_t time_ns;
    std::vector<std::byte> bytes;
  };

  std::unordered_multimap<std::uint64_t, Kept> kept_;
  std::size_t bytes_ = 0;
  RecordBuilder builder_;
};

}  // namespace pe::stream
