// SPDX-License-Identifier: MIT
#include "record/memory_behind.h"

#include <algorithm>

#include "base/clock.h"
#include "stream/proc/memory.h"

namespace pe::record {
namespace {

/// The type of these records, which are internal and not written to the stream.
constexpr std::uint32_t kRecordBehind = 0x5045ffff;

}  // namespace

using unwind::SampleUnwinder;

unwind::Behind MemoryBehind::read(const stream::Sample& sample, const perf_event_attr& attr,
                                  SampleUnwinder& unwinder) {
  const auto wanted = unwinder.wanted_memory(sample, attr);
  if (wanted.start == wanted.end)
    return {};
  if (!budget_.allows(monotonic_ns())) {
    unwinder.count_unread();
    return {};
  }
  const std::size_t bytes = wanted.end - wanted.start;
  if (memory_.size() < bytes)
    memory_.resize(bytes);
  const std::size_t read = stream::read_memory(static_cast<pid_t>(sample.pid), wanted.start,
                                               std::span(memory_).first(bytes));
  budget_.spend(read);
  const std::size_t shared =
      std::min(sample.user_stack.size(), SampleUnwinder::kMostAgreementBytes);
  if (read <= shared)
    return {};
  const Bytes copied = sample.user_stack.last(shared);
  const Bytes now = Bytes(memory_).first(shared);
  const auto differs = std::mismatch(copied.rbegin(), copied.rend(), now.rbegin());
  const auto agreed = static_cast<std::size_t>(differs.first - copied.rbegin());
  if (agreed < SampleUnwinder::kLeastAgreementBytes)
    return {};
  return {Bytes(memory_).first(read).subspan(shared), agreed};
}

std::size_t MemoryBehind::read_code(std::uint32_t pid, std::uint64_t avma,
                                    std::span<std::byte> into) {
  // However little it reads, a call costs about as much as reading a page or two.
  constexpr std::size_t kCostBytes = 8192;
  if (!budget_.allows(monotonic_ns()))
    return 0;
  budget_.spend(kCostBytes);
  return stream::read_memory(static_cast<pid_t>(pid), avma, into);
}

void hold(const unwind::Behind& behind, std::uint64_t time_ns, stream::HeldRecords& held) {
  const perf_event_header header{kRecordBehind, 0, sizeof header};
  const std::uint64_t agreed = behind.agreed_bytes;
  held.hold(time_ns, {std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(&agreed, 1)),
                      behind.bytes});
}

stream::Record behind_record(const unwind::Behind& behind, std::vector<std::byte>& into) {
  const perf_event_header header{kRecordBehind, 0, sizeof header};
  const std::uint64_t agreed = behind.agreed_bytes;
  into.clear();
  for (const Bytes piece :
       {std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(&agreed, 1)), behind.bytes})
    into.insert(into.end(), piece.begin(), piece.end());
  return stream::view_record(into);
}

bool KeptBehind::take(const stream::Record& record) {
  if (record.type != kRecordBehind)
    return false;
  ByteReader reader(record.body());
  agreed_ = reader.take<std::uint64_t>().value_or(0);
  bytes_.assign(reader.left().begin(), reader.left().end());
  return true;
}

}  // namespace pe::record
