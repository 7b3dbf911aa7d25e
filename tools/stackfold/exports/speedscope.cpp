// SPDX-License-Identifier: MIT
#include "stackfold/exports/speedscope.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/io/json_writer.h"
#include "stackfold/frame_text.h"
#include "stream/proc/process_table.h"

namespace pe::fold::exports {
namespace {

/// Equal stacks in a row.
struct Row {
  Index stack;
  Index thread;  ///< becomes the frame at the root, unless it is kNoIndex
  std::uint64_t weight;
};

/// One of the lists of samples that speedscope offers to the user.
struct List {
  std::string name;
  std::string_view unit;
  std::vector<Row> rows = {};
  std::uint64_t total = 0;
};

struct Frame {
  std::string name;
  std::string_view file;
};

class SpeedscopeWriter {
 public:
  explicit SpeedscopeWriter(const Profile& profile)
      : profile_(profile), frame_of_function_(profile.functions().size(), kNoIndex) {}

  void write(const std::string& first_event, JsonWriter& json) {
    std::vector<List> lists;
    std::size_t first = 0;
    for (Index event = 0; event < profile_.events().size(); ++event) {
      if (profile_.events()[event].name == first_event)
        first = lists.size();
      add_lists(event, lists);
    }
    json.start_object();
    json.member("$schema", "https://www.speedscope.app/file-format-schema.json", "exporter",
                "stackpipe", "activeProfileIndex", first);
    json.start_object("shared");
    write_frames(lists, json);
    json.end_object();
    json.start_array("profiles");
    for (const List& list : lists) {
      json.break_line();
      write_list(list, json);
    }
    json.end_array();
    json.end_object();
  }

 private:
  /// Returns speedscope's name of the unit.
  static std::string_view unit_of(const Event& event) {
    return event.unit == "nanoseconds" || event.unit == "bytes" ? std::string_view(event.unit)
                                                                : "none";
  }
  /// Returns the period if it is a time or an amount; else the number of samples.
  static std::uint64_t weight_of(const Event& event, std::uint64_t samples, std::uint64_t period) {
    return event.by_period || event.unit == "nanoseconds" ? period : samples;
  }

  /// Adds one list for all threads, then one for each thread whose samples have times.
  void add_lists(Index event, std::vector<List>& lists) const {
    const Event& declared = profile_.events()[event];
    lists.push_back({.name = declared.name, .unit = unit_of(declared)});
    for (const Sum& sum : profile_.sums())
      if (sum.event == event)
        add(lists.back(), {sum.stack, sum.thread, weight_of(declared, sum.samples, sum.period)});
    std::vector<std::size_t> list_of(profile_.threads().size());  ///< 0: none
    for (const TimedSample& sample : profile_.timed()) {
      if (sample.event != event || profile_.threads()[sample.thread] == Thread{})
        continue;
      std::size_t& list = list_of[sample.thread];
      if (list == 0) {
        list = lists.size();
        lists.push_back({.name = name_of(declared, profile_.threads()[sample.thread]),
                         .unit = unit_of(declared)});
      }
      add(lists[list], {sample.stack, kNoIndex, weight_of(declared, 1, sample.period)});
    }
  }

  [[nodiscard]] std::string name_of(const Event& event, const Thread& thread) const {
    std::string name = fmt::format("{} {}/{}", thread.comm, stream::id_text(thread.pid),
                                   stream::id_text(thread.tid));
    return profile_.events().size() == 1 ? name : event.name + ": " + name;
  }

  static void add(List& list, const Row& row) {
    list.total += row.weight;
    const bool is_as_before =
        row.thread == kNoIndex && !list.rows.empty() && list.rows.back().stack == row.stack;
    if (is_as_before)
      list.rows.back().weight += row.weight;
    else
      list.rows.push_back(row);
  }

  /// Returns the frames, leaf first.  The next call invalidates them.
  const std::vector<Index>& frames_of(const Row& row) {
    frames_.clear();
    for (Index stack = row.stack; stack != kNoIndex; stack = profile_.stacks()[stack].caller)
      add_place(profile_.places()[profile_.stacks()[stack].place]);
    if (row.thread != kNoIndex && profile_.threads()[row.thread] != Thread{})
      frames_.push_back(frame_of_thread(row.thread));
    return frames_;
  }

  /// Appends the place's frames, innermost first.
  void add_place(const Place& place) {
    if (place.line_count == 0)
      frames_.push_back(frame_of_text(unnamed(profile_, place)));
    for (Index n = 0; n < place.line_count; ++n)
      frames_.push_back(frame_of_function(profile_.lines()[place.first_line + n].function));
  }

  Index frame_of_function(Index function) {
    Index& frame = frame_of_function_[function];
    if (frame == kNoIndex) {
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
    all_frames_.push_back({std::string(name.empty() ? "[unknown]" : name), file});
    return static_cast<Index>(all_frames_.size() - 1);
  }

  /// Numbers the frames of all lists and writes them.
  void write_frames(const std::vector<List>& lists, JsonWriter& json) {
    for (const List& list : lists)
      for (const Row& row : list.rows)
        frames_of(row);
    json.start_array("frames");
    for (const Frame& frame : all_frames_) {
      json.break_line();
      json.start_object();
      json.member("name", frame.name);
      if (!frame.file.empty())
        json.member("file", frame.file);
      json.end_object();
    }
    json.end_array();
  }

  void write_list(const List& list, JsonWriter& json) {
    json.start_object();
    json.member("type", "sampled", "name", list.name, "unit", list.unit, "startValue", 0,
                "endValue", list.total);
    json.start_array("samples");
    for (const Row& row : list.rows) {
      json.start_array();
      const std::vector<Index>& frames = frames_of(row);
      std::for_each(frames.rbegin(), frames.rend(), [&json](Index frame) { json.value(frame); });
      json.end_array();
    }
    json.end_array();
    json.list("weights", list.rows, [](const Row& row) { return row.weight; });
    json.end_object();
  }

  const Profile& profile_;
  std::vector<Frame> all_frames_;
  std::vector<Index> frame_of_function_;
  boost::unordered_flat_map<std::string, Index> frame_of_text_;
  std::vector<Index> frames_;  ///< of the current row
};

}  // namespace

void to_speedscope(const Profile& profile, const std::string& first_event, Output& out) {
  JsonWriter json(out);
  SpeedscopeWriter(profile).write(first_event, json);
  out.write("\n");
}

}  // namespace pe::fold::exports
