// SPDX-License-Identifier: MIT
#include "objects/build_id_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/io/new_file.h"
#include "base/io/regular_file.h"
#include "base/parse_number.h"
#include "objects/file_identity.h"
#include "objects/mapped_image.h"

namespace pe::objects {
namespace {

using Kept = BuildIdCache::Kept;

constexpr std::size_t kDigitsOfFolder = 2;
constexpr std::size_t kMaxPartBytes = 255;  // NAME_MAX
constexpr std::size_t kMinIdBytes = 2;
constexpr mode_t kOwnerOnly = 0700;
constexpr mode_t kOwnerFile = 0600;
constexpr const char* kLinks = ".build-id";
constexpr const char* kKept = ".kept";

/// Returns the parts of the path that are safe as names of folders: none is "..", and none leads
/// into our folders.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (!part.empty() && part != "." && part != ".." && part != kLinks && part != kKept)
      parts.emplace_back(part.substr(0, kMaxPartBytes));
  }
  return parts;
}

/// Returns the folder if we own it and its mode has none of the `forbidden` bits.
Fd check_owner(Fd folder, mode_t forbidden = 0) {
  struct stat status = {};
  const bool is_ours = folder && ::fstat(folder.get(), &status) == 0 &&
                       status.st_uid == ::geteuid() && (status.st_mode & forbidden) == 0;
  return is_ours ? std::move(folder) : Fd();
}

/// Returns the folder if we own it and nobody else may write to it.
Fd check_ours(Fd folder) { return check_owner(std::move(folder), S_IWGRP | S_IWOTH); }

/// Enters a folder; empty if there is none, or it is a link or belongs to another user.
Fd enter_existing(const Fd& parent, const std::string& name) {
  return check_ours(
      Fd(::openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
}

/// Does the same, and makes the folder if need be.
Fd enter(const Fd& parent, const std::string& name) {
  ::mkdirat(parent.get(), name.c_str(), kOwnerOnly);
  return enter_existing(parent, name);
}

/// Returns the path of a name in an open folder.
std::string in_folder(const Fd& folder, const std::string& name) {
  return fmt::format("/proc/self/fd/{}/{}", folder.get(), name);
}

bool write_all(const Fd& to, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(to.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

Kept copy(const Fd& from, std::uint64_t size, const Fd& to) {
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::uint64_t done = 0; done < size;) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), size - done));
    const std::size_t n = read_at(from, done, std::span(block).first(wanted));
    if (n == 0)
      return Kept::kChanged;
    if (!write_all(to, std::span(block).first(n)))
      return Kept::kNotWritten;
    done += n;
  }
  return Kept::kYes;
}

/// Is the copied file an image with this build id?
bool is_right(const Fd& file, std::string_view build_id) {
  const auto opened = Image::open(Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)));
  const auto* image = std::get_if<Image>(&opened);
  return image != nullptr && image->has_build_id(build_id);
}

Kept copy_to(const Fd& folder, const std::string& name, std::string_view build_id, const Fd& file) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0)
    return Kept::kChanged;
  NewFile made(in_folder(folder, name), kOwnerFile);
  if (const Kept copied = copy(file, static_cast<std::uint64_t>(status.st_size), made.fd());
      copied != Kept::kYes)
    return copied;
  if (!is_right(made.fd(), build_id))
    return Kept::kChanged;
  made.keep();
  return Kept::kYes;
}

/// The name in .kept of a file for recordings of this very file.
std::string name_of(const stream::MappedFile& file) {
  const FileIdentity& identity = file.identity;
  return fmt::format("{}-{:x}-{:x}-{:x}-{:x}", hex(file.build_id), identity.boot, identity.device,
                     identity.inode, identity.changed_ns);
}

std::string link_folder(const std::string& id) { return id.substr(0, kDigitsOfFolder); }
std::string link_name(const std::string& id) { return id.substr(kDigitsOfFolder); }

/// Opens a file of the cache, which only root and this user may have written.
std::optional<Image> open_kept(const std::string& path, std::string_view build_id, bool is_used) {
  auto opened = open_stored(path);
  const auto* file = std::get_if<RegularFile>(&opened);
  struct stat status = {};
  if (file == nullptr || ::fstat(file->fd.get(), &status) != 0 || !is_trusted(status))
    return std::nullopt;
  if (is_used) {  // perf's entries may be links to the programs themselves
    const std::array<timespec, 2> times{timespec{0, UTIME_NOW}, timespec{0, UTIME_OMIT}};
    ::futimens(file->fd.get(), times.data());
  }
  auto image = Image::open(std::move(opened));
  auto* found = std::get_if<Image>(&image);
  if (found == nullptr || !found->has_build_id(build_id))
    return std::nullopt;
  return std::move(*found);
}

