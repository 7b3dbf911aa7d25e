// SPDX-License-Identifier: MIT
#include "profile-push/series.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/characters.h"
#include "base/utf8.h"

namespace pe::push {
namespace {

constexpr std::size_t kMostKeyBytes = 1024;
constexpr std::size_t kMostValueBytes = 2048;

bool is_app_character(char c) { return is_word(c) || c == '-' || c == '.' || c == '/'; }

bool is_label_name(std::string_view key) {
  return !key.empty() && key.size() <= kMostKeyBytes && !is_digit(key[0]) && key[0] != '.' &&
         key != "__name__" &&
         std::all_of(key.begin(), key.end(), [](char c) { return is_word(c) || c == '.'; });
}

bool is_label_value(std::string_view value) {
  const auto is_bad = [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == ',' || c == '}';
  };
  return !value.empty() && value.size() <= kMostValueBytes && is_valid_utf8(value) &&
         std::none_of(value.begin(), value.end(), is_bad);
}

}  // namespace

bool is_app_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_app_character);
}

std::optional<std::pair<std::string, std::string>> parse_label(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == kNone)
    return std::nullopt;
  const std::string_view key = text.substr(0, equals);
  const std::string_view value = text.substr(equals + 1);
  if (!is_label_name(key) || !is_label_value(value))
    return std::nullopt;
  return std::pair(std::string(key), std::string(value));
}

std::string plain_value(std::string_view text) {
  std::string value(text);
  const auto is_other = [](char c) { return !is_app_character(c); };
  std::replace_if(value.begin(), value.end(), is_other, '_');
  return value;
}

std::optional<std::string> series_text(std::string_view app_name, const Labels& labels) {
  std::string text = fmt::format("{}{{", app_name);
  for (const auto& [key, value] : labels)
    text += fmt::format("{}{}={}", text.back() == '{' ? "" : ",", key, value);
  text += '}';
  return text.size() <= kMostSeriesBytes ? std::optional(text) : std::nullopt;
}

}  // namespace pe::push
