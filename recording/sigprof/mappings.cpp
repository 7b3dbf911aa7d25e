// SPDX-License-Identifier: MIT
#include "recording/sigprof/mappings.h"

#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/clock.h"
#include "objects/image.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "recording/inprocess/runtime/timers.h"

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

namespace {

constexpr std::uint64_t kRereadNs = kNsPerSecond;
constexpr std::uint64_t kReadShare = 20, kMostDebtNs = 100'000'000;

auto place_of(const Mapping& mapping) noexcept { return std::tie(mapping.start, mapping.end); }

}  // namespace

bool Mappings::has(std::uint64_t avma) const noexcept {
  const List& list = lists_[current_];
  const auto* const end = list.all.data() + list.count;
  const auto* const above =
      std::upper_bound(list.all.data(), end, avma,
                       [](std::uint64_t at, const Mapping& mapping) { return at < mapping.start; });
  return above != list.all.data() && avma < (above - 1)->end;
}

/// Whether reading is within its share of the time.  Allows a few reads at once, for libraries that
/// are loaded one after another.
bool Mappings::may_read(std::uint64_t now_ns) noexcept {
  const std::uint64_t paid_ns = (now_ns - paid_until_ns_) / kReadShare;
  paid_until_ns_ = now_ns;
  debt_ns_ -= std::min(debt_ns_, paid_ns);
  return debt_ns_ < kMostDebtNs;
}

void Mappings::follow(std::uint64_t oldest_ns, RecordBuffer& buffer, std::uint32_t pid,
                      pthread_mutex_t& fork_lock) noexcept {
  const std::uint64_t now_ns = monotonic_ns();
  since_ns_ = std::max(since_ns_, oldest_ns);
  if (!may_read(now_ns))
    return;
  std::array<char, 128> text;
  const std::uint64_t tick_ns = last_tick_ns();
  const std::uint64_t pages = mapped_pages(read_proc("/proc/self/statm", text));
  if (pages == pages_ && now_ns - read_ns_ < kRereadNs) {
    since_ns_ = tick_ns;
    return;
  }
  pages_ = pages;
  read(buffer, pid, fork_lock);
}

void Mappings::follow_to(std::uint64_t ip, RecordBuffer& buffer, std::uint32_t pid,
                         pthread_mutex_t& fork_lock) noexcept {
  if (!has(ip) && may_read(monotonic_ns()))
    read(buffer, pid, fork_lock);
}

void Mappings::read(RecordBuffer& buffer, std::uint32_t pid, pthread_mutex_t& fork_lock) noexcept {
  // Reading costs its CPU time; waiting for a processor is not a cost.
  const std::uint64_t before_ns = own_cpu_ns(), tick_ns = last_tick_ns();
  ::pthread_mutex_lock(&fork_lock);
  modules_.read();
  ::pthread_mutex_unlock(&fork_lock);
  lists_[1 - current_].count = 0;
  compared_ = 0;
  const bool is_read = for_each_own_mapping(text_, [&](const stream::MapsLine& map) {
    take(buffer, pid, map);
    return true;
  });
  debt_ns_ += own_cpu_ns() - before_ns;
  if (!is_read)
    return;
  current_ = 1 - current_;
  read_ns_ = monotonic_ns();
  since_ns_ = tick_ns;
}

/// Adds a mapping, and writes it if it is new and executable.  Both lists are in order of
/// addresses, so one pass over them finds the new mappings.
void Mappings::take(RecordBuffer& buffer, std::uint32_t pid, const stream::MapsLine& map) noexcept {
  List& next = lists_[1 - current_];
  if (!map.executable || next.count == kMost)
    return;
  const Mapping mapping{.start = map.start,
                        .end = map.end,
                        .file_offset = map.file_offset,
                        .inode = map.inode,
                        .device_major = map.device_major,
                        .device_minor = map.device_minor};
  next.all[next.count++] = mapping;
  const List& known = lists_[current_];
  while (compared_ < known.count && place_of(known.all[compared_]) < place_of(mapping))
    ++compared_;
  if (compared_ < known.count && known.all[compared_] == mapping)
    return;
  const bool is_file = map.inode != 0 && map.path.starts_with('/');
  write_mapping(buffer, {pid, pid, since_ns_}, map,
                is_file ? modules_.build_id_at(map.start) : Bytes{});
}

}  // namespace pe::inprocess
