// SPDX-License-Identifier: MIT
#include "languages/node/embedded.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "languages/common/interpreter.h"
#include "unwind/function_ranges.h"

namespace pe::languages {
namespace {

constexpr std::size_t kFewestBuiltins = 1000, kWordBytes = 8;
/// The builtin with the number 0.
constexpr std::string_view kFirstName = "DeoptimizationEntry_Eager";
/// One of those whose names are needed to know the frames of JavaScript.
constexpr std::string_view kNeededName = "InterpreterEntryTrampoline";
/// A loop over bytes asks once for so many whether to go on.
constexpr std::size_t kBytesOfTurn = 2048;

template <typename T>
T value_at(Bytes bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool is_of_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_';
}

/// Calls `on_hole(start, end)`, both svma, for code of the image that has no unwind information,
/// until it returns true.
template <typename OnHole>
void for_each_hole(const objects::Image& image, OnHole&& on_hole) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> known;
  unwind::FunctionRanges(image).for_each(
      [&](const auto& range) { known.emplace_back(range.start_svma, range.end_svma); });
  std::ranges::sort(known);
  for (const objects::Segment& segment : image.segments()) {
    if (!segment.executable)
      continue;
    const std::uint64_t end = segment.svma + segment.memory_bytes;
    std::uint64_t from = segment.svma;
    for (const auto& [first, last] : known) {
      if (!image.may_go_on())
        return;
      if (first > from && first <= end && on_hole(from, first))
        return;
      if (first <= end)
        from = std::max(from, last);
    }
    if (from < end && on_hole(from, end))
      return;
  }
}

}  // namespace

std::optional<V8Version> v8_version_in(std::string_view text) {
  constexpr std::string_view kMark = "-node.", kDigits = "0123456789.";
  for (std::size_t at = text.find(kMark); at != std::string_view::npos;
       at = text.find(kMark, at + 1)) {
    const std::string_view before = text.substr(0, at);
    const std::size_t last = before.find_last_not_of(kDigits);
    const auto version =
        parse_version_text(before.substr(last == std::string_view::npos ? 0 : last + 1));
    if (version)
      return V8Version{version->major, version->minor};
  }
  return std::nullopt;
}

EmbeddedV8::EmbeddedV8(const objects::Image& image) : image_(image) {
  if (auto section = image.section_bytes(".rodata"))
    constants_ = *std::move(section);
}

std::string_view EmbeddedV8::text() const noexcept {
  return {reinterpret_cast<const char*>(constants_.bytes.data()), constants_.bytes.size()};
}

std::optional<V8Version> EmbeddedV8::version() const { return v8_version_in(text()); }

/// Returns as many entries as fit each other, of a table that starts at that byte of the constants.
std::vector<EmbeddedV8::Place> EmbeddedV8::places_at(std::size_t at, std::size_t stride) const {
  constexpr std::uint32_t kAlignment = 32, kMostBytes = 1U << 20U, kMostRoom = 160;
  std::vector<Place> places;
  std::uint32_t end = 0;
  for (; at + sizeof(Place) <= constants_.bytes.size() && places.size() < kMostV8Builtins;
       at += stride) {
    const auto place = value_at<Place>(constants_.bytes, at);
    const bool follows =
        places.empty() ? place.offset == 0 : place.offset > end && place.offset - end <= kMostRoom;
    if (!follows || place.offset % kAlignment != 0 || place.bytes == 0 || place.bytes > kMostBytes)
      break;
    end = place.offset + place.bytes;
    places.push_back(place);
  }
  return places;
}

/// Finds V8's table of the places of its builtins.
std::vector<EmbeddedV8::Place> EmbeddedV8::places() const {
  constexpr std::array<std::size_t, 3> kStrides = {12, 28, 32};  // since V8 12, in V8 10, in V8 11
  const std::size_t size = constants_.bytes.size();
  for (std::size_t at = 0; at + sizeof(Place) <= size; at += kWordBytes) {
    if (at % kBytesOfTurn == 0 && !image_.may_go_on())
      return {};
    if (value_at<std::uint32_t>(constants_.bytes, at) != 0)
      continue;
    for (const std::size_t stride : kStrides)
      if (auto places = places_at(at, stride); places.size() >= kFewestBuiltins)
        return places;
  }
  return {};
}

