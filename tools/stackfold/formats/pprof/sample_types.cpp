// SPDX-License-Identifier: MIT
#include "stackfold/formats/pprof/sample_types.h"

#include <fmt/format.h>

#include "base/text.h"
#include "stackfold/frame_text.h"

namespace pe::fold {

bool SampleTypes::choose(std::span<const SampleType> types, std::size_t default_type) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    const SampleType& type = types[i];
    const bool is_named =
        options_.event && (*options_.event == type.type ||
                           *options_.event == fmt::format("{}/{}", type.type, type.unit));
    const bool is_default = !options_.event && i == default_type;
    if (!options_.all_events && !is_named && !is_default)
      continue;
    Column column{i, type.unit == "nanoseconds", std::nullopt};
    if (options_.all_events)
      column.root = counts_.frames().intern(clean_name(type.type));
    columns_.push_back(column);
    if (!options_.all_events)
      break;
  }
  return !columns_.empty();
}

void SampleTypes::add(std::span<const folded::FrameId> stack, std::size_t type,
                      std::uint64_t value) {
  for (const Column& column : columns_) {
    if (column.index != type)
      continue;
    with_root_.clear();
    if (column.root)
      with_root_.push_back(*column.root);
    with_root_.insert(with_root_.end(), stack.begin(), stack.end());
    (column.is_ns ? in_ns_ : counts_).add(with_root_, {.whole = value});
  }
}

std::string no_such_type(std::string_view wanted, std::span<const SampleType> types) {
  std::string names;
  for (const SampleType& type : types)
    names.append(names.empty() ? "" : ", ").append(printable(type.type));
  return fmt::format("no sample type '{}' (it has {})", printable(wanted), names);
}

}  // namespace pe::fold
