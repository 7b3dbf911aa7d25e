// Finds the kind of a frame's code by its name: the second part of colors.h.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <iterator>

#include "painting/svg/colors.h"

namespace pe::painting {

bool has_kind_mark(std::string_view name) {
  constexpr std::string_view kMarks = "kijlst";
  return without_mark(name).size() < name.size() &&
         kMarks.find(name[name.size() - 2]) != std::string_view::npos;
}

std::string_view without_mark(std::string_view name) {
  constexpr std::size_t kMarkSize = 4;  // _[k]
  if (name.size() < kMarkSize || name[name.size() - 4] != '_' || name[name.size() - 3] != '[' ||
      name.back() != ']')
    return name;
  constexpr std::string_view kMarks = "kijlstwo";
  if (kMarks.find(name[name.size() - 2]) == std::string_view::npos)
    return name;
  return name.substr(0, name.size() - kMarkSize);
}

bool is_tail_call(std::string_view name) {
  return name.ends_with("_[t]") && without_mark(name).size() < name.size();
}

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

bool is_unresolved(std::string_view name) {
  if (name.empty())  // the root of all stacks is not code
    return true;
  if (name.starts_with('[') && name.ends_with(']'))
    return true;
  if (!is_hex(name.substr(name.size() - 1)))  // most names, so the search below is rare
    return false;
  // "0x7f12", "libfoo.so+0x7f12"
  if (const auto x = name.rfind("0x"); x != name.npos)
    return (x == 0 || name[x - 1] == '+') && is_hex(name.substr(x + 2));
  // An address as perf script prints it.  Shorter ones may be words ("add", "face").
  constexpr std::size_t kAddressDigits = 8;
  return name.size() >= kAddressDigits && is_hex(name);
}

bool is_java_class(std::string_view name) {
  if (name.starts_with('L'))
    name.remove_prefix(1);
  constexpr std::string_view kPackages[] = {"java/", "javax/", "jdk/", "net/",
                                            "org/",  "com/",   "io/",  "sun/"};
  return std::ranges::any_of(kPackages, [&](auto package) { return name.starts_with(package); });
}

Palette java_hue(std::string_view name) {
  if (name.ends_with("_[j]"))
    return Palette::kGreen;
  if (name.ends_with("_[i]"))
    return Palette::kAqua;
  if (is_java_class(name) || contains(name, ":::"))
    return Palette::kGreen;
  if (contains(name, "::"))
    return Palette::kYellow;
  return name.ends_with("_[k]") ? Palette::kOrange : Palette::kRed;
}

Palette js_hue(std::string_view name) {
  if (name.ends_with("_[j]"))
    return contains(name, "/") ? Palette::kGreen : Palette::kAqua;
  if (contains(name, "::"))
    return Palette::kYellow;
  if (const auto slash = name.find('/');
      slash != std::string_view::npos && contains(name.substr(slash + 1), ".js"))
    return Palette::kGreen;
  if (contains(name, ":"))
    return Palette::kAqua;
  if (name == " ")
    return Palette::kGreen;
  return contains(name, "_[k]") ? Palette::kOrange : Palette::kRed;
}

Palette perl_hue(std::string_view name) {
  if (contains(name, "::"))
    return Palette::kYellow;
  if (contains(name, "Perl") || contains(name, ".pl"))
    return Palette::kGreen;
  return name.ends_with("_[k]") ? Palette::kOrange : Palette::kRed;
}

NameKind kind_of_wait(std::string_view text) {
  const auto* const found =
      std::ranges::find(kKindsOfWaits, text, [](const auto& entry) { return entry.second; });
  return found == std::end(kKindsOfWaits) ? NameKind::kWait : found->first;
}

}  // namespace

NameKind kind_of_name(std::string_view name) {
  const std::string_view shown = without_mark(name);
  if (shown.starts_with('[') && name.ends_with("]_[o]"))
    return kind_of_wait(shown.substr(1, shown.size() - 2));
  if (is_unresolved(shown))
    return NameKind::kUnresolved;
  if (shown.size() == name.size())
    return NameKind::kUser;
  switch (name[name.size() - 2]) {
    case 'k':
      return NameKind::kKernel;
    case 'j':
      return NameKind::kJit;
    case 'i':
      return NameKind::kInlined;
    case 'l':
      return NameKind::kLibrary;
    case 's':
      return NameKind::kScript;
    default:
      return NameKind::kUser;
  }
}

Palette hue_of_name(Palette palette, std::string_view name) {
  switch (palette) {
    case Palette::kJava:
      return java_hue(name);
    case Palette::kJs:
      return js_hue(name);
    case Palette::kPerl:
      return perl_hue(name);
    case Palette::kWakeup:
      return Palette::kAqua;
    case Palette::kChain:
      return contains(name, "_[w]") ? Palette::kAqua : Palette::kBlue;
    case Palette::kHotCold:
      return name.ends_with("_[o]") ? Palette::kCold : Palette::kWarm;
    default:
      return palette;
  }
}

}  // namespace pe::painting
