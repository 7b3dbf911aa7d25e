// SPDX-License-Identifier: MIT
#include "stackfold/exports/firefox.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_name.h"
#include "base/json_text.h"
#include "folded/frame_table.h"
#include "stackfold/frame_text.h"
#include "stream/records/sample.h"

namespace pe::fold::exports {
namespace {

constexpr int kFormatVersion = 60;
constexpr int kGeckoVersion = 30;

/// Numbers of kCategories.
enum Category : std::uint8_t { kOther, kUser, kLibrary, kKernel, kJit };
constexpr std::string_view kCategories =
    R"([{"name":"Other","color":"grey","subcategories":["Other"]},)"
    R"({"name":"User","color":"yellow","subcategories":["Other"]},)"
    R"({"name":"Library","color":"blue","subcategories":["Other"]},)"
    R"({"name":"Kernel","color":"orange","subcategories":["Other"]},)"
    R"({"name":"JIT","color":"green","subcategories":["Other"]}])";

Category category_of(std::uint32_t flags) {
  if ((flags & stream::kSymbolKernel) != 0)
    return kKernel;
  if ((flags & stream::kSymbolJit) != 0)
    return kJit;
  return (flags & stream::kSymbolLibrary) != 0 ? kLibrary : kUser;
}

/// A table; each column is a JSON list.
class Table {
 public:
  explicit Table(std::vector<std::string_view> names) : names_(std::move(names)) {
    columns_.resize(names_.size());
  }

  /// Adds a row: one value, in JSON, for each column.
  template <typename... Values>
  Index add(const Values&... values) {
    std::size_t column = 0;
    (append(columns_[column++], values), ...);
    return length_++;
  }

  [[nodiscard]] std::string json() const {
    std::string out = fmt::format(R"({{"length":{})", length_);
    for (std::size_t i = 0; i < names_.size(); ++i)
      fmt::format_to(std::back_inserter(out), R"(,"{}":[{}])", names_[i], columns_[i]);
    return out + '}';
  }

 private:
  template <typename Value>
  void append(std::string& column, const Value& value) {
    fmt::format_to(std::back_inserter(column), "{}{}", length_ == 0 ? "" : ",", value);
  }

  std::vector<std::string_view> names_;
  std::vector<std::string> columns_;
  Index length_ = 0;
};

/// Returns a number, or null for kNone.
std::string or_null(Index value) { return value == kNone ? "null" : fmt::to_string(value); }

/// The tables that all threads share.
class SharedTables {
 public:
  explicit SharedTables(const Profile& profile)
      : profile_(profile),
        function_of_(profile.functions().size(), kNone),
        first_frame_(profile.places().size(), kNone) {
    const auto& stacks = profile.stacks();
    innermost_.resize(stacks.size());
    for (Index i = 0; i < stacks.size(); ++i)  // callers have lower numbers
      innermost_[i] = add_stack(stacks[i]);
  }

  /// Returns the row of the innermost frame for a stack of the profile.
  [[nodiscard]] Index stack(Index number) const { return innermost_[number]; }

  [[nodiscard]] std::string libs() const { return "[" + libs_ + "]"; }

  [[nodiscard]] std::string json() const {
    std::string strings;
    for (Index i = 0; i < strings_.size(); ++i)
      strings += (i == 0 ? "" : ",") + json_text(strings_[i]);
    return fmt::format(
        R"({{"stackTable":{},"frameTable":{},"funcTable":{},"resourceTable":{},"nativeSymbols":{},)"
        R"("sources":{},"stringArray":[{}]}})",
        stacks_.json(), frames_.json(), functions_.json(), resources_.json(),
        Table({"libIndex", "address", "name", "functionSize"}).json(), sources_.json(), strings);
  }

 private:
  /// Adds a row for each function: in this format, each inlined function has a stack of its own.
  Index add_stack(const Stack& stack) {
    Index prefix = stack.caller == kNone ? kNone : innermost_[stack.caller];
    const Place& place = profile_.places()[stack.place];
    const Index first = frames_of(stack.place);
    for (Index depth = 0; depth < std::max<Index>(place.line_count, 1); ++depth)
      prefix = stacks_.add(first + depth, or_null(prefix));
    return prefix;
  }

