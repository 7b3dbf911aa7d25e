// SPDX-License-Identifier: MIT
#include "stackfold/exports/firefox.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/io/json_writer.h"
#include "base/text.h"
#include "stackfold/folded_counts.h"
#include "stackfold/frame_text.h"
#include "stream/proc/process_table.h"
#include "stream/records/sample.h"

namespace pe::fold::exports {
namespace {

constexpr RawJson kEmpty{"[]"};

constexpr int kFormatVersion = 60;
constexpr int kGeckoVersion = 30;

/// Numbers of kCategories.
enum Category : std::uint8_t { kOther, kUser, kLibrary, kKernel, kJit, kScript };
constexpr std::string_view kCategories =
    R"([{"name":"Other","color":"grey","subcategories":["Other"]},)"
    R"({"name":"User","color":"yellow","subcategories":["Other"]},)"
    R"({"name":"Library","color":"blue","subcategories":["Other"]},)"
    R"({"name":"Kernel","color":"orange","subcategories":["Other"]},)"
    R"({"name":"JIT","color":"green","subcategories":["Other"]},)"
    R"({"name":"Script","color":"purple","subcategories":["Other"]}])";

Category category_of(std::uint32_t flags) {
  if ((flags & stream::kSymbolKernel) != 0)
    return kKernel;
  if ((flags & stream::kSymbolJit) != 0)
    return kJit;
  if ((flags & stream::kSymbolScript) != 0)
    return kScript;
  return (flags & stream::kSymbolLibrary) != 0 ? kLibrary : kUser;
}

/// Writes columns of a table.  Each has a name and a member of Row, or a value that is the same in
/// all rows.
template <typename Row, typename Value, typename... Others>
void write_columns(JsonWriter& json, const std::vector<Row>& rows, std::string_view name,
                   const Value& value, const Others&... others) {
  json.list(name, rows, [&value](const Row& row) {
    if constexpr (std::is_invocable_v<Value, const Row&>)
      return std::invoke(value, row);
    else
      return value;
  });
  if constexpr (sizeof...(others) > 0)
    write_columns(json, rows, others...);
}

template <typename Row, typename... Columns>
void write_table(JsonWriter& json, std::string_view name, const std::vector<Row>& rows,
                 const Columns&... columns) {
  json.start_object(name);
  json.member("length", rows.size());
  write_columns(json, rows, columns...);
  json.end_object();
}

/// Adds a row and returns its number.
template <typename Row>
Index add_row(std::vector<Row>& table, const std::type_identity_t<Row>& row) {
  table.push_back(row);
  return static_cast<Index>(table.size() - 1);
}

/// The tables that all threads share.
class SharedTables {
 public:
  explicit SharedTables(const Profile& profile)
      : profile_(profile),
        function_of_(profile.functions().size(), kNoIndex),
        first_frame_(profile.places().size(), kNoIndex) {
    const auto& stacks = profile.stacks();
    innermost_.resize(stacks.size());
    for (Index i = 0; i < stacks.size(); ++i)  // callers have lower numbers
      innermost_[i] = add_stack(stacks[i]);
  }

  /// Returns the row of the innermost frame for a stack of the profile.
  [[nodiscard]] Index stack(Index number) const { return innermost_[number]; }

  void write_libs(JsonWriter& json) const {
    json.start_array("libs");
    for (const Resource& resource : resources_)
      write_lib(json, profile_.mappings()[resource.mapping]);
    json.end_array();
  }

  void write(JsonWriter& json) const {
    constexpr int kTypeLibrary = 1;
    json.start_object("shared");
    write_table(json, "stackTable", stacks_, "frame", &StackRow::frame, "prefix",
                &StackRow::prefix);
    write_table(json, "frameTable", frames_, "address", &FrameRow::address, "inlineDepth",
                &FrameRow::depth, "category", &FrameRow::category, "subcategory", 0, "func",
                &FrameRow::function, "nativeSymbol", std::nullopt, "innerWindowID", 0, "line",
                &FrameRow::line, "column", std::nullopt);
    write_table(json, "funcTable", functions_, "name", &FunctionRow::name, "isJS", false,
                "relevantForJS", false, "resource", &FunctionRow::resource, "source",
                &FunctionRow::source, "lineNumber", std::nullopt, "columnNumber", std::nullopt);
    write_table(json, "resourceTable", resources_, "lib", &Resource::lib, "name", &Resource::name,
                "host", std::nullopt, "type", kTypeLibrary);
    json.member("nativeSymbols",
                RawJson{R"({"length":0,"libIndex":[],"address":[],"name":[],"functionSize":[]})"});
    write_table(json, "sources", sources_, "uuid", std::nullopt, "filename", std::identity());
    json.start_array("stringArray");
    for (Index i = 0; i < strings_.size(); ++i)
      json.value(strings_[i]);
    json.end_array();
    json.end_object();
  }

