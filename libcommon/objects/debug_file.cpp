// SPDX-License-Identifier: MIT
#include "objects/debug_file.h"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <initializer_list>
#include <system_error>

#include "base/io/compression.h"
#include "objects/file_identity.h"
#include "stream/proc/process_table.h"

namespace pe::objects {
namespace {

constexpr std::size_t kMinBuildIdBytes = 2;  // one byte for the folder, one for the file
constexpr std::size_t kMaxLinkedIdBytes = 64;

}  // namespace

std::optional<DebugLink> parse_debug_link(Bytes section) {
  constexpr std::size_t kAlignment = 4;
  ByteReader reader(section);
  const auto file = reader.take_string();
  if (!file || file->empty() || file->size() > NAME_MAX || *file == "." || *file == ".." ||
      file->find('/') != std::string_view::npos)
    return std::nullopt;
  const std::size_t past = (file->size() + 1) % kAlignment;
  const bool has_padding = reader.skip(past == 0 ? 0 : kAlignment - past);
  const auto crc = reader.take<std::uint32_t>();
  if (!has_padding || !crc)
    return std::nullopt;
  return DebugLink{std::string(*file), *crc};
}

std::optional<AltLink> parse_alt_link(Bytes section) {
  ByteReader reader(section);
  const auto path = reader.take_string();
  const Bytes build_id = reader.left();
  if (!path || path->empty() || path->size() >= PATH_MAX || build_id.size() < kMinBuildIdBytes ||
      build_id.size() > kMaxLinkedIdBytes)
    return std::nullopt;
  return AltLink{std::string(*path), {build_id.begin(), build_id.end()}};
}

std::string hex(Bytes build_id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr unsigned kBase = 16;
  std::string text;
  text.reserve(build_id.size() * 2);
  for (const std::byte byte : build_id) {
    text += kDigits[std::to_integer<unsigned>(byte) / kBase];
    text += kDigits[std::to_integer<unsigned>(byte) % kBase];
  }
  return text;
}

namespace {

constexpr std::uint64_t kMaxLinkBytes = 8192;  ///< enough for a path and a build id
constexpr std::uint64_t kMaxMiniPackedBytes = std::uint64_t{64} << 20;

/// Returns the folder with its '/' at the end; "" for a bare name, which is in the current folder.
std::string folder_of(std::string_view path) {
  return std::string(path.substr(0, path.rfind('/') + 1));
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts)
    text += part;
  return text;
}

bool is_equal(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::optional<std::uint32_t> crc_of(const Image& image) {
  std::array<std::byte, std::size_t{64} * 1024> block;
  constexpr std::size_t kTurnsOfBlock = 2;
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < image.size_bytes();) {
    const auto piece = std::span(block).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), image.size_bytes() - at)));
    if (!image.may_go_on(kTurnsOfBlock) || !image.read_at(at, piece))
      return std::nullopt;
    crc = crc32(crc, piece);
    at += piece.size();
  }
  return crc;
}

/// Returns the content of a section with a link; nullopt if no section has that name.
std::optional<std::vector<std::byte>> link_section(const Image& image, std::string_view name) {
  const Section* section = image.section(name);
  if (section == nullptr)
    return std::nullopt;
  // An unreadable section becomes empty content, which the parsers reject as invalid.
  return image.read(*section, kMaxLinkBytes).value_or(std::vector<std::byte>{});
}

}  // namespace

bool has_symtab(const Image& image) noexcept {
  const auto sections = image.sections();
  return std::any_of(sections.begin(), sections.end(),
                     [](const Section& s) { return s.type == SHT_SYMTAB && s.bytes > 0; });
}

bool has_debug_info(const Image& image) noexcept {
  const Section* section = image.section(".debug_info");
  return section != nullptr && section->type != SHT_NOBITS && section->bytes > 0;
}

std::optional<DebugFile> DebugFinder::separate(const Image& image, const std::string& path) {
  const Wanted wanted{image, image.build_id()};
  if (auto found = by_build_id(wanted))
    return found;
  if (auto found = by_link(image, path))
    return found;
  return fetch(wanted);
}

std::optional<DebugFile> DebugFinder::fetch(const Wanted& wanted) {
  if (!search_.fetch || wanted.build_id.empty())
    return std::nullopt;
  const auto fetched = search_.fetch(wanted.build_id);
  return fetched ? take_if_same(*fetched, wanted) : std::nullopt;
}

std::optional<DebugFile> DebugFinder::alternate(const Image& holder, const std::string& path) {
  const auto section = link_section(holder, ".gnu_debugaltlink");
  if (!section)
    return std::nullopt;
  const auto link = parse_alt_link(*section);
  if (!link) {
    refuse(path, DebugRefusal::kBadLink);
    return std::nullopt;
  }
  const Wanted wanted{holder, link->build_id};
  if (auto found = by_build_id(wanted))
    return found;
  const bool is_absolute = link->path.starts_with('/');
  const std::string named = joined({is_absolute ? search_.sysroot : folder_of(path), link->path});
  if (auto found = take_if_same(named, wanted))
    return found;
  return fetch(wanted);
}

