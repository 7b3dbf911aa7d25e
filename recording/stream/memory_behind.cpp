// SPDX-License-Identifier: MIT
#include "recording/stream/memory_behind.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace pe::recording {
namespace {

/// The type of these records, which are internal and not written to the stream.
constexpr std::uint32_t kRecordBehind = 0x5045ffff;
/// In misc: the memory continues that of the record before.
constexpr std::uint16_t kMiscMore = 1;
constexpr std::size_t kWordBytes = 8, kMostPiece = 65'000;

/// Returns how many times longer than its CPU time something has taken.  On a busy machine the
/// limits of what is read must shrink, because they stand for time.
double stretch(std::uint64_t wall_ns, std::uint64_t cpu_ns) {
  constexpr double kMost = 64;
  return std::clamp(static_cast<double>(wall_ns) / static_cast<double>(std::max(cpu_ns, 1UL)), 1.0,
                    kMost);
}

struct Head {
  perf_event_header header{};
  std::uint64_t time_ns = 0;
  std::uint64_t agreed_bytes = 0;
};

}  // namespace

using unwind::SampleUnwinder;

unwind::Behind MemoryBehind::read(const stream::Sample& sample, const perf_event_attr& attr,
                                  SampleUnwinder& unwinder) {
  const auto wanted = unwinder.wanted_memory(sample, attr);
  if (wanted.start == wanted.end)
    return {};
  const std::size_t bytes = wanted.end - wanted.start;
  if (!may_read_behind(sample.pid, bytes)) {
    unwinder.count_unread();
    return {};
  }
  if (memory_.size() < bytes)
    memory_.resize(bytes);
  const std::uint64_t start_ns = monotonic_ns(), start_cpu_ns = own_cpu_ns();
  const std::size_t read =
      reader_.read(static_cast<pid_t>(sample.pid), wanted.start, std::span(memory_).first(bytes));
  const std::uint64_t now_ns = monotonic_ns();
  budget_.spend(sample.pid, Resource::kStackBytes,
                static_cast<double>(read) * stretch(now_ns - start_ns, own_cpu_ns() - start_cpu_ns),
                now_ns);
  const std::size_t shared =
      std::min(sample.user_stack.size(), SampleUnwinder::kMostAgreementBytes);
  if (read <= shared)
    return {};
  const Bytes copied = sample.user_stack.last(shared);
  const Bytes now = Bytes(memory_).first(shared);
  const auto differs = std::mismatch(copied.rbegin(), copied.rend(), now.rbegin());
  const auto agreed = static_cast<std::size_t>(differs.first - copied.rbegin());
  if (agreed < kWordBytes)
    return {};
  return {Bytes(memory_).first(read).subspan(shared), agreed};
}

/// After the end, the samples that wait in the rings would make the recorder late: the limits
/// are for seconds of recording, and it may have little of a CPU.
bool MemoryBehind::may_read_behind(std::uint32_t pid, std::size_t bytes) {
  if (budget_.has_ended()) {
    if (bytes > rest_bytes_)
      return false;
    rest_bytes_ -= bytes;
  }
  return may_read(pid, Resource::kStackBytes, bytes);
}

/// Their number bounds the CPU time, too: 1 MiB takes about 0.1 ms.
bool MemoryBehind::may_read(std::uint32_t pid, Resource resource, std::size_t bytes) {
  const std::uint64_t now_ns = monotonic_ns();
  const auto amount = static_cast<double>(bytes);
  if (!budget_.may_spend(pid, resource, amount, now_ns)) {
    budget_.count_loss(pid, resource, now_ns);
    return false;
  }
  return true;
}

std::size_t MemoryBehind::read_code(std::uint32_t pid, std::uint64_t avma,
                                    std::span<std::byte> into) {
  // However little it reads, a call costs about as much as reading a page or two.
  constexpr std::size_t kCostBytes = 8192;
  if (!may_read(pid, Resource::kReadBytes, kCostBytes))
    return 0;
  budget_.spend(pid, Resource::kReadBytes, kCostBytes, monotonic_ns());
  return reader_.read(static_cast<pid_t>(pid), avma, into);
}

void make_behind_records(const unwind::Behind& behind, std::uint64_t time_ns,
                         const std::function<void(std::initializer_list<Bytes>)>& on_record) {
  Bytes left = behind.bytes.first(behind.bytes.size() / kWordBytes * kWordBytes);
  std::uint16_t misc = 0;
  do {
    const Bytes piece = left.first(std::min(left.size(), kMostPiece));
    left = left.subspan(piece.size());
    const Head head{{kRecordBehind, std::exchange(misc, kMiscMore),
                     static_cast<std::uint16_t>(sizeof head + piece.size())},
                    time_ns,
                    behind.agreed_bytes};
    on_record({std::as_bytes(std::span(&head, 1)), piece});
  } while (!left.empty());
}

std::optional<std::uint64_t> time_of_behind(const stream::Record& record) {
  if (record.type != kRecordBehind)
    return std::nullopt;
  return ByteReader(record.body()).take<std::uint64_t>();
}

bool KeptBehind::take(const stream::Record& record) {
  if (record.type != kRecordBehind)
    return false;
  ByteReader reader(record.bytes);
  agreed_ = reader.take<Head>().value_or(Head{}).agreed_bytes;
  if (record.misc != kMiscMore)
    bytes_.clear();
  bytes_.insert(bytes_.end(), reader.left().begin(), reader.left().end());
  return true;
}

}  // namespace pe::recording
