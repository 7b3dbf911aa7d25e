// Where the rest of an image's symbols and debug information is: the file that strip(1) or the
// distributor put them into, the file that several of those share, the copy within the image.
//
// Looked for where gdb looks, in its order: by build id, then by the name in .gnu_debuglink
// beside the image, in .debug/ there, and below each root; at last it is fetched, if the caller
// can. A file is taken if its build id is the one sought; where one of the two lacks a build id,
// its CRC-32 must be that of the link.  Anything else that lies there is refused, and told.
//
// The image may be hostile: links of links are not followed, only regular files are opened,
// nothing blocks, and what is uncompressed is bounded.
// Source: gdb manual, "Debugging Information in Separate Files" and "Debugging information in a
// special section" (.gnu_debugdata).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "objects/image.h"

namespace pe::objects {

struct DebugSearch {
  /// Folders that hold .build-id/xx/yyyy.debug, and files by the image's own folder.
  std::vector<std::string> roots{"/usr/lib/debug"};
  /// What stands before the paths of another mount namespace: "/proc/PID/root".  Images' paths
  /// begin with it.  The roots are looked through below it first, then, by build id only, here.
  std::string sysroot;
  /// The path of the debug file of a build id, from wherever else; nullopt if there is none.
  std::function<std::optional<std::string>(Bytes build_id)> fetch;
};

/// Why a file, or a section, was not used.
enum class DebugRefusal : std::uint8_t {
  kBadLink,       ///< the section that names it makes no sense, or names something outside
  kUnusable,      ///< not ELF, not a regular file, not for us, damaged
  kOtherBuildId,  ///< made from another build
  kOtherCrc,      ///< not the file that the link was made for
  kTooLarge,      ///< too large to check or to uncompress, or damaged there
};
inline constexpr std::size_t kDebugRefusals = 5;

/// "build id differs", to be put behind a path.
const char* describe(DebugRefusal refusal);

struct DebugFile {
  Image image;
  std::string path;
};

class DebugFinder {
 public:
  explicit DebugFinder(DebugSearch search = {}) : search_(std::move(search)) {}

  /// The separate debug file of `image`, which was opened as `path`.
  std::optional<DebugFile> separate(const Image& image, const std::string& path);

  /// What the .gnu_debugaltlink of `holder`, opened as `path`, names.
  std::optional<DebugFile> alternate(const Image& holder, const std::string& path);

  /// The image with more symbols in the image's own .gnu_debugdata ("mini debug information").
  std::optional<Image> mini(const Image& image, const std::string& path);

  /// Opens `path`; missing is nothing to tell of, but anything else that is no ELF is.
  std::optional<Image> open(const std::string& path);
  void refuse(const std::string& path, DebugRefusal why);

  [[nodiscard]] const DebugSearch& search() const noexcept { return search_; }

  /// What was there and not taken, by path, since the start.
  [[nodiscard]] const std::map<std::string, DebugRefusal>& refused() const noexcept {
    return refused_;
  }
  /// How often anything was, the same file counted each time.
  [[nodiscard]] std::uint64_t refusals() const noexcept { return refusals_; }

  /// Of the image in .gnu_debugdata: Fedora's largest take some 10 MB.
  static constexpr std::uint64_t kMaxMiniBytes = std::uint64_t{128} << 20;
  /// Of a file whose CRC must be computed; one with a build id may have any size.
  static constexpr std::uint64_t kMaxCrcBytes = std::uint64_t{4} << 30;

 private:
  std::optional<DebugFile> by_build_id(Bytes build_id);
  std::optional<DebugFile> by_link(const Image& image, const std::string& path);
  std::optional<DebugFile> take_if_same(const std::string& path, Bytes build_id,
                                        std::optional<std::uint32_t> crc);
  [[nodiscard]] std::vector<std::string> folders_of_link(const std::string& path) const;

  DebugSearch search_;
  std::map<std::string, DebugRefusal> refused_;
  std::uint64_t refusals_ = 0;
};

/// Has it a .symtab, more than what dynamic linking needs?
bool has_symtab(const Image& image) noexcept;
/// Has it a .debug_info of its own?  Costs nothing.
bool has_debug_info(const Image& image) noexcept;

}  // namespace pe::objects
