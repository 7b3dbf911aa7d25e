// Reads profiles in speedscope's own format, as stackfold writes them: lists of samples with whole
// weights.  Other programs also write lists of calls and returns ("evented"), which are refused.
//
// The reader holds one number for each frame of each sample, and checks that they are in range.
//
// Source: file-format-schema.json of the npm package speedscope, 1.25.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "folded/facts.h"
#include "stackfold/formats/pprof/sample_types.h"
#include "stackfold/formats/readers.h"
#include "stackfold/frame_text.h"
#include "stackfold/gzip.h"

// As in json_writer.h: RapidJSON adds to a null pointer, which the sanitizer reports.
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#ifdef __clang__
#pragma clang attribute pop
#endif

namespace pe::fold::speedscope {
namespace {

constexpr std::size_t kMostBytes = std::size_t{512} << 20U;

/// A list of samples.
struct List {
  std::string type, name, unit;
  std::vector<std::uint32_t> frames = {};  ///< of all samples, root first
  std::vector<std::uint64_t> ends = {};    ///< of each sample: the number of frames up to its end
  std::vector<std::uint64_t> weights = {};
  bool has_odd_weight = false;  ///< a fraction, or a negative one
};

/// Keeps the parts of a document that matter.
class Handler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Handler> {
 public:
  std::vector<std::string> frames;
  std::vector<List> lists;
  std::uint64_t active = 0;  ///< the list that viewers show first

  bool StartObject() { return enter(kInObject); }
  bool StartArray() { return enter(kInArray); }
  bool EndObject(rapidjson::SizeType /*members*/) { return leave(); }
  bool EndArray(rapidjson::SizeType /*items*/) {
    if (places_.back() == Place::kSample)
      lists.back().ends.push_back(lists.back().frames.size());
    return leave();
  }
  bool Key(const char* text, rapidjson::SizeType size, bool /*is_copied*/) {
    key_.assign(text, size);
    return true;
  }
  bool String(const char* text, rapidjson::SizeType size, bool /*is_copied*/) {
    const std::string_view value(text, size);
    if (place() == Place::kFrame && key_ == "name")
      frames.back() = value;
    if (place() != Place::kList)
      return true;
    List& list = lists.back();
    if (key_ == "type")
      list.type = value;
    else if (key_ == "name")
      list.name = value;
    else if (key_ == "unit")
      list.unit = value;
    return true;
  }
  bool Uint(unsigned value) { return Uint64(value); }
  bool Uint64(std::uint64_t value) {
    if (place() == Place::kSample)
      lists.back().frames.push_back(
          static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX)));
    else if (place() == Place::kWeights)
      lists.back().weights.push_back(value);
    else if (place() == Place::kRoot && key_ == "activeProfileIndex")
      active = value;
    return true;
  }
  bool Int(int /*value*/) { return note_odd(); }
  bool Int64(std::int64_t /*value*/) { return note_odd(); }
  bool Double(double /*value*/) { return note_odd(); }

 private:
  enum class Place {
    kElsewhere,
    kRoot,
    kShared,
    kFrames,
    kFrame,
    kProfiles,
    kList,
    kSamples,
    kSample,
    kWeights
  };
  enum Kind : bool { kInObject, kInArray };

  struct Step {
    Place from;
    std::string_view key;  ///< empty: an item of a list
    Kind kind;
    Place to;
  };

  [[nodiscard]] Place place() const { return places_.empty() ? Place::kElsewhere : places_.back(); }

  [[nodiscard]] Place next(Kind kind) const {
    static constexpr Step kSteps[] = {
        {Place::kRoot, "shared", kInObject, Place::kShared},
        {Place::kShared, "frames", kInArray, Place::kFrames},
        {Place::kFrames, "", kInObject, Place::kFrame},
        {Place::kRoot, "profiles", kInArray, Place::kProfiles},
        {Place::kProfiles, "", kInObject, Place::kList},
        {Place::kList, "samples", kInArray, Place::kSamples},
        {Place::kSamples, "", kInArray, Place::kSample},
        {Place::kList, "weights", kInArray, Place::kWeights},
    };
    if (places_.empty())
      return kind == kInObject ? Place::kRoot : Place::kElsewhere;
    for (const Step& step : kSteps)
      if (step.from == places_.back() && step.kind == kind &&
          (step.key.empty() || step.key == key_))
        return step.to;
    return Place::kElsewhere;
  }

