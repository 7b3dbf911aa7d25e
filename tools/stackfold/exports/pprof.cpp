// SPDX-License-Identifier: MIT
#include "stackfold/exports/pprof.h"

#include <fmt/format.h>
#include <boost/unordered/unordered_flat_map.hpp>
#include <protozero/pbf_writer.hpp>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/io/compression.h"
#include "base/string_arena.h"
#include "base/utf8.h"
#include "stackfold/formats/pprof/pprof_fields.h"
#include "stackfold/frame_text.h"
#include "stream/records/record.h"
#include "stream/records/sample.h"

namespace pe::fold::exports {
namespace {

using Writer = protozero::pbf_writer;

namespace field = pprof::field;

/// One of the values of each sample.
struct Column {
  std::string type, unit;
  Index event;
  bool of_period;  ///< sum of periods; else the number of samples
};

/// Each event has a column for the sum of its periods.  It also has a number of samples if it does
/// not weigh by period.  If it weighs in nanoseconds, it has a number of samples if it is CPU time,
/// and a number of contentions if it is waits.  A profile of one event gets the column names by
/// which viewers recognise its kind.
std::vector<Column> columns_of(const std::vector<Event>& events) {
  std::vector<Column> columns;
  const bool is_only = events.size() == 1;
  for (Index i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const bool is_clock = !event.by_period && event.unit == "nanoseconds";
    const std::string prefix = is_only ? "" : event.name + "-";
    if (!event.by_period)
      columns.push_back({prefix + "samples", "count", i, false});
    columns.push_back({is_only && is_clock ? "cpu" : event.name, event.unit, i, true});
    if (event.by_period && event.unit == "nanoseconds")
      columns.push_back({prefix + (event.name == stream::kCpuEvent ? "samples" : "contentions"),
                         "count", i, false});
  }
  if (columns.empty())  // no event: still a valid profile
    columns.push_back({"samples", "count", kNoIndex, false});
  return columns;
}

class PprofWriter {
 public:
  explicit PprofWriter(const Profile& profile)
      : profile_(profile), columns_(columns_of(profile.events())) {
    (void)number_of("");
  }

  std::string write(const std::string& first_event) {
    for (const Column& column : columns_)
      write_type(field::kSampleType, column.type, column.unit);
    find_used();
    for (const Sum& sum : profile_.sums())
      write_sample(sum);
    write_mappings();
    write_locations();
    write_functions();
    write_period(first_event);
    for (const std::string_view text : texts_)
      out_.add_string(field::kStringTable, text.data(), text.size());
    return std::move(bytes_);
  }

 private:
  /// Returns the number of a string in the table.  `text` must outlive this.
  std::int64_t number_of(std::string_view text) {
    const auto [found, is_new] = numbers_.try_emplace(text, static_cast<Index>(texts_.size()));
    if (is_new)  // strict readers reject a whole profile for one string that is not UTF-8
      texts_.push_back(is_valid_utf8(text) ? text : made_valid_.store(made_valid_utf8(text)));
    return found->second;
  }

  void write_type(field::OfProfile tag, std::string_view type, std::string_view unit) {
    Writer message(out_, tag);
    message.add_int64(1, number_of(type));
    message.add_int64(2, number_of(unit));
  }

  /// Marks the places of the remaining samples: the profile also holds those of removed samples.
  void find_used() {
    used_.assign(profile_.places().size(), false);
    std::vector<bool> is_seen(profile_.stacks().size());
    for (const Sum& sum : profile_.sums())
      for (Index stack = sum.stack; stack != kNoIndex && !is_seen[stack];
           stack = profile_.stacks()[stack].caller) {
        is_seen[stack] = true;
        used_[profile_.stacks()[stack].place] = true;
      }
  }

  void write_sample(const Sum& sum) {
    Writer message(out_, field::kSample);
    locations_.clear();
    for (Index stack = sum.stack; stack != kNoIndex; stack = profile_.stacks()[stack].caller)
      locations_.push_back(profile_.stacks()[stack].place + 1);
    message.add_packed_uint64(field::kLocationId, locations_.begin(), locations_.end());
    values_.clear();
    for (const Column& column : columns_)
      values_.push_back(column.event != sum.event ? 0
                        : column.of_period        ? static_cast<std::int64_t>(sum.period)
                                                  : static_cast<std::int64_t>(sum.samples));
    message.add_packed_int64(field::kValue, values_.begin(), values_.end());
    const Thread& thread = profile_.threads()[sum.thread];
    if (thread != Thread{}) {
      write_label(message, "comm", thread.comm);
      write_label(message, "pid", thread.pid);
      write_label(message, "tid", thread.tid);
    }
    write_label(message, "event", profile_.events()[sum.event].name);
  }

  void write_label(Writer& sample, std::string_view key, std::string_view value) {
    Writer message(sample, field::kLabel);
    message.add_int64(1, number_of(key));
    message.add_int64(2, number_of(value));
  }
  void write_label(Writer& sample, std::string_view key, std::uint32_t value) {
    Writer message(sample, field::kLabel);
    message.add_int64(1, number_of(key));
    message.add_int64(3, static_cast<std::int32_t>(value));  // -1: ended before its sample
  }

