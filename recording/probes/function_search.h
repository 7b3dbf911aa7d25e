// Finds functions of one image by name: the reverse of ModuleSymbols.
//
// A name is a symbol ("_ZN2ns1fEi"; a version after '@' may be left out), or a readable name with
// or without parameters, as demangle() and c++filt(1) print it ("ns::f", "ns::f(int)").  Searching
// libLLVM-14 (45,000 symbols) for a C++ name takes 20 ms, for a pattern 60 ms.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "objects/debug_file.h"
#include "objects/image.h"

namespace pe::names {

struct FoundFunction {
  std::string name;  ///< readable, without parameters
  std::uint64_t svma = 0;
  std::uint64_t bytes = 0;  ///< 0: the file does not state it
  bool is_ifunc = false;    ///< its code only chooses the function that runs
};

class FunctionSearch {
 public:
  /// `image` was opened as `path`.  Symbols come from it, and from its separate debug file or
  /// .gnu_debugdata.
  FunctionSearch(const objects::Image& image, const std::string& path,
                 objects::DebugFinder& finder);

  /// Returns the functions of that name, by address: overloads, local functions of several files.
  /// Parts that the compiler moved away ("f.cold") do not count.
  [[nodiscard]] std::vector<FoundFunction> named(const std::string& name) const;
  /// Returns the functions whose symbol or readable name matches a pattern
  /// (recording/probes/probe_name.h), by address.
  [[nodiscard]] std::vector<FoundFunction> matching(const std::string& pattern) const;
  /// Returns the readable names that contain `word`, sorted; at most `most`.
  [[nodiscard]] std::vector<std::string> containing(std::string_view word, std::size_t most) const;
  /// Returns all readable names, unsorted.
  [[nodiscard]] std::vector<std::string> all_names() const;

  /// Is there no full symbol table anywhere?  Only exported functions have names.
  [[nodiscard]] bool is_stripped() const noexcept { return extra_ == nullptr && !has_symtab_; }

 private:
  template <typename Accepts>
  [[nodiscard]] std::vector<FoundFunction> find(const Accepts& accepts) const;
  template <typename Visit>
  void visit(const Visit& on_function) const;

  const objects::Image& image_;
  bool has_symtab_;
  std::unique_ptr<objects::Image> extra_;  ///< with more symbols; null: none
};

}  // namespace pe::names

// Finds the static probes (USDT) that a program's author has placed, by DTRACE_PROBE of
// <sys/sdt.h>.
//
// Each is a note "stapsdt" of type 3 in .note.stapsdt.  Its descriptor has three addresses (of the
// probe, of .stapsdt.base, and of a semaphore or 0), then the strings of provider, name and
// arguments.  A prelinked file's addresses are moved by the difference between .stapsdt.base and
// the note's second address.
// Source: systemtap's wiki, UserSpaceProbeImplementation; sys/sdt.h.

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
