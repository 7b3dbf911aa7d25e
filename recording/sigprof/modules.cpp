// SPDX-License-Identifier: MIT
#include "recording/sigprof/modules.h"

#include <link.h>

#include <algorithm>
#include <cstring>

#include "objects/notes.h"

namespace pe::inprocess {

/// The callback of dl_iterate_phdr(3).
struct ModuleVisitor {
  static int visit(dl_phdr_info* info, std::size_t /*size*/, void* memory) noexcept {
    auto& list = *static_cast<ModuleList*>(memory);
    if (list.count_ == ModuleList::kMost)
      return 1;
    Module module{.start = ~std::uint64_t{0}, .end = 0, .id_bytes = 0, .id = {}};
    for (std::size_t i = 0; i < info->dlpi_phnum; ++i) {
      const auto& segment = info->dlpi_phdr[i];
      const std::uint64_t start = info->dlpi_addr + segment.p_vaddr;
      if (segment.p_type == PT_LOAD) {
        module.start = std::min(module.start, start);
        module.end = std::max(module.end, start + segment.p_memsz);
      } else if (segment.p_type == PT_NOTE && module.id_bytes == 0) {
        const auto* notes = reinterpret_cast<const std::byte*>(start);  // NOLINT: it is mapped
        const Bytes id = objects::find_build_id_note({notes, segment.p_memsz}, segment.p_align);
        if (id.size() <= Module::kMostIdBytes) {
          std::copy(id.begin(), id.end(), module.id.begin());
          module.id_bytes = static_cast<std::uint32_t>(id.size());
        }
      }
    }
    list.all_[list.count_++] = module;
    return 0;
  }
};

void ModuleList::read() noexcept {
  count_ = 0;
  ::dl_iterate_phdr(ModuleVisitor::visit, this);
}

Bytes ModuleList::build_id_at(std::uint64_t avma) const noexcept {
  for (std::uint32_t i = 0; i < count_; ++i)
    if (avma >= all_[i].start && avma < all_[i].end)
      return Bytes(all_[i].id).first(all_[i].id_bytes);
  return {};
}

}  // namespace pe::inprocess
