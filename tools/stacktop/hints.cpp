// SPDX-License-Identifier: MIT
#include "stacktop/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/characters.h"
#include "base/error.h"
#include "base/io/regular_file.h"
#include "base/text.h"
#include "painting/svg/colors.h"

namespace pe::stacktop {

/// Parses one file, line by line.
class Hints::FileParser {
 public:
  FileParser(Hints& hints, std::string_view name) : hints_(hints), name_(name) {}

  void parse(std::string_view text) {
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      ++number_;
      take(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    finish_rule();
  }

 private:
  void take(std::string_view line) {
    while (!line.empty() && is_space(line.back()))
      line.remove_suffix(1);
    if (line.empty() || line.front() == '#')
      return;
    if (is_blank(line.front()))
      take_text(line);
    else
      take_expression(line);
  }

  void take_expression(std::string_view line) {
    if (!rule_.text.empty())
      finish_rule();
    if (first_expression_.empty()) {
      first_expression_ = line;
      first_number_ = number_;
    }
    if (hints_.expressions_ == kMostExpressions || hints_.instructions_ > kMostInstructions) {
      ignore(number_, "too many expressions before it", line);
      return;
    }
    ++hints_.expressions_;
    std::string why;
    if (auto expression = folded::Expression::parse(line, why))
      take_parsed(std::move(*expression));
    else
      ignore(number_, "not a regular expression", line);
  }

  void take_parsed(folded::Expression expression) {
    hints_.instructions_ += expression.size();
    rule_.expressions.push_back(std::move(expression));
  }

  void take_text(std::string_view line) {
    line.remove_prefix(line.find_first_not_of(" \t"));
    if (first_expression_.empty()) {
      ignore(number_, "no expression above it", line);
      return;
    }
    if (!rule_.text.empty())
      rule_.text += ' ';
    rule_.text += line;
  }

  void finish_rule() {
    if (rule_.text.empty() && !first_expression_.empty())
      ignore(first_number_, "no text below it", first_expression_);
    else if (!rule_.expressions.empty())
      hints_.hints_.push_back(std::move(rule_));
    rule_ = {};
    first_expression_ = {};
  }

  void ignore(std::uint64_t number, std::string_view why, std::string_view line) {
    if (hints_.ignored_++ == 0)
      hints_.first_ignored_ = fmt::format("{}:{}: {}: {}", name_, number, why, in_quotes(line));
  }

  Hints& hints_;
  std::string_view name_;
  std::uint64_t number_ = 0;
  Hint rule_;                          ///< the current rule
  std::string_view first_expression_;  ///< of rule_, even if invalid; empty if it has none
  std::uint64_t first_number_ = 0;
};

void Hints::add(std::string_view text, std::string_view name) {
  FileParser(*this, name).parse(text);
}

std::size_t Hints::find(std::string_view function) const {
  const std::string_view name = painting::without_mark(function);
  const auto found = std::find_if(hints_.begin(), hints_.end(), [name](const Hint& hint) {
    return std::any_of(
        hint.expressions.begin(), hint.expressions.end(),
        [name](const folded::Expression& expression) { return expression.matches(name); });
  });
  return static_cast<std::size_t>(found - hints_.begin());
}

namespace {

constexpr std::uint64_t kLargestFileBytes = 1UL << 20;

/// Returns the text of a regular file; nullopt if it does not exist.  Throws Error if it cannot be
/// read.
std::optional<std::string> read_if_there(const std::string& path) {
  const auto opened = open_regular(path);
  if (const auto* failure = std::get_if<FileFailure>(&opened)) {
    switch (*failure) {
      case FileFailure::kMissing:
        return std::nullopt;
      case FileFailure::kPermission:
        throw_errno(path, EACCES);
      case FileFailure::kNotRegular:
        throw Error(fmt::format("{}: not a regular file", path));
      case FileFailure::kUnreadable:
        throw_errno(path, EIO);
    }
  }
  const auto& file = std::get<RegularFile>(opened);
  if (file.size_bytes > kLargestFileBytes)
    throw Error(fmt::format("{}: larger than {} bytes", path, kLargestFileBytes));
  std::string text(file.size_bytes, '\0');
  text.resize(read_at(file.fd, 0, std::as_writable_bytes(std::span(text))));
  return text;
}

std::string users_file() {
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder != nullptr && folder[0] == '/')
    return fmt::format("{}/stackpipe/hints", folder);
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return fmt::format("{}/.config/stackpipe/hints", home);
  return {};
}

/// Returns the file relative to this program, so that an installation can be moved, or used before
/// it is installed.  Otherwise returns the configured path.
std::string installed_file() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside =
      (self.parent_path().parent_path() / "share" / "stackpipe" / "hints").lexically_normal();
  if (!error && std::filesystem::exists(beside, error))
    return beside.string();
  return PE_DATADIR "/stackpipe/hints";
}

}  // namespace

Hints load_hints(std::span<const std::string> files) {
  Hints hints;
  for (const std::string& path : files) {
    const auto text = read_if_there(path);
    if (!text)
      throw_errno(path, ENOENT);
    hints.add(*text, path);
  }
  for (const std::string& path : {users_file(), installed_file()}) {
    if (path.empty())
      continue;
    if (const auto text = read_if_there(path))
      hints.add(*text, path);
  }
  return hints;
}

}  // namespace pe::stacktop