std::optional<Image> DebugFinder::mini(const Image& image, const std::string& path) {
  const Section* section = image.section(".gnu_debugdata");
  if (section == nullptr)
    return std::nullopt;
  const auto packed = image.read(*section, kMaxMiniPackedBytes);
  auto bytes =
      packed && image.may_hold(kMaxMiniBytes) ? unxz(*packed, kMaxMiniBytes) : std::nullopt;
  if (!bytes) {
    refuse(path + "(.gnu_debugdata)", DebugRefusal::kTooLarge);
    return std::nullopt;
  }
  OpenResult opened = Image::from_memory(std::move(*bytes));
  if (auto* mini = std::get_if<Image>(&opened)) {
    mini->share_payer_of(image);
    return std::move(*mini);
  }
  refuse(path + "(.gnu_debugdata)", DebugRefusal::kUnusable);
  return std::nullopt;
}

std::optional<Image> DebugFinder::open(const std::string& path, uid_t owner) {
  const bool is_inside = !search_.sysroot.empty() && path.starts_with(search_.sysroot);
  OpenResult opened =
      is_inside
          ? Image::open(stream::open_below(search_.sysroot, path.substr(search_.sysroot.size())))
          : Image::open(path);
  if (auto* image = std::get_if<Image>(&opened)) {
    struct stat status = {};
    if (::fstat(image->fd(), &status) == 0 && (is_trusted(status) || status.st_uid == owner))
      return std::move(*image);
    refuse(path, DebugRefusal::kOtherOwner);
    return std::nullopt;
  }
  if (std::get<OpenFailure>(opened) != OpenFailure::kMissing)
    refuse(path, DebugRefusal::kUnusable);
  return std::nullopt;
}

void DebugFinder::refuse(const std::string& path, DebugRefusal why) {
  refused_.emplace(path, why);
  ++refusals_;
}

std::optional<DebugFile> DebugFinder::by_build_id(const Wanted& wanted) {
  const Bytes build_id = wanted.build_id;
  if (build_id.size() < 2)
    return std::nullopt;
  const std::string name =
      joined({"/.build-id/", hex(build_id.first(1)), "/", hex(build_id.subspan(1)), ".debug"});
  for (const std::string& before : {search_.sysroot, std::string()}) {
    for (const std::string& root : search_.roots)
      if (auto found = take_if_same(joined({before, root, name}), wanted))
        return found;
    if (search_.sysroot.empty())
      break;
  }
  return std::nullopt;
}

std::optional<DebugFile> DebugFinder::by_link(const Image& image, const std::string& path) {
  const auto section = link_section(image, ".gnu_debuglink");
  if (!section)
    return std::nullopt;
  const auto link = parse_debug_link(*section);
  if (!link) {
    refuse(path, DebugRefusal::kBadLink);
    return std::nullopt;
  }
  const Wanted wanted{image, image.build_id(), link->crc};
  for (const std::string& folder : folders_of_link(path))
    if (auto found = take_if_same(folder + link->file, wanted))
      return found;
  return std::nullopt;
}

/// Returns folders with a '/' at the end.
std::vector<std::string> DebugFinder::folders_of_link(const std::string& path) const {
  std::vector<std::string> own{folder_of(path)};
  if (search_.sysroot.empty()) {
    // The path may be a link to a program, or lead through /lib, a link to /usr/lib.
    std::error_code failure;
    const auto real = std::filesystem::canonical(path, failure);
    if (!failure && folder_of(real.native()) != own.front())
      own.push_back(folder_of(real.native()));
  }
  std::vector<std::string> folders;
  folders.reserve(own.size() * (2 + search_.roots.size()));
  for (const std::string& folder : own) {
    folders.push_back(folder);
    folders.push_back(folder + ".debug/");
    const bool is_below = folder.starts_with(search_.sysroot);
    const std::string inside = is_below ? folder.substr(search_.sysroot.size()) : folder;
    for (const std::string& root : search_.roots)
      if (inside.starts_with('/'))
        folders.push_back(joined({search_.sysroot, root, inside}));
  }
  return folders;
}

std::optional<DebugFile> DebugFinder::take_if_same(const std::string& path, const Wanted& wanted) {
  const auto& [of, build_id, crc] = wanted;
  auto image = open(path, file_owner(of));
  if (image)
    image->share_payer_of(of);
  // A link may lead from a stripped file to itself.
  if (!image || (!has_symtab(*image) && !has_debug_info(*image)))
    return std::nullopt;
  std::optional<DebugRefusal> why;
  if (!build_id.empty() && !image->build_id().empty()) {
    if (!is_equal(build_id, image->build_id()))
      why = DebugRefusal::kOtherBuildId;
  } else if (!crc) {
    why = DebugRefusal::kOtherBuildId;
  } else if (image->size_bytes() > kMaxCrcBytes) {
    why = DebugRefusal::kTooLarge;
  } else if (crc_of(*image) != crc) {
    why = DebugRefusal::kOtherCrc;
  }
  if (why) {
    refuse(path, *why);
    return std::nullopt;
  }
  return DebugFile{std::move(*image), path};
}

}  // namespace pe::objects
