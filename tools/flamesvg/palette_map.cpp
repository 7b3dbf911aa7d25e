// SPDX-License-Identifier: MIT
#include "flamesvg/palette_map.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "base/error.h"
#include "base/io/input.h"
#include "base/io/new_file.h"
#include "base/io/output.h"
#include "base/io/regular_file.h"
#include "base/parse_number.h"

namespace pe {
void replace_file(const std::string& path, std::string_view content, Outlives outlives) {
  NewFile file(path);
  FdOutput out(file.fd().get(), path);
  out.write(content);
  out.flush();
  if (outlives == Outlives::kMachine && ::fsync(file.fd().get()) != 0)
    throw_errno(path, errno);
  file.keep();
  if (outlives == Outlives::kMachine)
    file.sync_folder();
}

}  // namespace pe

namespace pe::flamesvg {
namespace {

std::string_view without_blanks(std::string_view text) {
  const auto begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

}  // namespace

std::optional<painting::Rgb> parse_rgb(std::string_view text) {
  constexpr std::string_view kBegin = "rgb(";
  if (!text.starts_with(kBegin) || !text.ends_with(')'))
    return std::nullopt;
  text = text.substr(kBegin.size(), text.size() - kBegin.size() - 1);
  std::array<std::uint8_t, 3> channels{};
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const auto comma = text.find(',');
    if ((comma == std::string_view::npos) != (i == 2))
      return std::nullopt;
    const auto value = parse_number<std::uint8_t>(without_blanks(text.substr(0, comma)));
    if (!value)
      return std::nullopt;
    channels[i] = *value;
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return painting::Rgb{channels[0], channels[1], channels[2]};
}

PaletteMap PaletteMap::read(const std::string& path) {
  PaletteMap map;
  const auto opened = open_regular(path);  // another user's pipe would block us
  if (const auto* failure = std::get_if<FileFailure>(&opened)) {
    if (*failure == FileFailure::kMissing)
      return map;
    throw Error(path + (*failure == FileFailure::kNotRegular ? ": not a regular file"
                                                             : ": cannot be read"));
  }
  Input input = Input::open(
      "-", std::get<RegularFile>(opened).fd.get());  // not opened again: the name may have changed
  LineReader lines(input);
  while (auto line = lines.next()) {
    if (line->ends_with('\r'))
      line->remove_suffix(1);
    const auto arrow = line->rfind("->");
    const auto color =
        arrow == std::string_view::npos ? std::nullopt : parse_rgb(line->substr(arrow + 2));
    if (color)
      map.colors_[std::string(line->substr(0, arrow))] = *color;
    else
      ++map.ignored_lines_;
  }
  return map;
}

void PaletteMap::write(const std::string& path) const {
  std::string text;
  for (const auto& [name, color] : colors_)
    fmt::format_to(std::back_inserter(text), "{}->rgb({},{},{})\n", name, color.r, color.g,
                   color.b);
  replace_file(path, text);
}

void PaletteMap::add(std::string_view name, painting::Rgb color) {
  if (!painting::separator_color(name))
    colors_.emplace(name, color);
}

std::optional<painting::Rgb> PaletteMap::find(std::string_view name) const {
  const auto found = painting::separator_color(name) ? colors_.end() : colors_.find(name);
  return found == colors_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace pe::flamesvg
