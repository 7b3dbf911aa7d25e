// SPDX-License-Identifier: MIT
#include "stacks/images.h"

#include "elf/image.h"
#include "elf/vdso.h"

namespace pe::stacks {
namespace {

elf::OpenResult open(const proc::Mapping& mapping, std::uint32_t pid, proc::FileMatch match) {
  if (mapping.file->path == "[vdso]")
    return elf::own_vdso();
  auto opened = proc::open_mapped_file(static_cast<pid_t>(pid), mapping, match);
  if (auto* file = std::get_if<io::RegularFile>(&opened))
    return elf::Image::open(std::move(file->fd));
  return elf::OpenFailure::kMissing;
}

}  // namespace

std::uint32_t Images::number_of(const proc::Mapping& mapping, std::uint32_t pid) {
  const auto [item, is_new] =
      numbers_.try_emplace(mapping.file, static_cast<std::uint32_t>(images_.size()));
  if (is_new)
    images_.push_back({.mapping = mapping, .pid = pid, .table = nullptr});
  return item->second;
}

unwind::UnwindTable* Images::table(std::uint32_t number) {
  Image& image = images_[number];
  if (!image.is_opened) {
    image.is_opened = true;
    const auto opened = open(image.mapping, image.pid, match_);
    if (const auto* elf = std::get_if<elf::Image>(&opened))
      image.table = std::make_unique<unwind::UnwindTable>(*elf);
  }
  return image.table.get();
}

}  // namespace pe::stacks
