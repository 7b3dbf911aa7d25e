// SPDX-License-Identifier: MIT
#include "objects/mapped_image.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/io/regular_file.h"
#include "objects/build_id_cache.h"
#include "objects/vdso.h"
#include "stream/proc/maps.h"
#include "stream/proc/root_file.h"

namespace pe::objects {
namespace {

using Opened = std::variant<RegularFile, FileFailure>;

bool has_inode(const Opened& opened, std::uint64_t inode) {
  struct stat status = {};
  const auto* file = std::get_if<RegularFile>(&opened);
  return file != nullptr && ::fstat(file->fd.get(), &status) == 0 && status.st_ino == inode;
}

Opened open_mapping(pid_t pid, const stream::Mapping& mapping) {
  return open_stored(fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.start, mapping.end));
}

Opened open_program(pid_t pid) { return open_stored(fmt::format("/proc/{}/exe", pid)); }

/// Checks one file after the other for the recorded build id.
class BuildIdSearch {
 public:
  explicit BuildIdSearch(std::string_view wanted) : wanted_(wanted) {}

  /// Returns true if `opened` has the build id.
  bool look_at(OpenResult opened) {
    if (auto* image = std::get_if<Image>(&opened)) {
      if (image->has_build_id(wanted_)) {
        result_ = std::move(*image);
        return true;
      }
      result_ = OpenFailure::kOtherBuildId;
    } else if (std::get<OpenFailure>(result_) == OpenFailure::kMissing) {
      result_ = std::get<OpenFailure>(opened);
    }
    return false;
  }
  bool look_at(Opened opened) { return look_at(Image::open(std::move(opened))); }

  OpenResult take() { return std::move(result_); }

 private:
  std::string_view wanted_;
  OpenResult result_ = OpenFailure::kMissing;  ///< until found: the most specific failure so far
};

OpenResult open_by_build_id(pid_t pid, const stream::Mapping& mapping, const BuildIdCache* cache) {
  const std::string& build_id = mapping.file->build_id;
  const std::string path = without_deleted(mapping.file->path);
  BuildIdSearch search(build_id);
  const bool is_found = (pid != 0 && (search.look_at(open_mapping(pid, mapping)) ||
                                      search.look_at(open_program(pid)) ||
                                      search.look_at(stream::open_in_root(pid, path)))) ||
                        search.look_at(open_stored(path));
  if (!is_found && cache != nullptr)
    if (auto kept = cache->open(build_id))
      return std::move(*kept);
  return search.take();
}

OpenResult open_by_inode(pid_t pid, const stream::Mapping& mapping, FileMatch match) {
  const std::uint64_t inode = mapping.file->inode;
  const std::string path = without_deleted(mapping.file->path);
  Opened in_root = FileFailure::kMissing;
  if (pid != 0) {
    // The current mapping may belong to the same process, or to another that reuses its PID.
    if (Opened mapped = open_mapping(pid, mapping); has_inode(mapped, inode))
      return Image::open(std::move(mapped));
    if (Opened program = open_program(pid); has_inode(program, inode))
      return Image::open(std::move(program));
    in_root = stream::open_in_root(pid, path);
    if (has_inode(in_root, inode))
      return Image::open(std::move(in_root));
  }
  Opened here = open_stored(path);
  if (has_inode(here, inode))
    return Image::open(std::move(here));
  if (inode != 0 && match == FileMatch::kSameInode && std::holds_alternative<RegularFile>(here))
    return OpenFailure::kMissing;  // another file has this path now
  return Image::open(inode == 0 && std::holds_alternative<RegularFile>(in_root) ? std::move(in_root)
                                                                                : std::move(here));
}

/// Returns the inode that /proc reports for the mapping at `avma`; 0 if nothing is mapped.
std::uint64_t mapped_inode(pid_t pid, std::uint64_t avma) {
  std::uint64_t inode = 0;
  stream::for_each_mapping(pid, [&](const stream::MapsLine& map) {
    if (map.start <= avma && avma < map.end)
      inode = map.inode;
  });
  return inode;
}

OpenResult open_vdso(std::string_view build_id) {
  OpenResult own = own_vdso();
  const auto* image = std::get_if<Image>(&own);
  if (image != nullptr && !build_id.empty() && !image->has_build_id(build_id))
    return OpenFailure::kOtherBuildId;
  return own;
}

}  // namespace

std::string without_deleted(const std::string& path) {
  constexpr std::string_view kDeleted = " (deleted)";
  return path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path;
}

OpenResult open_mapped_image(pid_t pid, const stream::Mapping& mapping, FileMatch match,
                             const BuildIdCache* cache) {
  if (mapping.file->path == "[vdso]")
    return open_vdso(mapping.file->build_id);
  return mapping.file->build_id.empty() ? open_by_inode(pid, mapping, match)
                                        : open_by_build_id(pid, mapping, cache);
}

OpenResult open_from_process(pid_t pid, const stream::Mapping& mapping) {
  BuildIdSearch search(mapping.file->build_id);
  // The links of /proc lead to the file itself; its path may lead to another file by now.
  if (search.look_at(open_mapping(pid, mapping)) || search.look_at(open_program(pid)))
    return search.take();
  Opened in_root = stream::open_in_root(pid, without_deleted(mapping.file->path));
  const std::uint64_t inode = mapped_inode(pid, mapping.start);
  if (inode != 0 && has_inode(in_root, inode))
    search.look_at(std::move(in_root));
  return search.take();
}

std::optional<Image> open_here(const stream::Mapping& mapping) {
  auto opened = Image::open(mapping.file->path);
  auto* image = std::get_if<Image>(&opened);
  if (image == nullptr || !image->has_build_id(mapping.file->build_id))
    return std::nullopt;
  return std::move(*image);
}

bool has_other_inode(const Image& image, const stream::MappedFile& recorded) {
  struct stat status = {};
  return recorded.build_id.empty() && recorded.inode != 0 && ::fstat(image.fd(), &status) == 0 &&
         status.st_ino != recorded.inode;
}

}  // namespace pe::objects