 private:
  struct StackRow {
    Index frame;
    std::optional<Index> prefix;  ///< the row of the caller
  };
  struct FrameRow {
    std::int64_t address;
    Index depth;  ///< of inlined functions
    int category;
    Index function;
    std::optional<std::uint32_t> line;
  };
  struct FunctionRow {
    Index name;
    std::int64_t resource;
    std::optional<Index> source;
  };
  struct Resource {
    Index lib;
    Index mapping;  ///< the first one of the file
    Index name;
  };

  /// Adds a row for each function: in this format, each inlined function has a stack of its own.
  Index add_stack(const Stack& stack) {
    std::optional<Index> prefix;
    if (stack.caller != kNoIndex)
      prefix = innermost_[stack.caller];
    const Place& place = profile_.places()[stack.place];
    const Index first = frames_of(stack.place);
    for (Index depth = 0; depth < std::max<Index>(place.line_count, 1); ++depth)
      prefix = add_row(stacks_, {.frame = first + depth, .prefix = prefix});
    return *prefix;
  }

  /// Returns the frame of the outermost function at a place; the frames of inlined ones follow it.
  Index frames_of(Index number) {
    Index& first = first_frame_[number];
    if (first != kNoIndex)
      return first;
    const Place& place = profile_.places()[number];
    if (place.line_count == 0)
      return first = add_frame(place, 0, function_without_name(place), category_of(place.flags), 0);
    for (Index depth = 0; depth < place.line_count; ++depth) {
      const Line& line = profile_.lines()[place.first_line + place.line_count - 1 - depth];
      const std::uint32_t flags = profile_.functions()[line.function].flags;
      const bool is_word = place.mapping == kNoIndex && place.address == 0;
      const Index frame = add_frame(place, depth, function_of(line.function, place),
                                    is_word ? kOther : category_of(flags), line.line);
      first = depth == 0 ? frame : first;
    }
    return first;
  }

  Index add_frame(const Place& place, Index depth, Index function, Category category,
                  std::uint32_t line) {
    return add_row(frames_, {.address = address_of(place),
                             .depth = depth,
                             .category = category,
                             .function = function,
                             .line = line == 0 ? std::nullopt : std::optional(line)});
  }

  /// Returns the offset in the file; -1 without a file.
  [[nodiscard]] std::int64_t address_of(const Place& place) const {
    if (place.mapping == kNoIndex || (place.flags & stream::kSymbolKernel) != 0)
      return -1;
    return static_cast<std::int64_t>(place.address - profile_.start_of(place.mapping) +
                                     profile_.mappings()[place.mapping].file_offset);
  }

