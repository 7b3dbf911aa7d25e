// SPDX-License-Identifier: MIT
#include "pe-symbolize/simplify_name.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/characters.h"
#include "base/name_parts.h"

namespace pe::symbolize {
namespace {

constexpr std::string_view kStd = "std::";

/// Whether identifiers may contain this byte, also those of other scripts.
bool is_of_a_name(char c) {
  return is_word(c) || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

/// Namespaces that distinguish the library's versions.
bool is_inline_namespace(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {"__cxx11", "__1",       "__2", "__ndk1",
                                                      "__debug", "__cxx1998", "_V2", "__8"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

struct ShortName {
  std::string_view of, name;
};
/// Short names of std::basic_string and similar templates for char; those for wchar_t start with a
/// 'w'.
constexpr std::array kShortNames = {
    ShortName{"std::basic_string", "string"},
    ShortName{"std::basic_string_view", "string_view"},
    ShortName{"std::basic_ostream", "ostream"},
    ShortName{"std::basic_istream", "istream"},
    ShortName{"std::basic_iostream", "iostream"},
    ShortName{"std::basic_ios", "ios"},
    ShortName{"std::basic_streambuf", "streambuf"},
    ShortName{"std::basic_filebuf", "filebuf"},
    ShortName{"std::basic_stringbuf", "stringbuf"},
    ShortName{"std::basic_ofstream", "ofstream"},
    ShortName{"std::basic_ifstream", "ifstream"},
    ShortName{"std::basic_fstream", "fstream"},
    ShortName{"std::basic_ostringstream", "ostringstream"},
    ShortName{"std::basic_istringstream", "istringstream"},
    ShortName{"std::basic_stringstream", "stringstream"},
    ShortName{"std::basic_regex", "regex"},
};

/// Returns how many arguments of a template of the library have no default; 0: it has none to omit.
/// Templates that users do not write, such as std::_Hashtable, stay as they are.
std::size_t required_arguments(std::string_view name) {
  constexpr std::array<std::string_view, 4> kOfTwo = {"map", "multimap", "unordered_map",
                                                      "unordered_multimap"};
  constexpr std::array<std::string_view, 15> kOfOne = {"vector",
                                                       "list",
                                                       "forward_list",
                                                       "deque",
                                                       "set",
                                                       "multiset",
                                                       "unique_ptr",
                                                       "stack",
                                                       "unordered_set",
                                                       "unordered_multiset",
                                                       "queue",
                                                       "match_results",
                                                       "priority_queue",
                                                       "istreambuf_iterator",
                                                       "ostreambuf_iterator"};
  if (!name.starts_with(kStd))
    return 0;
  name.remove_prefix(kStd.size());
  if (std::find(kOfTwo.begin(), kOfTwo.end(), name) != kOfTwo.end())
    return 2;
  const bool is_of_one =
      name.starts_with("basic_") || std::find(kOfOne.begin(), kOfOne.end(), name) != kOfOne.end();
  return is_of_one ? 1 : 0;
}

/// Whether an argument is the same as the default: "std::less<K>" after K.
bool is_default(std::string_view argument, std::string_view first, std::string_view second) {
  constexpr std::array<std::string_view, 9> kTemplates = {
      "allocator", "char_traits", "default_delete", "deque", "equal_to",
      "hash",      "less",        "regex_traits",   "vector"};
  if (!argument.starts_with(kStd) || !argument.ends_with('>'))
    return false;
  argument.remove_prefix(kStd.size());
  argument.remove_suffix(1);
  const std::size_t bracket = argument.find('<');
  const std::string_view name = argument.substr(0, bracket);
  if (bracket == std::string_view::npos ||
      std::find(kTemplates.begin(), kTemplates.end(), name) == kTemplates.end())
    return false;
  const std::string_view of = argument.substr(bracket + 1);
  if (of == first)
    return true;
  // The elements of a map are pairs.
  std::string pair("std::pair<");
  pair.append(first).append(" const, ").append(second).append(">");
  return name == "allocator" && (of == pair || of == "std::pair<...>");
}

/// Rewrites a name from left to right.
class Simplifier {
 public:
  explicit Simplifier(std::string_view name) : in_(name) { out_.reserve(name.size()); }

  /// Returns the result, or the name itself if its brackets do not pair.
  std::string run() {
    while (at_ < in_.size())
      if (!step())
        return std::string(in_);
    return open_.empty() ? std::move(out_) : std::string(in_);
  }

 private:
  struct Bracket {
    char open = 0;
    bool follows_name = false;
    std::size_t at = 0;              ///< in out_
    std::size_t first_argument = 0;  ///< in arguments_
  };

  [[nodiscard]] bool sees(std::string_view text) const {
    return in_.substr(at_, text.size()) == text;
  }
  [[nodiscard]] char next_but_one() const { return at_ + 1 < in_.size() ? in_[at_ + 1] : '\0'; }
  void copy(std::size_t bytes) {
    out_ += in_.substr(at_, bytes);
    at_ += bytes;
  }
  bool step();
  void take_word();
  bool take_less(bool was_behind_operator);
  bool take_greater();
  void take_comma();
  void take_colons();
  bool open(char c, bool follows_name = false);
  bool close(char opening);
  void end_arguments(const Bracket& bracket);
  void drop_defaults(const Bracket& bracket, std::string_view name);
  bool use_alias(const Bracket& bracket, std::size_t name_at);
  bool drop_tag(const Bracket& bracket);
  void merge_braces(const Bracket& bracket);
  [[nodiscard]] std::string_view argument(std::size_t number) const;
  [[nodiscard]] std::size_t name_before(std::size_t at) const;

  std::string_view in_;
  std::size_t at_ = 0;
  std::string out_;
  std::vector<Bracket> open_;
  std::vector<std::size_t> arguments_;        ///< where the arguments of open `<` start in out_
  std::size_t angle_end_ = 0;                 ///< after the `>` that closed last, in out_
  std::size_t brace_at_ = 0, brace_end_ = 0;  ///< the {} that closed last, in out_
  bool is_behind_operator_ = false;           ///< the last thing was "operator<<" or the like
};

/// Processes the text at at_; false if a bracket does not pair.
bool Simplifier::step() {
  if (is_of_a_name(in_[at_])) {
    take_word();
    return true;
  }
  const bool was_behind_operator = std::exchange(is_behind_operator_, false);
  switch (in_[at_]) {
    case '<':
      return take_less(was_behind_operator);
    case '>':
      return take_greater();
    case '(':
    case '[':
    case '{':
      return open(in_[at_]);
    case ')':
      return close('(');
    case ']':
      return close('[');
    case '}':
      return close('{');
    case ',':
      take_comma();
      return true;
    case ':':
      take_colons();
      return true;
    default:
      is_behind_operator_ = was_behind_operator && in_[at_] == ' ';  // "operator<< <int>"
      copy(sees("->") ? 2 : 1);
      return true;
  }
}

/// Copies a word and, after "operator", the symbols, which are not brackets.
void Simplifier::take_word() {
  const auto begin = in_.begin() + static_cast<std::ptrdiff_t>(at_);
  const auto end = std::find_if_not(begin, in_.end(), is_of_a_name);
  const std::string_view word = in_.substr(at_, static_cast<std::size_t>(end - begin));
  copy(word.size());
  is_behind_operator_ = false;
  if (word != "operator")
    return;
  const std::size_t symbols = length_of_operator(in_.substr(at_));
  copy(symbols);
  is_behind_operator_ = symbols > 0;
}

/// Processes a bracket or a comparison: libiberty puts the operands of a comparison in ().
bool Simplifier::take_less(bool was_behind_operator) {
  const char next = next_but_one();
  if (!was_behind_operator && out_.ends_with(')') && (next == '(' || next == '=' || next == '<')) {
    copy(next == '(' ? 1 : 2);
    return true;
  }
  const bool follows_name =
      was_behind_operator || (!out_.empty() && (is_of_a_name(out_.back()) || out_.back() == ':'));
  return open('<', follows_name);
}

bool Simplifier::take_greater() {
  if (open_.empty())
    return false;
  if (open_.back().open == '<')
    return close('<');
  copy(1);
  return true;
}

void Simplifier::take_comma() {
  copy(1);
  if (open_.empty() || open_.back().open != '<')
    return;
  if (at_ < in_.size() && in_[at_] == ' ')
    copy(1);
  arguments_.push_back(out_.size());
}

/// Copies "::", and removes an inline namespace of the library before it.
void Simplifier::take_colons() {
  if (!sees("::")) {
    copy(1);
    return;
  }
  std::size_t last = out_.size();
  while (last > 0 && is_of_a_name(out_[last - 1]))
    --last;
  const std::string_view out = out_;
  if (is_inline_namespace(out.substr(last)) && out.substr(0, last).ends_with("::") &&
      out.substr(name_before(last)).starts_with(kStd))
    out_.resize(last - 2);
  copy(2);
}

bool Simplifier::open(char c, bool follows_name) {
  open_.push_back({c, follows_name, out_.size(), arguments_.size()});
  copy(1);
  if (c == '<')
    arguments_.push_back(out_.size());
  return true;
}

bool Simplifier::close(char opening) {
  if (open_.empty() || open_.back().open != opening)
    return false;
  const Bracket bracket = open_.back();
  open_.pop_back();
  if (opening == '<') {
    end_arguments(bracket);
    return true;
  }
  copy(1);
  if (opening == '{')
    merge_braces(bracket);
  else if (opening == '[')
    drop_tag(bracket);
  return true;
}

/// Returns where the qualified name that ends at `at` starts.
std::size_t Simplifier::name_before(std::size_t at) const {
  while (at > 0 && (is_of_a_name(out_[at - 1]) || out_[at - 1] == ':'))
    --at;
  return at;
}

/// Returns an argument of the innermost open `<`; `number` is its index in arguments_.
std::string_view Simplifier::argument(std::size_t number) const {
  const std::size_t begin = arguments_[number];
  const bool is_last = number + 1 == arguments_.size();
  std::string_view text(out_);
  text = text.substr(begin, (is_last ? out_.size() : arguments_[number + 1]) - begin);
  if (!is_last)
    text.remove_suffix(text.ends_with(' ') ? 2 : 1);  // ", "
  return text;
}

/// Processes the `>` at at_, and shortens the arguments that it closes.
void Simplifier::end_arguments(const Bracket& bracket) {
  if (angle_end_ > bracket.at && angle_end_ + 1 == out_.size() && out_.back() == ' ')
    out_.pop_back();  // "> >"
  const std::size_t name_at = name_before(bracket.at);
  drop_defaults(bracket, std::string_view(out_).substr(name_at, bracket.at - name_at));
  if (!use_alias(bracket, name_at)) {
    const std::string_view inside = std::string_view(out_).substr(bracket.at + 1);
    if (bracket.follows_name && inside.size() > kMaxArgumentBytes && !inside.starts_with("impl "))
      out_.replace(bracket.at + 1, std::string::npos, "...");
    out_ += '>';
  }
  angle_end_ = out_.size();
  ++at_;
  arguments_.resize(bracket.first_argument);
}

void Simplifier::drop_defaults(const Bracket& bracket, std::string_view name) {
  const std::size_t required = required_arguments(name);
  if (required == 0)
    return;
  while (arguments_.size() > bracket.first_argument + required) {
    const std::string_view second = argument(bracket.first_argument + 1);
    if (!is_default(argument(arguments_.size() - 1), argument(bracket.first_argument), second))
      return;
    const std::string_view last_left = argument(arguments_.size() - 2);
    out_.resize(static_cast<std::size_t>(last_left.data() - out_.data()) + last_left.size());
    arguments_.pop_back();
  }
}

/// Replaces "std::basic_string<char" by "std::string"; false if there is no alias, or another word
/// follows.
bool Simplifier::use_alias(const Bracket& bracket, std::size_t name_at) {
  const char next = next_but_one();
  constexpr std::string_view kMayFollow("\0:,> )&*", 8);
  const std::string_view name = std::string_view(out_).substr(name_at, bracket.at - name_at);
  const auto* alias = std::find_if(kShortNames.begin(), kShortNames.end(),
                                   [&](const ShortName& known) { return known.of == name; });
  if (alias == kShortNames.end() || arguments_.size() != bracket.first_argument + 1 ||
      kMayFollow.find(next) == std::string_view::npos)
    return false;
  const std::string_view of = argument(bracket.first_argument);
  if (of != "char" && of != "wchar_t")
    return false;
  const std::string_view letter = of == "char" ? "" : "w";
  out_.resize(name_at);
  out_.append(kStd).append(letter).append(alias->name);
  return true;
}

/// Removes "[abi:cxx11]" after a name.
bool Simplifier::drop_tag(const Bracket& bracket) {
  const std::string_view before = std::string_view(out_).substr(0, bracket.at);
  const std::string_view tag = std::string_view(out_).substr(bracket.at);
  const bool is_between_words = at_ < in_.size() && is_of_a_name(in_[at_]);
  if (!tag.starts_with("[abi:") || before.empty() || !is_of_a_name(before.back()) ||
      is_between_words || before.ends_with("operator"))
    return false;
  out_.resize(bracket.at);
  return true;
}

/// "{{closure}}" of legacy Rust becomes "{closure}".
void Simplifier::merge_braces(const Bracket& bracket) {
  const bool is_double = brace_at_ == bracket.at + 1 && brace_end_ + 1 == out_.size();
  if (is_double) {
    out_.pop_back();
    out_.erase(bracket.at, 1);
  }
  brace_at_ = bracket.at;
  brace_end_ = out_.size();
}

}  // namespace

std::string simplify_name(std::string_view name) { return Simplifier(name).run(); }

}  // namespace pe::symbolize
