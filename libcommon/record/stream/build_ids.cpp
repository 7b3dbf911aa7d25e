// SPDX-License-Identifier: MIT
#include "record/stream/build_ids.h"

#include <algorithm>
#include <span>
#include <variant>

#include "objects/mapped_image.h"

namespace pe::record {
namespace {

/// The place of device, inode and generation, or else of the build id: after the header, pid, tid,
/// start, size and offset (perf_event_open(2), "MMAP2").
constexpr std::size_t kIdentityAt = sizeof(perf_event_header) + 32;
constexpr std::size_t kSizeBytes = 4;  // the id's size, and three reserved bytes

}  // namespace

stream::Record BuildIds::completed(const stream::Record& record) {
  if (!is_wanted_ || record.type != PERF_RECORD_MMAP2)
    return record;
  const auto map = stream::parse_mmap(record);
  if (!map || !map->build_id.empty() || map->inode == 0)
    return record;
  const std::string& id = of(*map);
  if (id.empty())
    return record;
  completed_.assign(record.bytes.begin(), record.bytes.end());
  perf_event_header header{record.type,
                           static_cast<std::uint16_t>(record.misc | PERF_RECORD_MISC_MMAP_BUILD_ID),
                           static_cast<std::uint16_t>(completed_.size())};
  std::memcpy(completed_.data(), &header, sizeof header);
  const auto identity =
      std::span(completed_).subspan(kIdentityAt, kSizeBytes + stream::kMaxBuildIdBytes);
  std::ranges::fill(identity, std::byte{0});
  identity[0] = static_cast<std::byte>(id.size());
  std::ranges::copy(std::as_bytes(std::span(id)), identity.subspan(kSizeBytes).begin());
  return stream::view_record(completed_);
}

/// Empty if the file has no build id, or none that a record can hold.
const std::string& BuildIds::of(const stream::MmapRecord& map) {
  const auto [item, is_new] = ids_.try_emplace({map.device, map.inode});
  if (!is_new)
    return item->second;
  const stream::MappedFile file{.path = std::string(map.path), .inode = map.inode};
  const auto opened = objects::open_mapped_image(
      static_cast<pid_t>(map.pid), {map.start, map.start + map.size, map.file_offset, &file},
      objects::FileMatch::kSameInode, nullptr);
  if (const auto* image = std::get_if<objects::Image>(&opened))
    if (const Bytes id = image->build_id(); id.size() <= stream::kMaxBuildIdBytes)
      item->second.assign(reinterpret_cast<const char*>(id.data()), id.size());
  return item->second;
}

}  // namespace pe::record
