// SPDX-License-Identifier: MIT
#include "objects/mapped_image.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/io/input.h"
#include "base/io/regular_file.h"
#include "base/parse_number.h"
#include "objects/build_id_cache.h"
#include "objects/file_identity.h"
#include "stream/proc/maps.h"
#include "stream/proc/process_table.h"

namespace pe::objects {
namespace {

constexpr std::size_t kMaxMapsBytes = 64U << 20;
constexpr std::uint64_t kMaxVdsoBytes = 1U << 20;  // x86-64 has two pages

/// Returns the end of the mapping that starts at `start`: "start-end perms ...", proc(5).
std::optional<std::uint64_t> end_of_mapping(std::string_view maps, std::uint64_t start) {
  while (!maps.empty()) {
    const std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(line.size() + 1, maps.size()));
    const std::size_t dash = line.find('-');
    const std::size_t blank = line.find(' ');
    if (dash == std::string_view::npos || blank == std::string_view::npos || blank < dash)
      continue;
    const auto from = parse_number<std::uint64_t>(line.substr(0, dash), 16);
    if (from == start)
      return parse_number<std::uint64_t>(line.substr(dash + 1, blank - dash - 1), 16);
  }
  return std::nullopt;
}

}  // namespace

OpenResult own_vdso() {
  const std::uint64_t start = ::getauxval(AT_SYSINFO_EHDR);
  if (start == 0)
    return OpenFailure::kMissing;
  const auto maps = read_small_file("/proc/self/maps", kMaxMapsBytes);
  if (!maps)
    return OpenFailure::kUnreadable;
  const auto end = end_of_mapping(*maps, start);
  if (!end || *end <= start || *end - start > kMaxVdsoBytes)
    return OpenFailure::kMissing;
  // AT_SYSINFO_EHDR is an address; there is no pointer to derive it from.
  const auto* memory =
      reinterpret_cast<const std::byte*>(start);  // NOLINT(performance-no-int-to-ptr)
  return Image::from_memory({memory, memory + (*end - start)});
}

namespace {

using Opened = std::variant<RegularFile, FileFailure>;

std::optional<struct stat> status_of(const Opened& opened) {
  struct stat status = {};
  const auto* file = std::get_if<RegularFile>(&opened);
  if (file == nullptr || ::fstat(file->fd.get(), &status) != 0)
    return std::nullopt;
  return status;
}

/// Is it the recorded file, by what identifies files without a build id?
bool is_recorded(const Opened& opened, const stream::MappedFile& recorded) {
  const auto status = status_of(opened);
  return status &&
         (is_of_this_boot(recorded) ? may_be(*status, recorded) : status->st_ino == recorded.inode);
}

/// May a file at the recorded path have the names of the recorded file, if it has its build id?
/// While the system runs, a file that another user may have put there must be the same file.
bool may_stand_for(const Opened& opened, const stream::MappedFile& recorded) {
  const auto status = status_of(opened);
  return !status || may_be(*status, recorded) || is_trusted(*status);
}

std::string map_files_path(pid_t pid, const stream::Mapping& mapping) {
  return fmt::format("/proc/{}/map_files/{:x}-{:x}", stream::live_thread_of(pid), mapping.start,
                     mapping.end);
}

std::string program_path(pid_t pid) {
  return fmt::format("/proc/{}/exe", stream::live_thread_of(pid));
}

/// Checks one file after the other for the recorded build id.
class BuildIdSearch {
 public:
  explicit BuildIdSearch(const stream::MappedFile& wanted) : wanted_(wanted) {}

  /// Returns true if `opened`, of the process, is the recorded file.
  bool look_at(Opened opened) {
    const auto status = status_of(opened);
    return (!status || may_be(*status, wanted_)) && look(std::move(opened));
  }
  /// Does the same for a file at the recorded path here.
  bool look_here(Opened opened) {
    return may_stand_for(opened, wanted_) && look(std::move(opened));
  }

  OpenResult take() { return std::move(result_); }

 private:
  bool look(Opened from) {
    OpenResult opened = Image::open(std::move(from));
    if (auto* image = std::get_if<Image>(&opened)) {
      if (image->has_build_id(wanted_.build_id)) {
        result_ = std::move(*image);
        return true;
      }
      result_ = OpenFailure::kOtherBuildId;
    } else if (std::get<OpenFailure>(result_) == OpenFailure::kMissing) {
      result_ = std::get<OpenFailure>(opened);
    }
    return false;
  }

