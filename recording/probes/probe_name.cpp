// SPDX-License-Identifier: MIT
#include "recording/probes/probe_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/name_parts.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace pe::recording {
namespace {

struct Word {
  std::string_view text;
  ProbeKind kind;
};
constexpr std::array kWords{Word{"uprobe", ProbeKind::kUprobe},
                            Word{"uretprobe", ProbeKind::kUretprobe},
                            Word{"usdt", ProbeKind::kUsdt}, Word{"kprobe", ProbeKind::kKprobe},
                            Word{"kretprobe", ProbeKind::kKretprobe}};

[[noreturn]] void refuse_probe(const std::string& text, std::string_view problem) {
  throw UsageError(fmt::format("--event: {}: {}", in_quotes(text), problem));
}

const Word* find_word(std::string_view text) {
  const auto* found = std::find_if(kWords.begin(), kWords.end(), [&](const Word& word) {
    return text.starts_with(word.text) && text.substr(word.text.size()).starts_with(':');
  });
  return found == kWords.end() ? nullptr : found;
}

/// Returns the first colon that is not part of "::"; npos if there is none.
std::size_t find_single_colon(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != ':')
      continue;
    if (at + 1 == text.size() || text[at + 1] != ':')
      return at;
    ++at;
  }
  return text.npos;
}

std::optional<std::uint64_t> parse_offset(std::string_view text) {
  constexpr int kHex = 16;
  if (text.starts_with("0x"))
    return parse_number<std::uint64_t>(text.substr(2), kHex);
  return parse_number<std::uint64_t>(text);
}

bool is_number(std::string_view text) { return parse_number<std::uint64_t>(text).has_value(); }

/// Reads "FUNC", "FUNC+OFF", "0x1234" or "FILE:LINE".
void read_place(const std::string& text, std::string_view place, ProbeName& probe) {
  if (place.empty())
    refuse_probe(text, "a function is missing: write uprobe:PATH:FUNC");
  const auto colon = find_single_colon(place);
  if (colon != place.npos && is_number(place.substr(colon + 1))) {
    probe.source_file = place.substr(0, colon);
    probe.line = parse_number<std::uint64_t>(place.substr(colon + 1)).value_or(0);
    if (probe.source_file.empty() || probe.line == 0)
      refuse_probe(text, "write a line as FILE:LINE");
    return;
  }
  if (place.starts_with("0x")) {
    probe.address = parse_offset(place);
    if (!probe.address)
      refuse_probe(text, fmt::format("not an address: {}", in_quotes(place)));
    return;
  }
  const auto plus = place.rfind('+');
  // "operator+" and "operator++" end in one.
  const auto offset = plus == place.npos ? std::nullopt : parse_offset(place.substr(plus + 1));
  if (offset && plus > 0) {
    probe.offset = *offset;
    place = place.substr(0, plus);
  }
  probe.function = place;
}

void read_usdt(const std::string& text, std::string_view rest, ProbeName& probe) {
  const auto last = rest.rfind(':');
  if (last == rest.npos || last + 1 == rest.size())
    refuse_probe(text, "write usdt:PATH:PROVIDER:NAME");
  probe.function = rest.substr(last + 1);
  rest = rest.substr(0, last);
  const auto colon = rest.rfind(':');
  const bool is_path = rest.find('/') != rest.npos || rest.find(".so") != rest.npos;
  if (colon == rest.npos && is_path) {  // "usdt:PATH:NAME"
    probe.path = rest;
    return;
  }
  probe.path = colon == rest.npos ? "" : rest.substr(0, colon);
  probe.provider = colon == rest.npos ? rest : rest.substr(colon + 1);
}

/// Does the path end at `colon`?  "file.c:12" without a path is a line.
bool is_path_end(std::string_view rest, std::size_t colon) {
  return colon != rest.npos && !is_number(rest.substr(colon + 1));
}

}  // namespace

bool is_probe(std::string_view text) { return find_word(text) != nullptr; }

std::string_view word_of(ProbeKind kind) {
  return std::find_if(kWords.begin(), kWords.end(), [&](const Word& w) { return w.kind == kind; })
      ->text;
}

ProbeName parse_probe(const std::string& text) {
  const Word* word = find_word(text);
  if (word == nullptr)
    refuse_probe(text, "not a probe");
  ProbeName probe{.kind = word->kind};
  std::string_view rest = std::string_view(text).substr(word->text.size() + 1);
  if (probe.kind == ProbeKind::kUsdt) {
    read_usdt(text, rest, probe);
    return probe;
  }
  if (const auto colon = find_single_colon(rest);
      !probe.is_of_kernel() && is_path_end(rest, colon)) {
    probe.path = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
  }
  read_place(text, rest, probe);
  if (probe.is_of_kernel() && (!probe.source_file.empty() || is_pattern(probe.function)))
    refuse_probe(text, "in the kernel, name one function");
  if (probe.is_return() && (probe.offset != 0 || probe.address || probe.line != 0))
    refuse_probe(text, "a return has no offset, address or line: name the function");
  return probe;
}

std::size_t length_of_probe(std::string_view list) {
  NameParts parts(list);
  std::size_t at = 0;
  while (at < list.size() && list[at] != ',')
    at = parts.next(at);
  return at;
}

}  // namespace pe::recording
