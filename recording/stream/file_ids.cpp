// SPDX-License-Identifier: MIT
#include "recording/stream/file_ids.h"

#include <algorithm>
#include <span>
#include <variant>

#include "base/clock.h"
#include "objects/mapped_image.h"

namespace pe::recording {
namespace {

/// The place of device, inode and generation, or else of the build id: after the header, pid, tid,
/// start, size and offset (perf_event_open(2), "MMAP2").
constexpr std::size_t kIdentityAt = sizeof(perf_event_header) + 32;
constexpr std::size_t kSizeBytes = 4;  // the id's size, and three reserved bytes

stream::Mapping mapping_of(const stream::MmapRecord& map, const stream::MappedFile& file) {
  return {map.start, map.start + map.size, map.file_offset, &file};
}

/// Whether the record is of a file, not of memory such as "//anon" and "[vdso]".
bool is_of_file(const stream::MmapRecord& map) {
  return map.path.starts_with('/') && !map.path.starts_with("//");
}

FileIdentity identity_of(const stream::MmapRecord& map, const stream::MappedFile& file) {
  const FileIdentity mapped =
      objects::identity_of_mapping(static_cast<pid_t>(map.pid), mapping_of(map, file));
  if (mapped.is_known() || map.inode == 0)
    return mapped;
  const FileIdentity here = identity_at(file.path);  // the process has ended
  return here.inode == map.inode ? here : FileIdentity{};
}

void put_build_id(std::span<std::byte> record, const std::string& id) {
  const auto place = record.subspan(kIdentityAt, kSizeBytes + stream::kMaxBuildIdBytes);
  std::ranges::fill(place, std::byte{0});
  place[0] = static_cast<std::byte>(id.size());
  std::ranges::copy(std::as_bytes(std::span(id)), place.subspan(kSizeBytes).begin());
}

}  // namespace

/// Programs can map files all the time.  Looking one up takes 4 us.
bool FileIds::may_look_up(std::uint32_t pid) {
  constexpr double kNs = 4'000;
  if (budget_ == nullptr)
    return true;
  const std::uint64_t now_ns = monotonic_ns();
  budget_->look(now_ns);
  if (!budget_->may_spend(pid, Resource::kCpuNs, kNs, now_ns)) {
    budget_->count_loss(pid, Resource::kCpuNs, now_ns);
    return false;
  }
  budget_->spend(pid, Resource::kCpuNs, kNs, now_ns);
  return true;
}

stream::Record FileIds::completed(const stream::Record& record) {
  const auto map = record.type == PERF_RECORD_MMAP2 ? stream::parse_mmap(record) : std::nullopt;
  if (!map || !is_of_file(*map) || map->identity.is_known() ||
      record.bytes.size() < trailer_bytes_ || !may_look_up(map->pid))
    return record;
  stream::MappedFile file{.path = std::string(map->path), .inode = map->inode};
  file.identity = identity_of(*map, file);
  const bool needs_id = with_build_ids_ && map->build_id.empty() && map->inode != 0;
  const std::string id = needs_id ? build_id_of(*map, file) : std::string();
  if (!file.identity.is_known() && id.empty())
    return record;
  const auto trailer = record.bytes.last(trailer_bytes_);
  completed_.assign(record.bytes.begin(),
                    record.bytes.end() - static_cast<std::ptrdiff_t>(trailer.size()));
  const auto add = [this](Bytes bytes) {
    completed_.insert(completed_.end(), bytes.begin(), bytes.end());
  };
  if (file.identity.is_known())
    for (const std::uint64_t word :
         {stream::kIdentityMark, file.identity.boot, file.identity.device, file.identity.inode,
          file.identity.changed_ns})
      add(std::as_bytes(std::span(&word, 1)));
  add(trailer);
  const int with_id = id.empty() ? 0 : PERF_RECORD_MISC_MMAP_BUILD_ID;
  const perf_event_header header{record.type, static_cast<std::uint16_t>(record.misc | with_id),
                                 static_cast<std::uint16_t>(completed_.size())};
  std::memcpy(completed_.data(), &header, sizeof header);
  if (!id.empty())
    put_build_id(completed_, id);
  return stream::view_record(completed_);
}

/// Empty if the file has no build id, or none that a record can hold.
const std::string& FileIds::build_id_of(const stream::MmapRecord& map,
                                        const stream::MappedFile& file) {
  static const std::string none;
  if (!file.identity.is_known())
    return none;
  constexpr std::size_t kMostKept = 65'536;  // a file's time of change can change all the time
  if (build_ids_.size() >= kMostKept)
    build_ids_.clear();
  const auto [item, is_new] = build_ids_.try_emplace(file.identity);
  if (!is_new)
    return item->second;
  const auto opened = objects::open_mapped_image(static_cast<pid_t>(map.pid), mapping_of(map, file),
                                                 objects::FileMatch::kSameInode, nullptr);
  if (const auto* image = std::get_if<objects::Image>(&opened))
    if (const Bytes id = image->build_id(); id.size() <= stream::kMaxBuildIdBytes)
      item->second.assign(reinterpret_cast<const char*>(id.data()), id.size());
  return item->second;
}

}  // namespace pe::recording
