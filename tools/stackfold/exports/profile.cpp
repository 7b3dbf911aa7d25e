// SPDX-License-Identifier: MIT
#include "stackfold/exports/profile.h"

#include <limits>

#include "stackfold/frame_text.h"
#include "stream/records/sample.h"

namespace pe::fold::exports {
namespace {

/// Adds `value`.  If the sum does not fit into 63 bits, the limit of the written forms, returns
/// false and sets the sum to that limit.
bool add_bounded(std::uint64_t& sum, std::uint64_t value) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  const bool fits = sum <= kMax && value <= kMax - sum;
  sum = fits ? sum + value : kMax;
  return fits;
}

}  // namespace

Index Profile::function(std::string_view name, std::string_view file, std::string_view module,
                        std::uint32_t flags) {
  return functions_.intern({kept(name), kept(file), kept(module), flags});
}

std::pair<Index, std::uint64_t> Profile::map(const stream::Mapping& mapping, std::uint64_t avma) {
  const Index index = mappings_.intern({.path = kept(mapping.file->path),
                                        .build_id = kept(mapping.file->build_id),
                                        .file_offset = mapping.file_offset,
                                        .size = mapping.end - mapping.start});
  if (index == mapping_starts_.size())
    mapping_starts_.push_back(mapping.start);
  return {index, mapping_starts_[index] + (avma - mapping.start)};
}

Index Profile::kernel_mapping() {
  constexpr std::uint64_t kFirst = 0xffff'8000'0000'0000;  // upper half of x86-64's address space
  const Index index = mappings_.intern(
      {.path = "[kernel.kallsyms]", .build_id = {}, .file_offset = 0, .size = 0 - kFirst - 1});
  if (index == mapping_starts_.size())
    mapping_starts_.push_back(kFirst);
  return index;
}

Index Profile::place(Place place, const std::vector<Line>& lines) {
  place.first_line = 0;
  place.line_count = static_cast<Index>(lines.size());
  if (!lines.empty()) {
    const auto [found, is_new] = line_lists_.try_emplace(lines, static_cast<Index>(lines_.size()));
    if (is_new)
      lines_.insert(lines_.end(), lines.begin(), lines.end());
    place.first_line = found->second;
  }
  return places_.intern(place);
}

Index Profile::word(std::string_view text) {
  return place({}, {{.function = function(text, {}, {}, 0)}});
}

Index Profile::thread(std::uint32_t pid, std::uint32_t tid, std::string_view comm) {
  return threads_.intern({pid, tid, kept(comm)});
}

Index Profile::event(const Event& event) {
  for (Index i = 0; i < events_.size(); ++i)
    if (events_[i].name == event.name)
      return i;
  events_.push_back(event);
  return static_cast<Index>(events_.size() - 1);
}

void Profile::add(const Sum& sum) {
  const auto [found, is_new] =
      sum_of_.try_emplace({sum.stack, sum.thread, sum.event}, static_cast<Index>(sums_.size()));
  if (is_new)
    sums_.push_back({.stack = sum.stack, .thread = sum.thread, .event = sum.event});
  Sum& total = sums_[found->second];
  const bool fits = add_bounded(total.samples, sum.samples);
  saturated_ = !add_bounded(total.period, sum.period) || !fits || saturated_;
}

std::string unnamed(const Profile& profile, const Place& place) {
  if ((place.flags & stream::kSymbolKernel) != 0)
    return unnamed_text("[kernel]", place.address);
  if (place.mapping == kNoIndex)
    return unnamed_text({}, 0);
  const Mapping& mapping = profile.mappings()[place.mapping];
  return unnamed_text(mapping.path,
                      place.address - profile.start_of(place.mapping) + mapping.file_offset);
}

}  // namespace pe::fold::exports
