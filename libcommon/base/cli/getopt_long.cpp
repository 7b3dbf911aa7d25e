// SPDX-License-Identifier: MIT
#include "base/cli/getopt_long.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <charconv>
#include <optional>

#include "base/characters.h"

namespace pe {
namespace {

namespace po = boost::program_options;

/// Returns the text after "--", "-" or "+"; nullopt if `arg` is a file.
std::optional<std::string_view> option_body(std::string_view arg) {
  for (const std::string_view start : {"--", "-", "+"})
    if (arg.starts_with(start))
      return arg.size() > start.size() ? std::optional(arg.substr(start.size())) : std::nullopt;
  return std::nullopt;
}

/// Returns whether all of `text` is digits, one at least.
bool are_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// Accepts a decimal number: digits before or after the point, and maybe an exponent.
bool is_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const bool is_read = std::from_chars(text.data(), end, value).ptr == end;
  return is_read && !text.empty() && is_digit(text.back()) && text.find(".e") == kNone &&
         text.find(".E") == kNone;
}

/// Rewrites numbers in perl's form, "1_000" and "+5", as "1000" and "5".
std::string plain_number(std::string_view text) {
  if (text.starts_with('+'))
    text.remove_prefix(1);
  std::string plain(text);
  std::erase(plain, '_');
  return plain;
}

class Rewriter {
 public:
  explicit Rewriter(const PerlName& script) : script_(script), given_(script.options.size()) {
    for (const PerlOption& option : script.options)
      known_.add_options()(std::string(option.name).c_str(), "");
  }

  StrictArgs rewrite(std::span<const std::string> args) {
    left_ = args;
    std::vector<std::string> files;
    while (!left_.empty()) {
      const std::string& arg = take_arg();
      if (arg == "--")
        break;
      const auto body = option_body(arg);
      if (body)
        take_option(*body);
      else
        files.push_back(arg);
    }
    files.insert(files.end(), left_.begin(), left_.end());

    for (const auto& words : given_)
      result_.args.insert(result_.args.end(), words.begin(), words.end());
    result_.args.insert(result_.args.begin(), script_.extra_args.begin(), script_.extra_args.end());
    result_.args.emplace_back("--");
    result_.args.insert(result_.args.end(), files.begin(), files.end());
    return std::move(result_);
  }

 private:
  const std::string& take_arg() {
    const std::string& arg = left_.front();
    left_ = left_.subspan(1);
    return arg;
  }

  void take_option(std::string_view body) {
    const auto equals = body.find('=', 1);  // "=x" is a name
    const std::string_view name = body.substr(0, equals);
    const std::size_t number = find(name);
    if (number == kNone)
      return;
    const PerlOption& option = script_.options[number];
    std::optional<std::string_view> value;
    if (equals != kNone)
      value = body.substr(equals + 1);
    switch (option.takes) {
      case Takes::kText:
      case Takes::kInteger:
      case Takes::kNumber:
        take_value(number, value);
        break;
      case Takes::kNothing:
      case Takes::kUsage:
        if (value)
          complain(option.name, "takes no value");
        else if (option.takes == Takes::kUsage)
          result_.wants_usage = true;
        else
          given_[number] = {fmt::format("--{}", our_name(option))};
        break;
    }
  }

  void take_value(std::size_t number, std::optional<std::string_view> value) {
    const PerlOption& option = script_.options[number];
    if (!value && !left_.empty())
      value = take_arg();  // even if it looks like an option
    else if (!value || value->empty())
      return complain(option.name, "needs a value");
    if (option.empty_is_none && value->empty())
      given_[number].clear();
    else if (const auto checked = check_value(option, *value))
      given_[number] = as_words(our_name(option), *checked);
  }

  std::optional<std::string> check_value(const PerlOption& option, std::string_view value) {
    if (option.takes == Takes::kText)
      return std::string(value);
    const bool is_whole = option.takes == Takes::kInteger;
    const std::string plain = plain_number(value);
    const std::string_view digits = std::string_view(plain).substr(plain.starts_with('-') ? 1 : 0);
    if (is_whole ? are_digits(digits) : is_number(plain))
      return plain;
    complain(option.name,
             fmt::format("not {}: '{}'", is_whole ? "a whole number" : "a number", value));
    return std::nullopt;
  }

  /// program_options accepts no empty value after "=", and no next argument that looks like one of
  /// its options.
  static std::vector<std::string> as_words(std::string_view name, const std::string& value) {
    if (value.empty())
      return {fmt::format("--{}", name), ""};
    return {fmt::format("--{}={}", name, value)};
  }

  /// Returns the number of the option, or kNone after it has recorded a problem.
  std::size_t find(std::string_view typed) {
    constexpr bool kMayBeAbbreviated = true, kIgnoresCase = true;
    try {
      const auto* const found =
          known_.find_nothrow(std::string(typed), kMayBeAbbreviated, kIgnoresCase, kIgnoresCase);
      for (std::size_t i = 0; found != nullptr && i < script_.options.size(); ++i)
        if (known_.options()[i].get() == found)
          return i;
      complain(typed, "no such option");
    } catch (const po::ambiguous_option& e) {
      std::vector<std::string> names = e.alternatives();
      std::sort(names.begin(), names.end());
      complain(typed, fmt::format("ambiguous: --{}", fmt::join(names, ", --")));
    }
    return kNone;
  }

  void complain(std::string_view option, std::string_view problem) {
    result_.problems.push_back(fmt::format("--{}: {}", option, problem));
  }

  const PerlName& script_;
  po::options_description known_;
  std::span<const std::string> left_;            ///< arguments not yet parsed
  std::vector<std::vector<std::string>> given_;  ///< per option: its strict form, if it was given
  StrictArgs result_;
};

/// Rewrites "-ns FILE...": each letter is an option without a value.  No argument after the first
/// file is an option.
StrictArgs letters_to_strict(const PerlName& script, std::span<const std::string> args) {
  StrictArgs strict;
  strict.args.assign(script.extra_args.begin(), script.extra_args.end());
  for (; !args.empty() && args[0].size() > 1 && args[0][0] == '-' && args[0] != "--";
       args = args.subspan(1)) {
    for (const char letter : args[0].substr(1)) {
      const auto* const option = std::find_if(
          script.options.data(), script.options.data() + script.options.size(),
          [letter](const PerlOption& o) { return o.name == std::string_view(&letter, 1); });
      if (option == script.options.data() + script.options.size())
        strict.problems.push_back(fmt::format("-{}: no such option", letter));
      else if (option->takes == Takes::kUsage)
        strict.wants_usage = true;
      else
        strict.args.push_back(fmt::format("--{}", our_name(*option)));
    }
  }
  if (!args.empty() && args[0] == "--")
    args = args.subspan(1);
  strict.args.emplace_back("--");
  strict.args.insert(strict.args.end(), args.begin(), args.end());
  return strict;
}

}  // namespace

std::string_view our_name(const PerlOption& option) {
  return option.as.empty() ? option.name : option.as;
}

StrictArgs to_strict(const PerlName& script, std::span<const std::string> args) {
  if (script.grammar == PerlGrammar::kLetters)
    return letters_to_strict(script, args);
  if (!script.options.empty())
    return Rewriter(script).rewrite(args);
  StrictArgs files_only;
  files_only.args.assign(script.extra_args.begin(), script.extra_args.end());
  files_only.args.emplace_back("--");
  files_only.args.insert(files_only.args.end(), args.begin(), args.end());
  return files_only;
}

}  // namespace pe
