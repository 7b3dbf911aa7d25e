// SPDX-License-Identifier: MIT
#include "profile-push/counts.h"

#include <fmt/format.h>

#include <array>

#include "base/parse_number.h"
#include "base/take_until.h"

namespace pe::push {
namespace {

struct CountName {
  std::string_view name;
  Counts::Field count;
  std::string_view loss;  ///< as messages call it; empty: it is none
};

constexpr std::array<CountName, 4> kCounts = {{
    {"sent", &Counts::sent, ""},
    {"dropped", &Counts::dropped, "dropped as the spool was full"},
    {"refused", &Counts::refused, "refused by the server"},
    {"damaged", &Counts::damaged, "half-written"},
}};

}  // namespace

void Counts::add(const Counts& more) {
  sent += more.sent;
  dropped += more.dropped;
  refused += more.refused;
  damaged += more.damaged;
}

Counts Counts::since(const Counts& before) const {
  Counts difference;
  for (const CountName& one : kCounts)  // somebody may have emptied the file
    if (this->*one.count > before.*one.count)
      difference.*one.count = this->*one.count - before.*one.count;
  return difference;
}

std::string counts_text(const Counts& counts) {
  std::string text;
  for (const CountName& one : kCounts)
    text += fmt::format("{} {}\n", one.name, counts.*one.count);
  return text;
}

Counts parse_counts(std::string_view text) {
  Counts counts;
  while (const auto line = take_until(text, '\n')) {
    std::string_view number = *line;
    const auto name = take_until(number, ' ');
    for (const CountName& one : kCounts)
      if (name == one.name)
        counts.*one.count = parse_number<std::uint64_t>(number).value_or(0);
  }
  return counts;
}

std::string losses_text(const Counts& counts) {
  std::string text;
  for (const CountName& one : kCounts)
    if (!one.loss.empty() && counts.*one.count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts.*one.count, one.loss);
  return text;
}

}  // namespace pe::push