  Index function_of(Index number, const Place& place) {
    Index& function = function_of_[number];
    if (function == kNoIndex) {
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

  Index add_function(std::string_view name, std::int64_t resource, std::string_view file) {
    std::optional<Index> source;
    if (!file.empty())
      source = source_of(strings_.intern(file));
    return add_row(functions_, {.name = strings_.intern(name.empty() ? "[unknown]" : name),
                                .resource = resource,
                                .source = source});
  }

  Index source_of(Index file) {
    const auto [found, is_new] = source_of_.try_emplace(file);
    if (is_new)
      found->second = add_row(sources_, file);
    return found->second;
  }

  /// Returns the resource of the place's file, which has the number of its library; -1 without a
  /// file.
  std::int64_t resource_of(const Place& place) {
    if (place.mapping == kNoIndex)
      return -1;
    const std::string_view path = profile_.mappings()[place.mapping].path;
    const auto [found, is_new] = resource_of_.try_emplace(path);
    if (is_new)
      found->second = add_row(resources_, {.lib = static_cast<Index>(resources_.size()),
                                           .mapping = place.mapping,
                                           .name = strings_.intern(file_name(path))});
    return found->second;
  }

  static void write_lib(JsonWriter& json, const Mapping& mapping) {
    std::string code_id;
    for (const char byte : mapping.build_id)
      fmt::format_to(std::back_inserter(code_id), "{:02x}", static_cast<unsigned char>(byte));
    json.start_object();
    json.member("arch", "x86_64", "name", file_name(mapping.path), "path", mapping.path,
                "debugName", file_name(mapping.path), "debugPath", mapping.path, "breakpadId", "",
                "codeId", code_id.empty() ? std::nullopt : std::optional(code_id));
    json.end_object();
  }

  const Profile& profile_;
  folded::FrameTable strings_;
  std::vector<Index> innermost_;    ///< by stack of the profile
  std::vector<Index> function_of_;  ///< by function of the profile
  std::vector<Index> first_frame_;  ///< by place
  std::map<std::string, Index> nameless_;
  std::map<Index, Index> source_of_;  ///< by string
  std::map<std::string_view, Index> resource_of_;
  std::vector<StackRow> stacks_;
  std::vector<FrameRow> frames_;
  std::vector<FunctionRow> functions_;
  std::vector<Resource> resources_;
  std::vector<Index> sources_;  ///< strings
};

using Samples = std::vector<const TimedSample*>;

double in_ms(std::uint64_t ns) { return static_cast<double>(ns) / kNsPerMs; }

class FirefoxWriter {
 public:
  explicit FirefoxWriter(const Profile& profile) : profile_(profile), shared_(profile) {}

  void write(const std::string& first_event, JsonWriter& json) {
    json.start_object();
    write_meta(first_event, json);
    json.break_line();
    shared_.write_libs(json);
    json.break_line();
    json.member("pages", kEmpty, "counters", kEmpty, "profilerOverhead", kEmpty);
    json.break_line();
    shared_.write(json);
    json.break_line();
    json.start_array("threads");
    for (const bool is_first : {true, false})
      for (Index event = 0; event < profile_.events().size(); ++event)
        if ((profile_.events()[event].name == first_event) == is_first)
          write_threads(event, json);
    json.end_array();
    json.end_object();
  }

 private:
  void write_meta(const std::string& first_event, JsonWriter& json) const {
    double interval_ms = 1;
    for (const Event& event : profile_.events())
      if (event.name == first_event && event.unit == "nanoseconds" && event.period > 0)
        interval_ms = in_ms(event.period);
    json.start_object("meta");
    json.member("interval", interval_ms, "startTime", 0, "processType", 0, "product", "stackpipe",
                "stackwalk", 1, "debug", false, "version", kGeckoVersion,
                "preprocessedProfileVersion", kFormatVersion, "symbolicated", true, "importedFrom",
                "stackpipe", "categories", RawJson{kCategories}, "markerSchema", kEmpty,
                "sampleUnits", RawJson{R"({"time":"ms","eventDelay":"ms","threadCPUDelta":"ns"})"},
                "usesOnlyOneStackType", true, "sourceCodeIsNotOnSearchfox", true);
    json.end_object();
  }

  void write_threads(Index event, JsonWriter& json) const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, Samples> by_thread;
    for (const TimedSample& sample : profile_.timed()) {
      const Thread& thread = profile_.threads()[sample.thread];
      if (sample.event == event)
        by_thread[{thread.pid, thread.tid}].push_back(&sample);
    }
    for (auto& [ids, samples] : by_thread) {
      std::stable_sort(samples.begin(), samples.end(),
                       [](const auto* a, const auto* b) { return a->time_ns < b->time_ns; });
      json.break_line();
      write_thread(profile_.events()[event], samples, json);
    }
  }

  void write_thread(const Event& event, const Samples& samples, JsonWriter& json) const {
    const Thread& thread = profile_.threads()[samples.back()->thread];  // by its last name
    const std::string name(thread.comm);
    json.start_object();
    json.member("name", profile_.events().size() == 1 ? name : event.name + ": " + name,
                "processName", name, "processType", "default", "isMainThread",
                thread.pid == thread.tid, "pid", stream::id_text(thread.pid), "tid",
                stream::id_text(thread.tid), "processStartupTime", 0, "processShutdownTime",
                std::nullopt, "registerTime", 0, "unregisterTime", std::nullopt, "pausedRanges",
                kEmpty, "showMarkersInTimeline", false);
    json.member(
        "markers",
        RawJson{
            R"({"length":0,"data":[],"name":[],"startTime":[],"endTime":[],"phase":[],"category":[]})"});
    write_samples(event, samples, json);
    json.end_object();
  }

  void write_samples(const Event& event, const Samples& samples, JsonWriter& json) const {
    json.start_object("samples");
    json.member("length", samples.size());
    json.list("stack", samples, [&](auto* s) { return shared_.stack(s->stack); });
    json.list("time", samples, [&](auto* s) {
      return in_ms(s->time_ns - std::min(s->time_ns, profile_.first_time_ns));
    });
    const bool is_time = event.unit == "nanoseconds";
    if (!event.by_period)
      json.member("weight", std::nullopt);
    else if (is_time)
      json.list("weight", samples, [](auto* s) { return in_ms(s->period); });
    else
      json.list("weight", samples, [](auto* s) { return s->period; });
    json.member("weightType", !event.by_period        ? "samples"
                              : is_time               ? "tracing-ms"
                              : event.unit == "bytes" ? "bytes"
                                                      : "samples");
    json.end_object();
  }

  const Profile& profile_;
  SharedTables shared_;
};

}  // namespace

void to_firefox(const Profile& profile, const std::string& first_event, Output& out) {
  JsonWriter json(out);
  FirefoxWriter(profile).write(first_event, json);
  out.write("\n");
}

}  // namespace pe::fold::exports
