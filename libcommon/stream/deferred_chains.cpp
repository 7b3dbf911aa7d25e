// SPDX-License-Identifier: MIT
#include "stream/deferred_chains.h"

#include "stream/user_copy.h"

namespace pe::stream {
namespace {

constexpr std::uint64_t kUserDeferred = -std::uint64_t{640};  // PERF_CONTEXT_USER_DEFERRED
constexpr std::size_t kMarkAndNumber = 2;

}  // namespace

bool may_defer(const perf_event_attr& attr) noexcept {
  // The bit after sigtrap, in the word after read_format; older headers have no name for it.
  constexpr std::size_t kFlagsAt = offsetof(perf_event_attr, read_format) + sizeof(std::uint64_t);
  constexpr unsigned kBit = 38;
  std::uint64_t flags = 0;
  std::memcpy(&flags, reinterpret_cast<const char*>(&attr) + kFlagsAt, sizeof flags);
  return (flags >> kBit & 1) != 0;
}

std::optional<std::uint64_t> deferred_part(const Sample& sample) {
  const U64View chain = sample.callchain;
  return chain.size() >= kMarkAndNumber && chain[chain.size() - kMarkAndNumber] == kUserDeferred
             ? std::optional(chain[chain.size() - 1])
             : std::nullopt;
}

bool DeferredChains::keep(const Record& record, const perf_event_attr& attr) {
  const auto sample = has_user_copy(attr) ? std::nullopt : parse_sample(record, attr);
  const auto number = sample ? deferred_part(*sample) : std::nullopt;
  if (!number || record.bytes.size() > kMaxBytes - bytes_)
    return false;
  bytes_ += record.bytes.size();
  kept_.emplace(*number, Kept{attr, sample->time_ns, {record.bytes.begin(), record.bytes.end()}});
  return true;
}

void DeferredChains::join(const Record& deferred, const OnSample& on_sample) {
  ByteReader reader(deferred.body());
  const auto number = reader.take<std::uint64_t>();
  const auto count = reader.take<std::uint64_t>();
  if (!number || !count || *count > reader.left().size() / sizeof(std::uint64_t))
    return;
  const U64View user(reader.left().first(static_cast<std::size_t>(*count) * sizeof(std::uint64_t)));
  const auto [first, end] = kept_.equal_range(*number);
  std::size_t left_bytes = kMaxBytes;  // any number of samples may wait for one long part
  for (auto item = first; item != end; ++item) {
    const Kept& kept = item->second;
    const Record record = view_record(kept.bytes);
    bytes_ -= kept.bytes.size();
    const auto sample = parse_sample(record, kept.attr);
    if (!sample)
      continue;
    std::vector<std::uint64_t> chain;
    for (std::size_t i = 0; i + kMarkAndNumber < sample->callchain.size(); ++i)
      chain.push_back(sample->callchain[i]);
    for (std::size_t i = 0; i < user.size(); ++i)
      chain.push_back(user[i]);
    std::size_t left_out = 0;
    const auto text = replace_user_copy(record, *sample, chain, builder_, left_out);
    const bool has_room = text.size() <= left_bytes;
    left_bytes -= has_room ? text.size() : 0;
    on_sample(kept.time_ns, has_room ? view_record(std::as_bytes(std::span(text))) : record);
  }
  kept_.erase(first, end);
}

void DeferredChains::release(std::uint64_t until_ns, const OnSample& on_sample) {
  std::erase_if(kept_, [&](const auto& item) {
    const Kept& kept = item.second;
    if (kept.time_ns > until_ns)
      return false;
    bytes_ -= kept.bytes.size();
    on_sample(kept.time_ns, view_record(kept.bytes));
    return true;
  });
}

}  // namespace pe::stream