  /// Returns the frame of the outermost function at a place; the frames of inlined ones follow it.
  Index frames_of(Index number) {
    Index& first = first_frame_[number];
    if (first != kNone)
      return first;
    const Place& place = profile_.places()[number];
    if (place.line_count == 0)
      return first = add_frame(place, 0, function_without_name(place), category_of(place.flags), 0);
    for (Index depth = 0; depth < place.line_count; ++depth) {
      const Line& line = profile_.lines()[place.first_line + place.line_count - 1 - depth];
      const std::uint32_t flags = profile_.functions()[line.function].flags;
      const bool is_word = place.mapping == kNone && place.address == 0;
      const Index frame = add_frame(place, depth, function_of(line.function, place),
                                    is_word ? kOther : category_of(flags), line.line);
      first = depth == 0 ? frame : first;
    }
    return first;
  }

  Index add_frame(const Place& place, Index depth, Index function, Category category,
                  std::uint32_t line) {
    return frames_.add(address_of(place), depth, static_cast<int>(category), 0, function, "null", 0,
                       line == 0 ? "null" : fmt::to_string(line), "null");
  }

  /// Returns the offset in the file; -1 without a file.
  [[nodiscard]] std::string address_of(const Place& place) const {
    if (place.mapping == kNone || (place.flags & stream::kSymbolKernel) != 0)
      return "-1";
    return fmt::to_string(place.address - profile_.start_of(place.mapping) +
                          profile_.mappings()[place.mapping].file_offset);
  }

  Index function_of(Index number, const Place& place) {
    Index& function = function_of_[number];
    if (function == kNone) {
      const Function& told = profile_.functions()[number];
      function = add_function(told.name, resource_of(place), told.file);
    }
    return function;
  }

  Index function_without_name(const Place& place) {
    const std::string name = unnamed(profile_, place);
    const auto [found, is_new] = nameless_.try_emplace(name);
    if (is_new)
      found->second = add_function(name, resource_of(place), {});
    return found->second;
  }

  Index add_function(std::string_view name, Index resource, std::string_view file) {
    const Index source = file.empty() ? kNone : source_of(strings_.intern(file));
    return functions_.add(strings_.intern(name.empty() ? "[unknown]" : name), "false", "false",
                          resource == kNone ? "-1" : fmt::to_string(resource), or_null(source),
                          "null", "null");
  }

  Index source_of(Index file) {
    const auto [found, is_new] = source_of_.try_emplace(file);
    if (is_new)
      found->second = sources_.add("null", file);
    return found->second;
  }

  /// Returns the resource of the place's file, which has the number of its library.
  Index resource_of(const Place& place) {
    if (place.mapping == kNone)
      return kNone;
    const std::string_view path = profile_.mappings()[place.mapping].path;
    const auto [found, is_new] = resource_of_.try_emplace(path);
    if (is_new) {
      constexpr int kTypeLibrary = 1;
      const Index lib = add_lib(profile_.mappings()[place.mapping]);
      found->second = resources_.add(lib, strings_.intern(file_name(path)), "null", kTypeLibrary);
    }
    return found->second;
  }

  Index add_lib(const Mapping& mapping) {
    std::string code_id;
    for (const char byte : mapping.build_id)
      fmt::format_to(std::back_inserter(code_id), "{:02x}", static_cast<unsigned char>(byte));
    const std::string name = json_text(file_name(mapping.path));
    const std::string path = json_text(mapping.path);
    fmt::format_to(std::back_inserter(libs_),
                   R"({}{{"arch":"x86_64","name":{},"path":{},"debugName":{},"debugPath":{},)"
                   R"("breakpadId":"","codeId":{}}})",
                   lib_count_ == 0 ? "" : ",", name, path, name, path,
                   code_id.empty() ? "null" : "\"" + code_id + "\"");
    return lib_count_++;
  }

  const Profile& profile_;
  folded::FrameTable strings_;
  std::vector<Index> innermost_;    ///< by stack of the profile
  std::vector<Index> function_of_;  ///< by function of the profile
  std::vector<Index> first_frame_;  ///< by place
  std::map<std::string, Index> nameless_;
  std::map<Index, Index> source_of_;  ///< by string
  std::map<std::string_view, Index> resource_of_;
  std::string libs_;  ///< JSON
  Index lib_count_ = 0;
  Table stacks_{{"frame", "prefix"}};
  Table frames_{{"address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol",
                 "innerWindowID", "line", "column"}};
  Table functions_{
      {"name", "isJS", "relevantForJS", "resource", "source", "lineNumber", "columnNumber"}};
  Table resources_{{"lib", "name", "host", "type"}};
  Table sources_{{"uuid", "filename"}};
};

class FirefoxWriter {
 public:
  explicit FirefoxWriter(const Profile& profile) : profile_(profile), shared_(profile) {}

