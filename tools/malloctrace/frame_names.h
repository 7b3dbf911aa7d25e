// Names of frames for the report.  Each name is a line of text and has a number.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "malloctrace/heap/heap.h"
#include "names/resolver.h"
#include "stream/proc/process_table.h"

namespace pe::malloctrace {

class FrameNames {
 public:
  explicit FrameNames(bool with_lines);

  /// The frames that follow belong to this process; `heap` lists its modules.  `heap` must live
  /// until the next call.
  void begin_process(pid_t pid, const heap::Heap& heap);
  /// Returns the numbers of the functions at a frame, the innermost inlined one first.
  const std::vector<char32_t>& at(const heap::Frame& frame);

  /// Returns the number of a text.
  char32_t number_of(const std::string& text);
  [[nodiscard]] const std::string& text(char32_t number) const { return *texts_[number]; }
  /// Returns the number of places without names, because reading their files takes too much.
  [[nodiscard]] std::uint64_t costly_places() const noexcept { return costly_places_; }

 private:
  struct FileLess {
    bool operator()(const stream::MappedFile& a, const stream::MappedFile& b) const {
      return std::tie(a.path, a.device, a.inode) < std::tie(b.path, b.device, b.inode);
    }
  };
  struct Place {
    std::uint64_t avma;
    std::uint32_t module;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const noexcept {
      constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
      return (place.avma ^ (std::uint64_t{place.module} << 48U)) * kOdd;
    }
  };

  stream::Mapping mapping_of(const heap::Frame& frame);

  names::Resolver resolver_;
  std::uint32_t pid_ = 0;
  const heap::Heap* heap_ = nullptr;
  std::set<stream::MappedFile, FileLess> files_;  ///< the mappings point to these
  std::unordered_map<Place, std::vector<char32_t>, PlaceHash> known_;  ///< of the process
  std::unordered_map<std::string, char32_t> numbers_;
  std::uint64_t costly_places_ = 0;
  std::vector<const std::string*> texts_;  ///< in numbers_, whose nodes do not move
};

}  // namespace pe::malloctrace
