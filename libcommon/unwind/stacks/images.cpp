// SPDX-License-Identifier: MIT
#include "unwind/stacks/images.h"

#include <algorithm>

#include "base/descriptors.h"

namespace pe::unwind {

std::uint32_t Images::number_of(const stream::Mapping& mapping, std::uint32_t pid) {
  const objects::FileQuery query = files_.query(pid, mapping);
  const auto [item, is_new] =
      numbers_.try_emplace(query.key(), static_cast<std::uint32_t>(images_.size()));
  if (is_new)
    images_.push_back({.mapping = mapping, .pid = query.pid, .table = nullptr});
  return item->second;
}

UnwindTable* Images::table(std::uint32_t number) {
  Image& image = images_[number];
  if (!image.is_opened && left_bytes_ > 0)
    open(image);
  return image.table.get();
}

void Images::open(Image& image) {
  Spender spender =
      budget_ != nullptr ? Spender(*budget_, static_cast<std::uint32_t>(image.pid)) : Spender();
  const Spender::Scope scope(spender);
  if (!spender.may_start())
    return;
  auto opened = objects::open_mapped_image(image.pid, image.mapping, match_, &cache_);
  bool is_new = false;
  if (auto* elf = std::get_if<objects::Image>(&opened)) {
    elf->pay_by(spender);
    image.table = table_of(*elf, is_new);
  }
  constexpr std::size_t kRowsOfBytes = 3;  // rows are kept, too
  if (is_new && !spender.is_free() && !spender.has_lost()) {
    image.kept = KeptBytes(spender);
    image.kept.may_add(kRowsOfBytes * image.table->section_bytes());
  }
  if (is_new && spender.has_lost()) {  // a part is missing, or there is no room
    std::erase_if(by_identity_, [&](const auto& known) { return known.second == image.table; });
    image.table.reset();
  }
  image.lacked_descriptors = image.table == nullptr && !has_free_descriptors(kDescriptorsToOpen);
  // Descriptors may be free the next time, and the process may pay.
  image.is_opened = !image.lacked_descriptors && (image.table != nullptr || !spender.has_lost());
  if (is_new && image.table != nullptr)
    left_bytes_ -= std::min(left_bytes_, image.table->section_bytes());
}

/// Several records may lead to one file.
std::shared_ptr<UnwindTable> Images::table_of(const objects::Image& elf, bool& is_new) {
  const auto identity = objects::identity_of(elf);
  std::shared_ptr<UnwindTable> unshared;
  auto& table = identity ? by_identity_[*identity] : unshared;
  is_new = table == nullptr;
  if (is_new)
    table = std::make_shared<UnwindTable>(elf);
  return table;
}

bool Images::lacked_descriptors(const stream::MappedFile& file) const {
  for (auto number = numbers_.lower_bound({&file, 0});
       number != numbers_.end() && number->first.first == &file; ++number)
    if (images_[number->second].lacked_descriptors)
      return true;
  return false;
}

}  // namespace pe::unwind
