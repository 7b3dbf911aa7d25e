// SPDX-License-Identifier: MIT
#include "unwind/stacks/images.h"

#include <algorithm>

#include "base/descriptors.h"

namespace pe::unwind {

std::uint32_t Images::number_of(const stream::Mapping& mapping, std::uint32_t pid) {
  const auto [item, is_new] =
      numbers_.try_emplace(mapping.file, static_cast<std::uint32_t>(images_.size()));
  if (is_new)
    images_.push_back({.mapping = mapping, .pid = pid, .table = nullptr});
  return item->second;
}

UnwindTable* Images::table(std::uint32_t number) {
  Image& image = images_[number];
  if (!image.is_opened && left_bytes_ > 0) {
    const auto opened =
        objects::open_mapped_image(static_cast<pid_t>(image.pid), image.mapping, match_, &cache_);
    if (const auto* elf = std::get_if<objects::Image>(&opened))
      image.table = std::make_unique<UnwindTable>(*elf);
    image.lacked_descriptors = image.table == nullptr && !has_free_descriptors(kDescriptorsToOpen);
    image.is_opened = !image.lacked_descriptors;  // descriptors may be free the next time
    if (image.table != nullptr)
      left_bytes_ -= std::min(left_bytes_, image.table->section_bytes());
  }
  return image.table.get();
}

bool Images::lacked_descriptors(const stream::MappedFile& file) const {
  const auto number = numbers_.find(&file);
  return number != numbers_.end() && images_[number->second].lacked_descriptors;
}

}  // namespace pe::unwind
