// SPDX-License-Identifier: MIT
#include "stackfold/formats/memleak.h"

#include <optional>
#include <string>

#include "base/characters.h"
#include "base/plural.h"
#include "stackfold/formats/stack_builder.h"
#include "stackfold/formats/text.h"
#include "stackfold/formats/text_lines.h"

namespace pe::fold::memleak {
namespace {

constexpr std::string_view kBytesIn = " bytes in ";
constexpr std::string_view kAllocations = " allocations from stack";

struct Outstanding {
  std::uint64_t bytes, allocations;
};

/// Parses "	80 bytes in 5 allocations from stack".
std::optional<Outstanding> parse_outstanding(std::string_view line) {
  line = trim(line);
  const auto in = line.find(kBytesIn);
  if (in == kNone || !line.ends_with(kAllocations))
    return std::nullopt;
  const auto begin = in + kBytesIn.size();
  const auto bytes = lone_number(line.substr(0, in));
  const auto allocations =
      lone_number(line.substr(begin, line.size() - kAllocations.size() - begin));
  return bytes && allocations ? std::optional(Outstanding{*bytes, *allocations}) : std::nullopt;
}

bool begins_report(std::string_view line) {
  return line.starts_with('[') && line.ends_with(" stacks with outstanding allocations:");
}

/// Returns "main" for "0x0000000000400a1d	main+0x6d [prog]".
std::string_view frame_name(std::string_view line) {
  std::string_view name = trim(line);
  if (name.starts_with("0x"))
    name = cut_address(name.substr(2));
  const auto module = name.rfind(" [");
  if (module != kNone && module > 0 && name.ends_with(']'))
    name = name.substr(0, module);
  return cut_offset(name);
}

class Folder {
 public:
  Folder(Input& input, const Options& options, folded::FoldedCounts& counts)
      : lines_(input, report_), options_(options), counts_(counts) {
    const std::string event = options.event.value_or("bytes");
    bytes_ = options.all_events || event == "bytes";
    allocations_ = options.all_events || event == "allocations";
    if (!bytes_ && !allocations_)
      report_.damage = "no event of that name (it has bytes, allocations)";
    begin_report();
  }

  TextReport fold() {
    while (const auto line = lines_.next())
      take(*line);
    end_stack();
    counts_.add_divided(*last_, 1);
    if (reports_ > 1)
      report_.left_out = plural(reports_ - 1, "earlier report") + " left out";
    return report_;
  }

 private:
  void take(std::string_view line) {
    if (begins_report(line)) {
      end_stack();
      begin_report();
      ++reports_;
    } else if (const auto outstanding = parse_outstanding(line)) {
      end_stack();
      outstanding_ = outstanding;
    } else if (outstanding_ && is_indented(line)) {
      add_frame(line);
    } else if (!trim(line).empty() && !line.starts_with("Attaching to ") && !is_address(line)) {
      lines_.ignore(line);
    }
  }

  /// Is this a line of memleak -a: "	addr = 7f12 size = 8"?
  static bool is_address(std::string_view line) { return trim(line).starts_with("addr = "); }

  void begin_report() {
    stack_.reset();
    last_.emplace(counts_.frames());
    stack_.emplace(*last_);
    report_.samples = 0;
  }

  void add_frame(std::string_view line) { frames_.emplace_back(frame_name(line)); }

  void end_stack() {
    if (outstanding_) {
      if (bytes_)
        count("bytes", outstanding_->bytes);
      if (allocations_)
        count("allocations", outstanding_->allocations);
      ++report_.samples;
    }
    outstanding_.reset();
    frames_.clear();
  }

  void count(std::string_view event, std::uint64_t weight) {
    if (weight == 0)
      return;
    if (options_.all_events)
      stack_->add_root(event);
    for (const std::string& frame : frames_)
      stack_->add_caller(frame);
    stack_->count(weight);
  }

  TextReport report_;
  TextLines lines_;
  const Options& options_;
  folded::FoldedCounts& counts_;
  bool bytes_ = false;
  bool allocations_ = false;
  std::optional<folded::FoldedCounts> last_;  ///< counts of the last report
  std::optional<StackBuilder> stack_;         ///< adds to last_
  std::optional<Outstanding> outstanding_;    ///< of the current stack
  std::vector<std::string> frames_;           ///< leaf first
  std::uint64_t reports_ = 0;
};

}  // namespace

bool looks_like(std::string_view head) {
  while (const auto line = take_line(head))
    if (begins_report(*line))
      return true;
  return false;
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return Folder(input, options, counts).fold();
}

}  // namespace pe::fold::memleak
