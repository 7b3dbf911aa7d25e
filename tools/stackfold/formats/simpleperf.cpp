// Reads the text of `simpleperf report-sample --show-callchain`:
//
//   sample:
//     event_type: cpu-cycles
//     event_count: 10000
//     thread_id: 31881
//     thread_name: RenderThread
//     vaddr_in_file: 1f2b4
//     file: /system/lib64/libc.so
//     symbol: memcpy
//     callchain:
//       vaddr_in_file: 44
//       file: /data/app/base.apk
//       symbol: main
//
// Source: published output of that command.  (simpleperf's report_sample.py prints the text of perf
// script.)
// SPDX-License-Identifier: MIT
#include "stackfold/formats/readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/characters.h"
#include "base/clock.h"
#include "base/text.h"
#include "stackfold/formats/text.h"
#include "stackfold/frame_text.h"
#include "stackfold/function_name.h"

namespace pe::fold::simpleperf {
namespace {

class Collapser : public TextCollapser {
 public:
  Collapser(Input& input, const Options& options, folded::FoldedCounts& counts)
      : TextCollapser(input, options, counts) {
    report_.folded_event = options.event.value_or("");
  }

  void end() {
    end_sample();
    if (lost_ > 0)
      report_.left_out = plural(lost_, "sample") + " lost while recording";
  }

  void take(std::string_view line) {
    if (line.starts_with("sample") && line.ends_with(':')) {
      end_sample();
      in_sample_ = true;
    } else if (!is_indented(line)) {
      end_sample();  // "meta_info:", "lost_situation:", "context_switch:"
      if (!trim(line).empty() && !line.ends_with(':'))
        lines_.ignore(line);
    } else if (in_sample_) {
      take_field(line);
    } else if (constexpr std::string_view kLost = "lost_count: "; trim(line).starts_with(kLost)) {
      lost_ = lone_number(trim(line).substr(kLost.size())).value_or(0);
    }
  }

 private:
  void take_field(std::string_view line) {
    std::string_view value = trim(line);
    const auto key = take_until(value, ':');
    value = trim(value);
    if (!key)
      lines_.ignore(line);
    else if (*key == "event_type")
      event_ = value;
    else if (*key == "time")
      time_ns_ = parse_number<std::uint64_t>(value);
    else if (*key == "event_count")
      period_ = parse_number<std::uint64_t>(value).value_or(1);
    else if (*key == "thread_id")
      tid_ = parse_number<std::uint32_t>(value).value_or(0);
    else if (*key == "thread_name")
      comm_ = value;
    else if (*key == "vaddr_in_file")
      address_ = value;
    else if (*key == "file")
      file_ = value;
    else if (*key == "symbol")
      add_frame(value);
  }

  /// Adds a frame; the symbol is the last of its fields.
  void add_frame(std::string_view symbol) {
    const bool is_unknown = symbol == "unknown" || symbol == "[unknown]" || symbol.empty();
    const std::string name =
        is_unknown ? fmt::format("{}+0x{}", file_name(file_), address_) : function_name(symbol);
    stack_.add_caller(frame_text(name, module_flags(file_), options_.marks));
  }

  void end_sample() {
    if (in_sample_ && time_ns_)
      counts_.note_time(*time_ns_, *time_ns_);
    if (in_sample_ && is_chosen()) {
      if (options_.all_events)
        stack_.add_root(event_);
      stack_.add_root(root());
      count_stack(options_.weight == Weight::kSamples ? 1 : std::max<std::uint64_t>(period_, 1),
                  time_ns_.value_or(0));
    }
    stack_.clear();
    in_sample_ = false;
    event_.clear();
    comm_.clear();
    file_.clear();
    address_.clear();
    time_ns_.reset();
    period_ = 1;
    tid_ = 0;
  }

  bool is_chosen() {
    const auto time_us = time_ns_ ? std::optional(*time_ns_ / kNsPerUs) : std::nullopt;
    return report_.takes_event(options_, event_) && report_.takes_time(options_, time_us);
  }

  /// The text has no process number, like that of old versions of perf script.
  [[nodiscard]] std::string root() const {
    std::string text = root_text(comm_, 0, 0, RootName::kComm);
    if (options_.root == RootName::kCommPid)
      text += "-?";
    else if (options_.root == RootName::kCommPidTid)
      text += fmt::format("-?/{}", tid_);
    return text;
  }

  bool in_sample_ = false;
  std::string event_, comm_, file_, address_;
  std::optional<std::uint64_t> time_ns_;
  std::uint64_t period_ = 1;
  std::uint32_t tid_ = 0;
  std::uint64_t lost_ = 0;  ///< from the recorder's summary
};

}  // namespace

bool looks_like(std::string_view head) {
  bool in_sample = false;
  while (const auto line = take_line(head)) {
    if (in_sample)
      return line->starts_with("  event_type: ");
    in_sample = *line == "sample:";
    if (!in_sample && !is_indented(*line) && !line->ends_with(':'))
      return false;  // "meta_info:" and its fields may come first
  }
  return false;
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return fold_lines<Collapser>(input, options, counts);
}

}  // namespace pe::fold::simpleperf