  const stream::MappedFile& wanted_;
  OpenResult result_ = OpenFailure::kMissing;  ///< until found: the most specific failure so far
};

/// The file here comes first: a process can map other files before it is asked.
OpenResult open_by_build_id(pid_t pid, const stream::Mapping& mapping, const BuildIdCache* cache) {
  const stream::MappedFile& file = *mapping.file;
  const std::string path = without_deleted(file.path);
  BuildIdSearch search(file);
  const bool is_found = search.look_here(open_stored(path)) ||
                        (pid != 0 && (search.look_at(open_stored(map_files_path(pid, mapping))) ||
                                      search.look_at(open_stored(program_path(pid))) ||
                                      search.look_at(stream::open_in_root(pid, path))));
  if (!is_found && cache != nullptr)
    if (auto kept = cache->open(file))
      return std::move(*kept);
  return search.take();
}

OpenResult open_by_inode(pid_t pid, const stream::Mapping& mapping, FileMatch match) {
  const stream::MappedFile& file = *mapping.file;
  const std::string path = without_deleted(file.path);
  Opened here = open_stored(path);
  if (is_recorded(here, file))
    return Image::open(std::move(here));
  Opened in_root = FileFailure::kMissing;
  if (pid != 0) {
    // The current mapping may belong to the same process, or to another that reuses its PID.
    for (const std::string& link : {map_files_path(pid, mapping), program_path(pid)})
      if (Opened opened = open_stored(link); is_recorded(opened, file))
        return Image::open(std::move(opened));
    in_root = stream::open_in_root(pid, path);
    if (is_recorded(in_root, file))
      return Image::open(std::move(in_root));
  }
  const bool is_running = match == FileMatch::kSameInode || is_of_this_boot(file);
  if (file.inode != 0 && is_running && std::holds_alternative<RegularFile>(here))
    return OpenFailure::kMissing;  // another file has this path now
  return Image::open(file.inode == 0 && std::holds_alternative<RegularFile>(in_root)
                         ? std::move(in_root)
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
  const stream::MappedFile& file = *mapping.file;
  if (file.path == "[vdso]")
    return open_vdso(file.build_id);
  // A process of another boot has ended, and so has one that could not be asked at once.
  if (file.identity.is_known() ? !is_of_this_boot(file)
                               : match == FileMatch::kSameInode && !file.build_id.empty())
    pid = 0;
  return file.build_id.empty() ? open_by_inode(pid, mapping, match)
                               : open_by_build_id(pid, mapping, cache);
}

OpenResult open_from_process(pid_t pid, const stream::Mapping& mapping) {
  BuildIdSearch search(*mapping.file);
  // The links of /proc lead to the file itself; its path may lead to another file by now.
  if (search.look_at(open_stored(map_files_path(pid, mapping))) ||
      search.look_at(open_stored(program_path(pid))))
    return search.take();
  Opened in_root = stream::open_in_root(pid, without_deleted(mapping.file->path));
  const auto status = status_of(in_root);
  const std::uint64_t inode = mapped_inode(pid, mapping.start);
  if (status && inode != 0 && status->st_ino == inode)
    search.look_at(std::move(in_root));
  return search.take();
}

std::optional<Image> open_here(const stream::Mapping& mapping) {
  BuildIdSearch search(*mapping.file);
  if (!search.look_here(open_stored(mapping.file->path)))
    return std::nullopt;
  return std::move(std::get<Image>(search.take()));
}

FileIdentity identity_of_mapping(pid_t pid, const stream::Mapping& mapping) {
  const FileIdentity mapped = identity_at(map_files_path(pid, mapping));
  // The path may lead elsewhere.  That is harmless: who opens the file compares it with this.
  return mapped.is_known() ? mapped
                           : identity_at(fmt::format("/proc/{}/root{}", stream::live_thread_of(pid),
                                                     mapping.file->path));
}

FileQuery SharedFiles::query(std::uint32_t pid, const stream::Mapping& mapping) {
  if (mapping.file->identity.is_known())
    return {mapping.file, 0, static_cast<pid_t>(pid)};
  const auto [is_here, is_new] = is_here_.try_emplace(mapping.file);
  if (is_new)
    is_here->second =
        std::holds_alternative<Image>(open_mapped_image(0, mapping, FileMatch::kSameInode, cache_));
  const std::uint32_t process = is_here->second ? 0 : pid;
  return {mapping.file, process, static_cast<pid_t>(process)};
}

bool has_other_inode(const Image& image, const stream::MappedFile& recorded) {
  struct stat status = {};
  return recorded.build_id.empty() && recorded.inode != 0 && ::fstat(image.fd(), &status) == 0 &&
         status.st_ino != recorded.inode;
}

namespace {

struct DynamicFacts {
  std::optional<std::uint64_t> soname;  ///< offset in .dynstr
  bool is_pie = false;
};

template <typename Dyn>
DynamicFacts read_dynamic(Bytes bytes) {
  DynamicFacts facts;
  ByteReader reader(bytes);
  while (const auto entry = reader.take<Dyn>()) {
    if (entry->d_tag == DT_NULL)
      break;
    if (entry->d_tag == DT_SONAME)
      facts.soname = entry->d_un.d_val;
    facts.is_pie =
        facts.is_pie || (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & DF_1_PIE) != 0);
  }
  return facts;
}

DynamicFacts read_dynamic(const Image& image) {
  const auto dynamic = image.section_bytes(".dynamic");
  if (!dynamic)
    return {};
  return image.is_64_bit() ? read_dynamic<Elf64_Dyn>(dynamic->bytes)
                           : read_dynamic<Elf32_Dyn>(dynamic->bytes);
}

}  // namespace

bool is_shared_library(const Image& image) {
  if (image.type() != ET_DYN)
    return false;
  const DynamicFacts facts = read_dynamic(image);
  if (facts.is_pie)
    return false;
  return facts.soname || image.section(".interp") == nullptr;
}

std::string soname_of(const Image& image) {
  const auto at = read_dynamic(image).soname;
  const auto names = at ? image.section_bytes(".dynstr") : std::nullopt;
  if (!names || *at >= names->bytes.size())
    return {};
  const Bytes rest = Bytes(names->bytes).subspan(*at);
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  return std::string(text.substr(0, text.find('\0')));
}

}  // namespace pe::objects