  std::string write(const std::string& first_event) {
    std::string threads;
    for (const bool is_first : {true, false})
      for (Index event = 0; event < profile_.events().size(); ++event)
        if ((profile_.events()[event].name == first_event) == is_first)
          append_threads(event, threads);
    return fmt::format(
        "{{\"meta\":{},\n\"libs\":{},\n\"pages\":[],\"counters\":[],\"profilerOverhead\":[],\n"
        "\"shared\":{},\n\"threads\":[{}]}}\n",
        meta(first_event), shared_.libs(), shared_.json(), threads);
  }

 private:
  [[nodiscard]] std::string meta(const std::string& first_event) const {
    double interval_ms = 1;
    for (const Event& event : profile_.events())
      if (event.name == first_event && event.unit == "nanoseconds" && event.period > 0)
        interval_ms = static_cast<double>(event.period) / kNsPerMs;
    return fmt::format(
        R"({{"interval":{},"startTime":0,"processType":0,"product":"stackpipe","stackwalk":1,)"
        R"("debug":false,"version":{},"preprocessedProfileVersion":{},"symbolicated":true,)"
        R"("importedFrom":"stackpipe","categories":{},"markerSchema":[],)"
        R"("sampleUnits":{{"time":"ms","eventDelay":"ms","threadCPUDelta":"ns"}},)"
        R"("usesOnlyOneStackType":true,"sourceCodeIsNotOnSearchfox":true}})",
        interval_ms, kGeckoVersion, kFormatVersion, kCategories);
  }

  void append_threads(Index event, std::string& out) const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const TimedSample*>> by_thread;
    for (const TimedSample& sample : profile_.timed()) {
      const Thread& thread = profile_.threads()[sample.thread];
      if (sample.event == event)
        by_thread[{thread.pid, thread.tid}].push_back(&sample);
    }
    for (auto& [ids, samples] : by_thread) {
      std::stable_sort(samples.begin(), samples.end(),
                       [](const auto* a, const auto* b) { return a->time_ns < b->time_ns; });
      out += out.empty() ? "\n" : ",\n";
      append_thread(profile_.events()[event], samples, out);
    }
  }

  void append_thread(const Event& event, const std::vector<const TimedSample*>& samples,
                     std::string& out) const {
    const Thread& thread = profile_.threads()[samples.back()->thread];  // by its last name
    const std::string name(thread.comm);
    const std::string shown = profile_.events().size() == 1 ? name : event.name + ": " + name;
    fmt::format_to(
        std::back_inserter(out),
        R"({{"name":{},"processName":{},"processType":"default","isMainThread":{},"pid":"{}","tid":"{}",)"
        R"("processStartupTime":0,"processShutdownTime":null,"registerTime":0,"unregisterTime":null,)"
        R"("pausedRanges":[],"showMarkersInTimeline":false,"markers":{},"samples":{}}})",
        json_text(shown), json_text(name), thread.pid == thread.tid, thread.pid, thread.tid,
        Table({"data", "name", "startTime", "endTime", "phase", "category"}).json(),
        samples_json(event, samples));
  }

  [[nodiscard]] std::string samples_json(const Event& event,
                                         const std::vector<const TimedSample*>& samples) const {
    std::string stacks, times, weights;
    for (const TimedSample* sample : samples) {
      const char* const comma = stacks.empty() ? "" : ",";
      fmt::format_to(std::back_inserter(stacks), "{}{}", comma, shared_.stack(sample->stack));
      const std::uint64_t since =
          sample->time_ns - std::min(sample->time_ns, profile_.first_time_ns);
      fmt::format_to(std::back_inserter(times), "{}{}", comma,
                     static_cast<double>(since) / kNsPerMs);
      if (event.by_period && event.unit == "nanoseconds")
        fmt::format_to(std::back_inserter(weights), "{}{}", comma,
                       static_cast<double>(sample->period) / kNsPerMs);
      else if (event.by_period)
        fmt::format_to(std::back_inserter(weights), "{}{}", comma, sample->period);
    }
    const std::string_view type = !event.by_period              ? "samples"
                                  : event.unit == "nanoseconds" ? "tracing-ms"
                                  : event.unit == "bytes"       ? "bytes"
                                                                : "samples";
    return fmt::format(R"({{"length":{},"stack":[{}],"time":[{}],"weight":{},"weightType":"{}"}})",
                       samples.size(), stacks, times,
                       event.by_period ? "[" + weights + "]" : "null", type);
  }

  const Profile& profile_;
  SharedTables shared_;
};

}  // namespace

std::string to_firefox(const Profile& profile, const std::string& first_event) {
  return FirefoxWriter(profile).write(first_event);
}

}  // namespace pe::fold::exports
