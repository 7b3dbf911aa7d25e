// SPDX-License-Identifier: MIT
#include "stackfold/exports/speedscope.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/json_text.h"
#include "stackfold/frame_text.h"

namespace pe::fold::exports {
namespace {

/// One of the lists of samples that speedscope offers to the user.
struct List {
  std::string name;
  std::string samples, weights;  ///< JSON, without the brackets
  std::uint64_t total = 0;
  Index last_stack = kNone;
  std::uint64_t last_weight = 0;  ///< sum of equal stacks in a row, which become one sample
};

class SpeedscopeWriter {
 public:
  explicit SpeedscopeWriter(const Profile& profile)
      : profile_(profile), frame_of_function_(profile.functions().size(), kNone) {}

  std::string write(const std::string& first_event) {
    std::string profiles;
    std::size_t count = 0, first = 0;
    for (Index event = 0; event < profile_.events().size(); ++event) {
      if (profile_.events()[event].name == first_event)
        first = count;
      for (List& list : lists_of(event)) {
        profiles += count++ == 0 ? "\n" : ",\n";
        append(profiles, list, unit_of(profile_.events()[event]));
      }
    }
    return fmt::format(
        R"({{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"stackpipe",)"
        R"("activeProfileIndex":{},"shared":{{"frames":[{}]}},"profiles":[{}]}})"
        "\n",
        first, frames_, profiles);
  }

 private:
  /// Returns speedscope's name of the unit.
  static std::string unit_of(const Event& event) {
    return event.unit == "nanoseconds" || event.unit == "bytes" ? event.unit : "none";
  }
  /// Returns the period if it is a time or an amount; else the number of samples.
  static std::uint64_t weight_of(const Event& event, std::uint64_t samples, std::uint64_t period) {
    return event.by_period || event.unit == "nanoseconds" ? period : samples;
  }

  /// Returns one list for all threads, then one for each thread whose samples have times.
  std::vector<List> lists_of(Index event) {
    const Event& declared = profile_.events()[event];
    std::vector<List> lists(1);
    lists[0].name = declared.name;
    for (const Sum& sum : profile_.sums())
      if (sum.event == event)
        add(lists[0], sum.stack, sum.thread, weight_of(declared, sum.samples, sum.period));
    std::vector<Index> list_of(profile_.threads().size(), kNone);
    for (const TimedSample& sample : profile_.timed()) {
      if (sample.event != event || profile_.threads()[sample.thread] == Thread{})
        continue;
      Index& list = list_of[sample.thread];
      if (list == kNone) {
        list = static_cast<Index>(lists.size());
        lists.emplace_back().name = name_of(declared, profile_.threads()[sample.thread]);
      }
      add(lists[list], sample.stack, kNone, weight_of(declared, 1, sample.period));
    }
    for (List& list : lists)
      end_row(list);
    return lists;
  }

  [[nodiscard]] std::string name_of(const Event& event, const Thread& thread) const {
    std::string name = fmt::format("{} {}/{}", thread.comm, thread.pid, thread.tid);
    return profile_.events().size() == 1 ? name : event.name + ": " + name;
  }

  /// `thread` becomes the frame at the root, unless it is kNone.
  void add(List& list, Index stack, Index thread, std::uint64_t weight) {
    list.total += weight;
    const bool is_as_before = thread == kNone && stack == list.last_stack;
    if (is_as_before) {
      list.last_weight += weight;
      return;
    }
    end_row(list);
    list.last_stack = stack;
    list.last_weight = weight;
    row_.clear();
    for (; stack != kNone; stack = profile_.stacks()[stack].caller)
      add_place(profile_.places()[profile_.stacks()[stack].place]);
    if (thread != kNone && profile_.threads()[thread] != Thread{})
      row_.push_back(frame_of_thread(thread));
    fmt::format_to(std::back_inserter(list.samples), "{}[{}]", list.samples.empty() ? "" : ",",
                   fmt::join(row_.rbegin(), row_.rend(), ","));
  }

  static void end_row(List& list) {
    if (list.last_stack != kNone)
      fmt::format_to(std::back_inserter(list.weights), "{}{}", list.weights.empty() ? "" : ",",
                     list.last_weight);
    list.last_stack = kNone;
  }

  /// Appends the place's frames to the row, innermost first.
  void add_place(const Place& place) {
    if (place.line_count == 0)
      row_.push_back(frame_of_text(unnamed(profile_, place)));
    for (Index n = 0; n < place.line_count; ++n)
      row_.push_back(frame_of_function(profile_.lines()[place.first_line + n].function));
  }

  Index frame_of_function(Index function) {
    Index& frame = frame_of_function_[function];
    if (frame == kNone) {
      const Function& told = profile_.functions()[function];
      frame = new_frame(told.name, told.file);
    }
    return frame;
  }

  Index frame_of_text(const std::string& text) {
    const auto [frame, is_new] = frame_of_text_.try_emplace(text);
    if (is_new)
      frame->second = new_frame(text, {});
    return frame->second;
  }

  Index frame_of_thread(Index thread) {
    const Thread& told = profile_.threads()[thread];
    return frame_of_text(root_text(told.comm, told.pid, told.tid, RootName::kComm));
  }

  Index new_frame(std::string_view name, std::string_view file) {
    fmt::format_to(std::back_inserter(frames_), R"({}{{"name":{}{}{}}})",
                   frame_count_ == 0 ? "\n" : ",\n", json_text(name.empty() ? "[unknown]" : name),
                   file.empty() ? "" : R"(,"file":)", file.empty() ? "" : json_text(file));
    return frame_count_++;
  }

  static void append(std::string& out, const List& list, std::string_view unit) {
    fmt::format_to(std::back_inserter(out),
                   R"({{"type":"sampled","name":{},"unit":"{}","startValue":0,"endValue":{},)"
                   R"("samples":[{}],"weights":[{}]}})",
                   json_text(list.name), unit, list.total, list.samples, list.weights);
  }

  const Profile& profile_;
  std::string frames_;  ///< JSON
  Index frame_count_ = 0;
  std::vector<Index> frame_of_function_;
  boost::unordered_flat_map<std::string, Index> frame_of_text_;
  std::vector<Index> row_;  ///< the frames of the current stack, leaf first
};

}  // namespace

std::string to_speedscope(const Profile& profile, const std::string& first_event) {
  return SpeedscopeWriter(profile).write(first_event);
}

}  // namespace pe::fold::exports