  bool enter(Kind kind) {
    const Place to = next(kind);
    if (to == Place::kFrame)
      frames.emplace_back();
    else if (to == Place::kList)
      lists.emplace_back();
    places_.push_back(to);
    return true;
  }
  bool leave() {
    places_.pop_back();
    return true;
  }
  bool note_odd() {
    if (place() == Place::kWeights)
      lists.back().has_odd_weight = true;
    return true;
  }

  std::vector<Place> places_;
  std::string key_;
};

/// Returns why the text is no document; empty if it is one.
std::string parse(std::string_view text, Handler& handler) {
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  const auto result = reader.Parse<rapidjson::kParseIterativeFlag>(stream, handler);
  if (!result.IsError())
    return {};
  if (result.Offset() >= text.size())
    return "the profile is cut off";
  return fmt::format("damaged JSON at byte {}: {}", result.Offset(),
                     rapidjson::GetParseError_En(result.Code()));
}

/// Returns why a list cannot be folded; empty if it can.
std::string problem_of(const List& list) {
  if (list.type != "sampled")
    return fmt::format(
        "a list of type {}: only lists of samples are read, as stackfold writes them",
        in_quotes(list.type));
  if (list.has_odd_weight)
    return "weights with fractions: only whole ones are read, as stackfold writes them";
  if (list.ends.size() != list.weights.size())
    return fmt::format("{} with {}", plural(list.ends.size(), "sample"),
                       plural(list.weights.size(), "weight"));
  return {};
}

void set_unit(const List& list, TextReport& report) {
  if (list.unit == "nanoseconds")  // SampleTypes converts them
    folded::append_fact(report.facts, "unit", "us");
  else if (list.unit == "bytes")
    folded::append_fact(report.facts, "unit", list.unit);
}

/// Adds the stacks of a list.  Returns the number of frames that the document does not define.
std::uint64_t add_stacks(const List& list, std::size_t number,
                         const std::vector<folded::FrameId>& ids, folded::FrameId unknown,
                         SampleTypes& types) {
  std::uint64_t undefined = 0;
  std::vector<folded::FrameId> stack;
  std::uint64_t at = 0;
  for (std::size_t sample = 0; sample < list.ends.size(); ++sample) {
    stack.clear();
    for (; at < list.ends[sample]; ++at) {
      const bool is_defined = list.frames[at] < ids.size();
      stack.push_back(is_defined ? ids[list.frames[at]] : unknown);
      undefined += is_defined ? 0 : 1;
    }
    if (stack.empty())
      stack.push_back(unknown);
    types.add(stack, number, list.weights[sample]);
  }
  return undefined;
}

/// Folds the chosen list.
void fold_lists(const Handler& document, const Options& options, folded::FoldedCounts& counts,
                TextReport& report) {
  std::vector<SampleType> names;
  for (const List& list : document.lists)
    names.push_back({list.name, list.unit});
  SampleTypes types(counts, options);
  if (options.all_events) {
    report.damage =
        "--all-events: the lists of threads repeat the samples (choose one: --event NAME)";
    return;
  }
  const std::uint64_t shown = document.active < names.size() ? document.active : 0;
  if (!types.choose(names, shown)) {
    report.damage = names.empty() ? "no list of samples in it"
                                  : no_such_type(options.event.value_or(""), names);
    return;
  }
  const std::size_t number = types.values_needed() - 1;
  const List& list = document.lists[number];
  report.damage = problem_of(list);
  if (!report.damage.empty())
    return;
  std::vector<folded::FrameId> ids;
  ids.reserve(document.frames.size());
  for (const std::string& frame : document.frames)
    ids.push_back(counts.frames().intern(clean_name(frame)));
  const std::uint64_t undefined =
      add_stacks(list, number, ids, counts.frames().intern("[unknown]"), types);
  types.finish();
  report.samples = list.ends.size();
  report.is_empty_profile = list.ends.empty();
  set_unit(list, report);
  if (undefined > 0)
    report.damage = plural(undefined, "frame") + " that it does not define";
}

}  // namespace

bool looks_like(std::string_view head) {
  return head.starts_with('{') && head.find("speedscope.app/file-format-schema") != kNone;
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  TextReport report;
  Handler document;
  const std::string text = read_unpacked(input, kMostBytes, report.damage);
  if (report.damage.empty())
    report.damage = parse(text, document);
  if (report.damage.empty())
    fold_lists(document, options, counts, report);
  return report;
}

}  // namespace pe::fold::speedscope