std::optional<std::string> EmbeddedV8::name_at(std::uint64_t svma) const {
  constexpr std::size_t kMostLetters = 200;
  if (svma == 0)
    return std::string();
  if (svma < constants_.svma || svma - constants_.svma >= constants_.bytes.size())
    return std::nullopt;
  const std::string_view rest = text().substr(svma - constants_.svma, kMostLetters);
  const std::string_view name = rest.substr(0, rest.find('\0'));
  return !name.empty() && name.size() < rest.size() && std::ranges::all_of(name, is_of_name)
             ? std::optional(std::string(name))
             : std::nullopt;
}

/// Returns nothing if a word of the table does not lead to a name.
std::vector<std::string> EmbeddedV8::names_at(Bytes table, std::size_t count) const {
  constexpr std::size_t kEntryBytes = 24;
  std::vector<std::string> names;
  if (table.size() / kEntryBytes < count)
    return names;
  for (std::size_t i = 0; i < count; ++i) {
    auto name = name_at(value_at<std::uint64_t>(table, i * kEntryBytes));
    if (!name || !image_.may_go_on())
      return {};
    names.push_back(*std::move(name));
  }
  if (std::ranges::find(names, kNeededName) == names.end())
    names.clear();
  return names;
}

/// Finds V8's table of the names of its builtins.  A program that can be loaded anywhere has it in
/// data that is relocated; GNU ld also writes its words there.  If V8 completes the table at run
/// time, which may be so since V8 13, builtins in C++ have no names in the file.
std::vector<std::string> EmbeddedV8::names(std::size_t count) const {
  const std::string wanted = '\0' + std::string(kFirstName) + '\0';
  const std::size_t first = text().find(wanted);
  if (first == std::string_view::npos)
    return {};
  const std::uint64_t svma = constants_.svma + first + 1;
  for (const char* const name : {".rodata", ".data.rel.ro", ".data"}) {
    const auto section = image_.section_bytes(name);
    const Bytes words = section ? Bytes(section->bytes) : Bytes();
    for (std::size_t at = 0; at + kWordBytes <= words.size(); at += kWordBytes) {
      if (at % kBytesOfTurn == 0 && !image_.may_go_on())
        return {};
      if (value_at<std::uint64_t>(words, at) != svma)
        continue;
      if (auto found = names_at(words.subspan(at), count); !found.empty())
        return found;
    }
  }
  return {};
}

/// Returns the svma of the block with builtins at these places.
std::optional<std::uint64_t> EmbeddedV8::block_of(const std::vector<Place>& places) const {
  constexpr std::uint64_t kAlignment = 32, kMostBytes = std::uint64_t{64} << 20U;
  constexpr std::byte kFilling{0xcc};
  const std::uint64_t bytes = std::uint64_t{places.back().offset} + places.back().bytes;
  std::optional<std::uint64_t> found;
  for_each_hole(image_, [&](std::uint64_t start, std::uint64_t end) {
    start += (kAlignment - start % kAlignment) % kAlignment;
    if (end < start || end - start < bytes)
      return false;
    const auto code = image_.loaded_bytes(start, std::min(end - start, kMostBytes));
    if (!code)
      return false;
    const auto is_filled = [&](std::uint64_t at) { return code->bytes[at] == kFilling; };
    for (std::uint64_t at = 0; at + bytes <= code->bytes.size(); at += kAlignment) {
      std::size_t i = 1;
      while (i < places.size() && image_.may_go_on() &&
             is_filled(at + places[i - 1].offset + places[i - 1].bytes) &&
             is_filled(at + places[i].offset - 1))
        ++i;
      if (i == places.size()) {
        found = start + at;
        return true;
      }
    }
    return false;
  });
  return found;
}

std::vector<EmbeddedV8::Builtin> EmbeddedV8::builtins() const {
  const auto all = places();
  auto known = all.empty() ? std::vector<std::string>() : names(all.size());
  const auto block = known.empty() ? std::nullopt : block_of(all);
  std::vector<Builtin> builtins;
  if (!block)
    return builtins;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t start = *block + all[i].offset;
    builtins.push_back({start, start + all[i].bytes, std::move(known[i])});
  }
  return builtins;
}

}  // namespace pe::languages
