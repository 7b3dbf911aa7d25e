// SPDX-License-Identifier: MIT
#include "flamesvg/name_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/characters.h"
#include "base/io/input.h"
#include "base/text.h"

namespace pe::flamesvg {
namespace {

constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz";

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// False for attributes that a browser runs as script or loads.
bool is_safe(std::string_view name, std::string_view value) {
  const std::string key = lower(name);
  const bool is_name =
      kLower.find(key.front()) != std::string_view::npos &&
      key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") == std::string::npos;
  if (!is_name || key.starts_with("on") || key.starts_with("xmlns"))
    return false;
  return key != "href" || is_safe_address(value);
}

/// Stores a field in `extra`.  False if the field must be ignored.
bool take_field(std::string_view key, std::string_view value, painting::FrameExtra& extra) {
  if (key == "title") {
    extra.title = value;
  } else if (key == "id" || key == "class") {
    if (key == "id" && painting::is_page_id(value))
      return false;
    extra.group.push_back({std::string(key), std::string(value)});
  } else if (key == "href" || key == "target") {
    if (key == "href" && !is_safe_address(value))
      return false;
    extra.link.push_back({std::string(key), std::string(value)});
  } else if (key == "g_extra" || key == "a_extra") {
    auto attributes = parse_attributes(value);
    const auto is_page_id = [](const painting::Attribute& a) {
      return a.name == "id" && painting::is_page_id(a.value);
    };
    if (!attributes || std::any_of(attributes->begin(), attributes->end(), is_page_id))
      return false;
    auto& all = key == "g_extra" ? extra.group : extra.link;
    all.insert(all.end(), attributes->begin(), attributes->end());
  } else {
    return false;
  }
  return true;
}

/// Removes duplicate attributes of an element, the page's own attributes, and links without href.
void make_sound(painting::FrameExtra& extra) {
  for (auto* list : {&extra.group, &extra.link}) {
    std::vector<painting::Attribute> kept;
    for (painting::Attribute& a : *list) {
      const bool is_new =
          std::none_of(kept.begin(), kept.end(), [&](const auto& k) { return k.name == a.name; });
      if (is_new && a.name != "data-at" && a.name != "data-name")
        kept.push_back(std::move(a));
    }
    *list = std::move(kept);
  }
  const auto has = [&extra](std::string_view name) {
    return std::any_of(extra.link.begin(), extra.link.end(),
                       [name](const auto& a) { return a.name == name; });
  };
  if (!has("href"))
    extra.link.clear();
  else if (!has("target"))  // not into a frame of a page that embeds the flame graph
    extra.link.push_back({"target", "_top"});
}

}  // namespace

bool is_safe_address(std::string_view address) {
  const auto end = address.find_first_of(":/?#");
  if (end == std::string_view::npos || address[end] != ':')
    return true;
  const std::string scheme = lower(address.substr(0, end));
  constexpr std::string_view kSchemes[] = {"http", "https", "ftp", "mailto", "file"};
  return std::find(std::begin(kSchemes), std::end(kSchemes), scheme) != std::end(kSchemes);
}

std::optional<std::vector<painting::Attribute>> parse_attributes(std::string_view text) {
  std::vector<painting::Attribute> attributes;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty())
      return attributes;
    const auto name = take_until(text, '=');
    if (!name || name->empty() || text.empty() || (text[0] != '"' && text[0] != '\''))
      return std::nullopt;
    const char quote = text[0];
    text.remove_prefix(1);
    const auto value = take_until(text, quote);
    // Our pages do not declare the prefix xlink and do not need it.
    const std::string_view plain = *name == "xlink:href" ? "href" : *name;
    if (!value || !is_safe(plain, *value))
      return std::nullopt;
    attributes.push_back({std::string(plain), std::string(*value)});
  }
}

NameAttributes NameAttributes::read(const std::string& path) {
  NameAttributes all;
  Input input = Input::open(path, -1);
  LineReader lines(input);
  while (const auto line = lines.next()) {
    std::string_view left = *line;
    const auto name = take_until(left, '\t');
    if (!name)
      continue;  // no fields
    painting::FrameExtra extra;
    while (!left.empty()) {
      const auto end = std::min(left.find('\t'), left.size());
      const std::string_view field = left.substr(0, end);
      left.remove_prefix(std::min(end + 1, left.size()));
      const auto equals = field.find('=');
      const bool is_taken = equals != std::string_view::npos &&
                            take_field(field.substr(0, equals), field.substr(equals + 1), extra);
      if (!is_taken && all.ignored_++ == 0)
        all.first_ignored_ = fmt::format("{}:{}: {}", path, lines.line_number(), in_quotes(field));
    }
    make_sound(extra);
    all.by_name_.insert_or_assign(std::string(*name), std::move(extra));
  }
  return all;
}

const painting::FrameExtra* NameAttributes::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &found->second;
}

}  // namespace pe::flamesvg
