// The report: a program's heap as text for people.
//
// Sites of equal stacks are one, even if they are from several processes of one name.  So a build
// with a thousand compilers takes as much room as one.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "malloctrace/frame_names.h"
#include "malloctrace/processes.h"

namespace pe::malloctrace {

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
  std::vector<heap::Frame> frames_;
};

}  // namespace pe::malloctrace
