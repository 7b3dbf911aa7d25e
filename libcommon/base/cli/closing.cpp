// SPDX-License-Identifier: MIT
#include "base/cli/closing.h"

#include <fmt/format.h>

#include "base/text.h"

namespace pe {

void Closing::doubt(std::string_view what, std::string_view fix) {
  doubts.push_back(fmt::format("{}: {}", what, fix));
}

void Closing::detail(std::string_view what) {
  if (!what.empty())
    details.emplace_back(what);
}

void Closing::figure(std::string_view name, std::string_view value) {
  if (!value.empty())
    figures.push_back({name, std::string(value)});
}

void Closing::figure(std::string_view name, std::uint64_t value) {
  figure(name, fmt::to_string(value));
}

void Closing::fact(std::string_view name, std::string_view text) {
  figures.push_back({name, std::string(text), true});
}

void Closing::named_frames(std::string_view runtime, std::uint64_t frames,
                           std::uint64_t unreadable) {
  if (frames == 0)
    return;
  detail(fmt::format("{} of {}, {} unreadable", plural(frames, "frame"), runtime, unreadable));
  constexpr std::uint64_t kDoubted = 20;  // one of so many
  if (unreadable * kDoubted > frames)
    doubt(
        fmt::format("{:.0f} % of the frames of {} are unreadable",
                    100.0 * static_cast<double>(unreadable) / static_cast<double>(frames), runtime),
        "their functions were gone, or moved, before their names were read");
}

void Closing::add(const Closing& other) {
  doubts.insert(doubts.end(), other.doubts.begin(), other.doubts.end());
  details.insert(details.end(), other.details.begin(), other.details.end());
}

}  // namespace pe
