// SPDX-License-Identifier: MIT
#include "base/cli/getopt_long.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/characters.h"

namespace pe {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return result;
}

/// Returns the text after "--", "-" or "+"; nullopt if `arg` is a file.
std::optional<std::string_view> option_body(std::string_view arg) {
  for (const std::string_view start : {"--", "-", "+"})
    if (arg.starts_with(start))
      return arg.size() > start.size() ? std::optional(arg.substr(start.size())) : std::nullopt;
  return std::nullopt;
}

/// Removes digits, and the '_' that perl allows among them, from the front.  Returns false if there
/// was no digit.
bool skip_digits(std::string_view& text) {
  const auto end =
      std::find_if_not(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '_'; });
  const auto length = static_cast<std::size_t>(end - text.begin());
  const bool is_any = std::any_of(text.begin(), end, is_digit);
  text.remove_prefix(length);
  return is_any;
}

bool is_number(std::string_view text, bool with_fraction) {
  if (text.starts_with('+') || text.starts_with('-'))
    text.remove_prefix(1);
  const bool has_whole = skip_digits(text);
  if (!with_fraction)
    return has_whole && text.empty();
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!skip_digits(text))
      return false;
  } else if (!has_whole) {
    return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-'))
      text.remove_prefix(1);
    if (!skip_digits(text))
      return false;
  }
  return text.empty();
}

/// Rewrites numbers in perl's form, "1_000" and "+5", as "1000" and "5".
std::string plain_number(std::string_view text) {
  if (text.starts_with('+'))
    text.remove_prefix(1);
  std::string plain(text);
  std::erase(plain, '_');
  return plain;
}

/// A way to spell an option.
struct Spelling {
  std::string name;
  std::size_t option;  ///< its index
  bool is_negated = false;

  [[nodiscard]] bool means_the_same_as(const Spelling& other) const {
    return option == other.option && is_negated == other.is_negated;
  }
};

class Rewriter {
 public:
  explicit Rewriter(const PerlName& script) : script_(script), given_(script.options.size()) {
    for (std::size_t i = 0; i < script.options.size(); ++i) {
      const std::string name = lower(script.options[i].name);
      spellings_.push_back({name, i});
      if (script.options[i].takes != Takes::kNegation)
        continue;
      spellings_.push_back({"no-" + name, i, true});
      spellings_.push_back({"no" + name, i, true});
    }
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
    const Spelling* spelling = find(name);
    if (spelling == nullptr)
      return;
    const PerlOption& option = script_.options[spelling->option];
    std::optional<std::string_view> value;
    if (equals != kNone)
      value = body.substr(equals + 1);
    switch (option.takes) {
      case Takes::kText:
      case Takes::kInteger:
      case Takes::kNumber:
        take_value(*spelling, value);
        break;
      case Takes::kNothing:
      case Takes::kNegation:
      case Takes::kUsage:
        if (value)
          complain(spelling->name, "takes no value");
        else if (option.takes == Takes::kUsage)
          result_.wants_usage = true;
        else
          given_[spelling->option] = {
              fmt::format("--{}{}", spelling->is_negated ? "no-" : "", our_name(option))};
        break;
    }
  }

  void take_value(const Spelling& spelling, std::optional<std::string_view> value) {
    if (!value && !left_.empty())
      value = take_arg();  // even if it looks like an option
    else if (!value || value->empty())
      return complain(spelling.name, "needs a value");
    const PerlOption& option = script_.options[spelling.option];
    if (option.empty_is_none && value->empty())
      given_[spelling.option].clear();
    else if (const auto checked = check_value(spelling, *value))
      given_[spelling.option] = as_words(our_name(option), *checked);
  }

  std::optional<std::string> check_value(const Spelling& spelling, std::string_view value) {
    const Takes takes = script_.options[spelling.option].takes;
    if (takes == Takes::kText)
      return std::string(value);
    if (is_number(value, takes == Takes::kNumber))
      return plain_number(value);
    complain(spelling.name,
             fmt::format("not {}: '{}'", takes == Takes::kNumber ? "a number" : "a whole number",
                         value));
    return std::nullopt;
  }

  /// program_options accepts no empty value after "=", and no next argument that looks like one of
  /// its options.
  static std::vector<std::string> as_words(std::string_view name, const std::string& value) {
    if (value.empty())
      return {fmt::format("--{}", name), ""};
    return {fmt::format("--{}={}", name, value)};
  }

  /// Returns null after it has recorded a problem.
  const Spelling* find(std::string_view typed) {
    const std::string name = lower(typed);
    std::vector<const Spelling*> found;
    for (const Spelling& spelling : spellings_) {
      if (spelling.name == name)
        return &spelling;
      if (spelling.name.starts_with(name))
        found.push_back(&spelling);
    }
    if (found.empty()) {
      complain(typed, "no such option");
      return nullptr;
    }
    const bool is_one = std::all_of(found.begin(), found.end(), [&](const Spelling* other) {
      return other->means_the_same_as(*found.front());
    });
    if (is_one)
      return found.front();
    std::vector<std::string> names;
    names.reserve(found.size());
    for (const Spelling* spelling : found)
      names.push_back("--" + spelling->name);
    std::sort(names.begin(), names.end());
    complain(typed, fmt::format("ambiguous: {}", fmt::join(names, ", ")));
    return nullptr;
  }

  void complain(std::string_view option, std::string_view problem) {
    result_.problems.push_back(fmt::format("--{}: {}", option, problem));
  }

  const PerlName& script_;
  std::vector<Spelling> spellings_;
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
