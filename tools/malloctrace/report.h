// The report: a program's heap as text for people.
//
// Sites of equal stacks are one, even if they are from several processes of one name.  So a build
// with a thousand compilers takes as much room as one.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "malloctrace/heap/heap.h"
#include "malloctrace/processes.h"
#include "malloctrace/script_names.h"
#include "names/resolver.h"
#include "stream/proc/process_table.h"

namespace pe::malloctrace {

// Names of frames for the report.  Each name is a line of text and has a number.

class FrameNames {
 public:
  explicit FrameNames(bool with_lines);

  /// The frames that follow belong to this process; `heap` lists its modules.  `heap` must live
  /// until the next call.
  void begin_process(pid_t pid, const heap::Heap& heap);
  /// Returns the numbers of the functions at a frame, the innermost inlined one first.
  const std::vector<char32_t>& at(const heap::Frame& frame);
  /// Appends the numbers of the functions of a stack, the innermost first.
  void append(const heap::Heap::Stack& stack, std::u32string& numbers);

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
  char32_t script_at(std::uint64_t address);

  names::Resolver resolver_;
  ScriptNames scripts_;
  std::unordered_map<std::uint32_t, stream::ScriptFunction> functions_;  ///< by number
  bool with_lines_;
  std::uint32_t pid_ = 0;
  const heap::Heap* heap_ = nullptr;
  std::set<stream::MappedFile, FileLess> files_;  ///< the mappings point to these
  std::unordered_map<Place, std::vector<char32_t>, PlaceHash> known_;  ///< of the process
  std::unordered_map<std::string, char32_t> numbers_;
  std::uint64_t costly_places_ = 0;
  std::vector<const std::string*> texts_;  ///< in numbers_, whose nodes do not move
};

struct ReportChoice {
  std::size_t top;                           ///< sites in each table
  std::optional<std::uint64_t> leak_age_ns;  ///< only leaks of sites that allocated since then
  bool lines = false;                        ///< source lines; sites then differ by line
};

/// Returns the head of a report: the command.
std::string report_head(const std::vector<std::string>& command);

class Report {
 public:
  explicit Report(const ReportChoice& choice) : choice_(choice), names_(choice.lines) {}

  void add(const HeapOfProcess& process);

  /// Returns all tables.
  [[nodiscard]] std::string text() const;

 private:
  /// The sums of a site.  Times are milliseconds before its process was read.
  struct Sums {
    std::uint64_t allocated_bytes = 0, allocations = 0, temporary = 0;
    std::uint64_t live_bytes = 0, live_blocks = 0, peak_bytes = 0;
    std::uint64_t first_ms = 0, last_ms = 0;
  };
  using Item = const std::pair<const std::u32string, Sums>*;
  struct Table;
  struct OfProcess {
    pid_t pid;
    Fate fate;
    std::uint64_t sample_bytes;
    std::string command;
    std::uint64_t allocations, allocated_bytes, peak_bytes, peak_ms, live_bytes;
    std::uint64_t resident_bytes, mapped_bytes, mapped_count, mapped_peak_bytes;
    std::string most_mapped_by;  ///< the innermost function of the stack that maps most
  };

  void add_process(const HeapOfProcess& process);
  [[nodiscard]] std::vector<Item> best(const Table& table) const;
  [[nodiscard]] bool is_shown_leak(const Sums& sums) const;
  /// "held now" if all processes run, else "not freed".
  [[nodiscard]] std::string_view word_for_live() const;
  void append_totals(std::string& text) const;
  void append_mapped(std::string& text) const;
  std::string most_mapped_by(const heap::Heap& heap);
  void append_processes(std::string& text) const;
  void append_table(std::string& text, const Table& table) const;
  void append_stack(std::string& text, std::u32string_view stack) const;
  void append_hidden(std::string& text) const;

  ReportChoice choice_;
  FrameNames names_;
  std::unordered_map<std::u32string, Sums> by_stack_;  ///< numbers of names_, the command's first
  std::vector<OfProcess> processes_;
  heap::Heap::Stack stack_;
};

}  // namespace pe::malloctrace
