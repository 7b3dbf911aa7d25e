// Finds the static probes (USDT) that a program's author has placed, by DTRACE_PROBE of
// <sys/sdt.h>.
//
// Each is a note "stapsdt" of type 3 in .note.stapsdt.  Its descriptor has three addresses (of the
// probe, of .stapsdt.base, and of a semaphore or 0), then the strings of provider, name and
// arguments.  A prelinked file's addresses are moved by the difference between .stapsdt.base and
// the note's second address.
// Source: systemtap's wiki, UserSpaceProbeImplementation; sys/sdt.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "objects/image.h"

namespace pe::objects {

struct StaticProbe {
  std::string provider, name;
  std::uint64_t svma = 0;
  std::uint64_t semaphore_svma = 0;  ///< a u16 that is above 0 while the probe is used; 0: none
  std::string arguments;             ///< "8@%rdi -4@$5"; untrusted
};

/// Returns where the file has a probe's semaphore; 0: it has none.  nullopt: it is not a counter
/// that the compiler placed: two bytes of section .probes, 0 in the file, in memory that the
/// program may write.
std::optional<std::uint64_t> semaphore_offset(const Image& image, const StaticProbe& probe);

/// Reads the probes of an image.  A malformed note ends the list.
std::vector<StaticProbe> read_static_probes(const Image& image);
/// Parses the content of .note.stapsdt.  `base_svma` is that of .stapsdt.base; nullopt: not moved.
std::vector<StaticProbe> parse_static_probes(Bytes notes, bool is_64_bit,
                                             std::optional<std::uint64_t> base_svma);

}  // namespace pe::objects