/// The files in .kept.
class KeptFiles {
 public:
  /// `root` is the open folder of the cache.
  KeptFiles(const Fd& root, const Fd& folder) : root_(root), folder_(folder) {
    const Folder open(::fdopendir(::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0)));
    while (const dirent* entry = open ? ::readdir(open.get()) : nullptr)  // NOLINT(*-mt-unsafe)
      add(entry->d_name);
  }

  /// Removes the files that were not used for the longest time, until there is room for `bytes`.
  void make_room(std::uint64_t bytes, std::uint64_t max_bytes) {
    std::uint64_t all = bytes;
    for (const File& file : files_)
      all += file.bytes;
    std::ranges::sort(files_, {}, &File::used_s);
    for (const File& file : files_) {
      if (all <= max_bytes)
        return;
      remove(file.name);
      all -= file.bytes;
    }
  }

 private:
  struct CloseFolder {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
  };
  using Folder = std::unique_ptr<DIR, CloseFolder>;
  struct File {
    std::string name;
    std::int64_t used_s;
    std::uint64_t bytes;
  };

  void add(const std::string& name) {
    struct stat status = {};
    if (::fstatat(folder_.get(), name.c_str(), &status, 0) == 0 && S_ISREG(status.st_mode))
      files_.push_back({name, std::max(status.st_atim.tv_sec, status.st_mtim.tv_sec),
                        static_cast<std::uint64_t>(status.st_size)});
  }

  void remove(const std::string& name) {
    remove_target(name);
    ::unlinkat(folder_.get(), name.c_str(), 0);
  }

  /// Removes the file PATH/ID/elf, if `name` is a link to it.
  void remove_target(const std::string& name) {
    std::array<char, PATH_MAX> target{};
    const ssize_t bytes = ::readlinkat(folder_.get(), name.c_str(), target.data(), target.size());
    std::vector<std::string> parts =
        parts_of({target.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))});
    if (parts.empty())
      return;
    const std::string file = parts.back();
    parts.pop_back();
    Fd folder(::fcntl(root_.get(), F_DUPFD_CLOEXEC, 0));
    for (const std::string& part : parts) {
      folder = enter_existing(folder, part);
      if (!folder)
        return;
    }
    ::unlinkat(folder.get(), file.c_str(), 0);
  }

  const Fd& root_;
  const Fd& folder_;
  std::vector<File> files_;
};

/// Keeps the file where perf looks for it.
Kept keep_for_perf(const Fd& root, const Fd& kept, const stream::MappedFile& file, const Fd& from) {
  const std::string id = hex(file.build_id);
  Fd folder(::fcntl(root.get(), F_DUPFD_CLOEXEC, 0));
  std::string path;
  std::vector<std::string> parts = parts_of(without_deleted(file.path));
  parts.push_back(id);
  for (const std::string& part : parts) {
    folder = enter(folder, part);
    if (!folder)
      return Kept::kNotOurs;
    path += '/';
    path += part;
  }
  if (const Kept copied = copy_to(folder, "elf", file.build_id, from); copied != Kept::kYes)
    return copied;
  const Fd ids = enter(root, kLinks);
  const Fd links = ids ? enter(ids, link_folder(id)) : Fd();
  if (!links)
    return Kept::kNotOurs;
  // An old `.build-id/5e/0a...` may lead elsewhere.
  replace_link(in_folder(links, link_name(id)), "../.." + path);
  replace_link(in_folder(kept, id), ".." + path + "/elf");
  return Kept::kYes;
}

}  // namespace

std::string hex(std::string_view build_id) {
  std::string text;
  for (const char byte : build_id)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

BuildIdCache BuildIdCache::of_user() {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const char* text = std::getenv("STACKPIPE_CACHE_MIB");  // NOLINT(concurrency-mt-unsafe)
  constexpr std::uint64_t kMostMib = std::uint64_t{1} << 30;
  const auto mib = text == nullptr ? std::nullopt : parse_number<std::uint64_t>(text);
  return BuildIdCache(home == nullptr || home[0] != '/' ? "" : fmt::format("{}/.debug", home),
                      mib ? std::min(*mib, kMostMib) << 20 : kMaxBytes);
}

std::optional<Image> BuildIdCache::open(const stream::MappedFile& file) const {
  if (folder_.empty() || file.build_id.size() < kMinIdBytes ||
      !check_ours(Fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))))
    return std::nullopt;
  const std::string id = hex(file.build_id);
  const std::string kept = fmt::format("{}/{}/", folder_, kKept);
  const std::string link =
      fmt::format("{}/{}/{}/{}", folder_, kLinks, link_folder(id), link_name(id));
  if (file.identity.is_known())
    if (auto image = open_kept(kept + name_of(file), file.build_id, true))
      return image;
  if (auto image = open_kept(kept + id, file.build_id, true))
    return image;
  for (const char* name : {"/elf", ""})
    if (auto image = open_kept(link + name, file.build_id, false))
      return image;
  return std::nullopt;
}

Kept BuildIdCache::keep(const stream::MappedFile& file, int fd, Names names) const {
  if (folder_.empty() || file.build_id.size() < kMinIdBytes ||
      (names == Names::kThisFile && !file.identity.is_known()))
    return Kept::kNotWritten;
  stream::MappedFile any = file;
  any.identity = {};
  const bool is_kept =
      names == Names::kBuildId
          ? open(any).has_value()
          : open_kept(fmt::format("{}/{}/{}", folder_, kKept, name_of(file)), file.build_id, true)
                .has_value();
  if (is_kept)
    return Kept::kYes;
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return Kept::kChanged;
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes > max_bytes_)
    return Kept::kTooLarge;
  // If HOME belongs to another user (sudo -E), nothing is written to it.
  if (!check_owner(Fd(::open(folder_.substr(0, folder_.rfind('/') + 1).c_str(),
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC))))
    return Kept::kNotOurs;
  ::mkdir(folder_.c_str(), kOwnerOnly);
  const Fd root =
      check_ours(Fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  const Fd kept = root ? enter(root, kKept) : Fd();
  if (!kept)
    return Kept::kNotOurs;
  const Fd from(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  try {
    KeptFiles(root, kept).make_room(bytes, max_bytes_);
    return names == Names::kBuildId ? keep_for_perf(root, kept, file, from)
                                    : copy_to(kept, name_of(file), file.build_id, from);
  } catch (const Error&) {
    return Kept::kNotWritten;
  }
}

}  // namespace pe::objects