  /// Which symbol data the places of a mapping have.  A viewer looks up the rest itself.
  struct Knowledge {
    bool is_used = false;
    bool functions = true, files = false, lines = false, inlined = false;
  };

  [[nodiscard]] std::vector<Knowledge> knowledge() const {
    std::vector<Knowledge> all(profile_.mappings().size());
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const Place& place = profile_.places()[i];
      if (!used_[i] || place.mapping == kNoIndex)
        continue;
      Knowledge& known = all[place.mapping];
      known.is_used = true;
      known.functions = known.functions && place.line_count > 0;
      known.inlined = known.inlined || place.line_count > 1;
      for (Index n = 0; n < place.line_count; ++n) {
        const Line& line = profile_.lines()[place.first_line + n];
        const Function& function = profile_.functions()[line.function];
        known.functions = known.functions && (function.flags & stream::kSymbolUnresolved) == 0;
        known.files = known.files || !function.file.empty();
        known.lines = known.lines || line.line > 0;
      }
    }
    return all;
  }

  /// Orders mappings, programs first: pprof shows the first mapping as the profile's program.
  [[nodiscard]] std::vector<Index> programs_first() const {
    std::vector<Index> order(profile_.mappings().size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_partition(order.begin(), order.end(), [this](Index mapping) {
      const std::string_view path = profile_.mappings()[mapping].path;
      return module_flags(path) == 0 && path.starts_with('/') && !path.starts_with("//");
    });
    return order;
  }

  void write_mappings() {
    const std::vector<Knowledge> known = knowledge();
    build_ids_.resize(known.size());
    for (const Index i : programs_first()) {
      if (!known[i].is_used)
        continue;
      const Mapping& mapping = profile_.mappings()[i];
      for (const char byte : mapping.build_id)
        build_ids_[i] += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      Writer message(out_, field::kMapping);
      message.add_uint64(1, std::uint64_t{i} + 1);
      message.add_uint64(2, profile_.start_of(i));
      message.add_uint64(3, profile_.start_of(i) + mapping.size);
      message.add_uint64(4, mapping.file_offset);
      message.add_int64(5, number_of(mapping.path));
      message.add_int64(6, number_of(build_ids_[i]));
      message.add_bool(7, known[i].functions);
      message.add_bool(8, known[i].files);
      message.add_bool(9, known[i].lines);
      message.add_bool(10, known[i].inlined);
    }
  }

  void write_locations() {
    used_functions_.assign(profile_.functions().size(), false);
    for (Index i = 0; i < used_.size(); ++i) {
      if (!used_[i])
        continue;
      const Place& place = profile_.places()[i];
      Writer message(out_, field::kLocation);
      message.add_uint64(field::kId, std::uint64_t{i} + 1);
      if (place.mapping != kNoIndex)
        message.add_uint64(field::kMappingId, std::uint64_t{place.mapping} + 1);
      message.add_uint64(field::kAddress, place.address);
      for (Index n = 0; n < place.line_count; ++n) {
        const Line& line = profile_.lines()[place.first_line + n];
        used_functions_[line.function] = true;
        Writer nested(message, field::kLine);
        nested.add_uint64(1, std::uint64_t{line.function} + 1);
        nested.add_int64(2, line.line);
      }
    }
  }

  void write_functions() {
    for (Index i = 0; i < used_functions_.size(); ++i) {
      if (!used_functions_[i])
        continue;
      const Function& function = profile_.functions()[i];
      Writer message(out_, field::kFunction);
      message.add_uint64(1, std::uint64_t{i} + 1);
      message.add_int64(2, number_of(function.name));
      message.add_int64(3, number_of(function.name));
      message.add_int64(4, number_of(function.file));
    }
  }

  void write_period(const std::string& first_event) {
    const auto duration = profile_.last_time_ns - profile_.first_time_ns;
    if (duration > 0)
      out_.add_int64(field::kDurationNanos, static_cast<std::int64_t>(duration));
    for (const Column& column : columns_) {
      if (column.event == kNoIndex)
        return;
      const Event& event = profile_.events()[column.event];
      if (event.name != first_event || column.of_period != event.by_period)
        continue;
      out_.add_int64(field::kDefaultSampleType, number_of(column.type));
      for (const Column& other : columns_)
        if (other.event == column.event && other.of_period && event.period > 0) {
          write_type(field::kPeriodType, other.type, other.unit);
          out_.add_int64(field::kPeriod, static_cast<std::int64_t>(event.period));
        }
    }
  }

  const Profile& profile_;
  std::vector<Column> columns_;
  std::string bytes_;
  Writer out_{bytes_};
  boost::unordered_flat_map<std::string_view, Index, std::hash<std::string_view>> numbers_;
  std::vector<std::string_view> texts_;
  StringArena made_valid_;
  std::vector<bool> used_;            ///< indexed by place
  std::vector<bool> used_functions_;  ///< functions
  std::vector<std::string> build_ids_;
  std::vector<std::uint64_t> locations_;  ///< of the current sample, leaf first
  std::vector<std::int64_t> values_;
};

}  // namespace

void to_pprof(const Profile& profile, const std::string& first_event, Output& out) {
  constexpr int kLevel = 6;
  out.write(gzip(PprofWriter(profile).write(first_event), kLevel));
}

}  // namespace pe::fold::exports
