// Finds the rest of an image's symbols and debug information.  It may be in the file that strip(1)
// or the distributor made, in a file that several of those share, or in the image itself.
//
// The finder searches where gdb does, in the same order.  It searches by build id, then by the name
// in .gnu_debuglink: beside the image, in .debug/ there, and below each root.  At last it fetches
// the file, if the caller can.  It accepts a file with the build id of the image.  If one of the
// two lacks a build id, the CRC-32 of the file must be that of the link.  Any other file is refused
// and reported, except an ELF file with neither symbols nor debug information.
//
// The image is untrusted: each function follows one link only, opens only regular files, never
// blocks, and bounds the size of uncompressed data.
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

#include "base/byte_reader.h"
#include "objects/image.h"

namespace pe::objects {

// Parses the sections by which an image names the files with the rest of its debug information.
//
// .gnu_debuglink is in an image whose debug information was split off.  It holds the debug file's
// name without folder, a NUL, and zeros up to a multiple of 4.  The CRC-32 of the whole debug file
// follows, in the image's byte order.  .gnu_debugaltlink is in an image that shares parts with
// others (dwz(1)).  It holds a path, a NUL, and the build id of the file.
// Sources: gdb manual, "Debugging Information in Separate Files"; DWARF 5, 7.3.6 and dwz(1).

struct DebugLink {
  std::string file;  ///< a name without '/', neither "." nor ".."
  std::uint32_t crc;
};

struct AltLink {
  std::string path;  ///< absolute, or relative to the folder of the file with the section
  std::vector<std::byte> build_id;
};

/// Parses a section's content; nullopt if it is invalid, or names a file outside of the folder.
std::optional<DebugLink> parse_debug_link(Bytes section);
/// Parses a section's content; nullopt if it is invalid.
std::optional<AltLink> parse_alt_link(Bytes section);

/// Formats a build id as "3f2a...", as in the names of debug files.
std::string hex(Bytes build_id);

struct DebugSearch {
  /// Folders that hold .build-id/xx/yyyy.debug, and debug files below the path of the image's
  /// folder.
  std::vector<std::string> roots{"/usr/lib/debug"};
  /// The prefix of paths in another mount namespace: "/proc/PID/root".  The paths of images start
  /// with it.  The finder searches the roots below it first, and then, by build id only, our own.
  /// No link leads out of it.
  std::string sysroot;
  /// Returns the path of the debug file of a build id, from another source; nullopt if there is
  /// none.
  std::function<std::optional<std::string>(Bytes build_id)> fetch;
};

/// Why a file, or a section, was not used.
enum class DebugRefusal : std::uint8_t {
  kBadLink,       ///< the section with the link is invalid, or names a file outside the folder
  kUnusable,      ///< not ELF, not a regular file, not readable for us, damaged
  kOtherBuildId,  ///< the file belongs to another build
  kOtherCrc,      ///< the link was made for another file
  kOtherOwner,    ///< another user may have put it there, who does not own the program
  kTooLarge,      ///< too large to check or to uncompress, or the compressed data is damaged
};

struct DebugFile {
  Image image;
  std::string path;
};

class DebugFinder {
 public:
  explicit DebugFinder(DebugSearch search = {}) : search_(std::move(search)) {}

  /// Finds the separate debug file of `image`, which was opened as `path`.
  std::optional<DebugFile> separate(const Image& image, const std::string& path);

  /// Finds the file that .gnu_debugaltlink of `holder`, opened as `path`, names.
  std::optional<DebugFile> alternate(const Image& holder, const std::string& path);

  /// Returns the image with more symbols that .gnu_debugdata of `image` contains ("mini debug
  /// information").
  std::optional<Image> mini(const Image& image, const std::string& path);

  /// Opens `path`.  Refuses a file that is not a usable ELF file; a missing file is no refusal.
  /// Refuses a file that another user can change, unless that user is `owner`, who has the program:
  /// the names in a debug file are its author's.
  std::optional<Image> open(const std::string& path, uid_t owner);
  void refuse(const std::string& path, DebugRefusal why);

  [[nodiscard]] const DebugSearch& search() const noexcept { return search_; }

  /// Returns all files refused since the start, by path.
  [[nodiscard]] const std::map<std::string, DebugRefusal>& refused() const noexcept {
    return refused_;
  }
  /// Returns the number of refusals; the same file counts each time.
  [[nodiscard]] std::uint64_t refusals() const noexcept { return refusals_; }

  /// Limit of the image in .gnu_debugdata: Fedora's largest take some 10 MB.
  static constexpr std::uint64_t kMaxMiniBytes = std::uint64_t{128} << 20;
  /// Limit of a file whose CRC must be computed; a file with a build id may have any size.
  static constexpr std::uint64_t kMaxCrcBytes = std::uint64_t{4} << 30;

 private:
  /// The properties that a debug file must have.
  struct Wanted {
    const Image& of;  ///< the program
    Bytes build_id;
    std::optional<std::uint32_t> crc = {};  ///< for a file without a build id
  };
  std::optional<DebugFile> by_build_id(const Wanted& wanted);
  std::optional<DebugFile> by_link(const Image& image, const std::string& path);
  std::optional<DebugFile> fetch(const Wanted& wanted);
  std::optional<DebugFile> take_if_same(const std::string& path, const Wanted& wanted);
  [[nodiscard]] std::vector<std::string> folders_of_link(const std::string& path) const;

  DebugSearch search_;
  std::map<std::string, DebugRefusal> refused_;
  std::uint64_t refusals_ = 0;
};

/// Does it have a .symtab, with more symbols than dynamic linking needs?
bool has_symtab(const Image& image) noexcept;
/// Does it have a .debug_info of its own?  The check only searches the section headers.
bool has_debug_info(const Image& image) noexcept;

}  // namespace pe::objects
