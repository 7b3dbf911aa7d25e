// SPDX-License-Identifier: MIT
#include "folded/build_details.h"

#include <execinfo.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "base/characters.h"

namespace pe::folded {

std::unique_ptr<re2::RE2> compile(std::string_view text, Letters letters) {
  // RE2 allocates in std::call_once(), so in pthread_once(3).  An exception there makes glibc load
  // libgcc_s, and without memory it would end the program.  backtrace(3) loads it now.
  std::array<void*, 2> frames;
  if (::backtrace(frames.data(), frames.size()) == 0)
    throw std::bad_alloc();
  re2::RE2::Options options(letters == Letters::kUtf8 ? re2::RE2::DefaultOptions
                                                      : re2::RE2::Latin1);
  options.set_log_errors(false);
  return std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
}

std::optional<Expression> Expression::parse(std::string_view text, std::string& why) {
  auto compiled = compile(text);
  if (!compiled->ok()) {
    why = compiled->error();
    return std::nullopt;
  }
  return Expression(std::move(compiled));
}

Expression::Expression(std::unique_ptr<re2::RE2> compiled) : compiled_(std::move(compiled)) {}
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

std::size_t Expression::size() const { return static_cast<std::size_t>(compiled_->ProgramSize()); }

bool Expression::matches(std::string_view text) const {
  return re2::RE2::PartialMatch({text.data(), text.size()}, *compiled_);
}

namespace {

constexpr bool is_hex_digit(char c) { return is_hex(c) || (c >= 'A' && c <= 'F'); }

/// `left` replaces what `pattern` matches.  A name that has none of `needs` does not match: looking
/// for these takes a seventh of the time.
struct RuleText {
  const char* pattern;
  const char* left;
  std::array<std::string_view, 3> needs;
};

constexpr RuleText kRules[] = {
    // GCC, clang, BOLT and Go: parts and copies.  Rust's legacy hashes may precede them.
    {R"((.)(?:\.(?:cold|warm|isra|constprop|part|__part|lto_priv|llvm|__uniq|clone|localalias|)"
     R"(specialized)(?:\.[0-9]+)?|\.abi0| \[clone \.[^\]]*\]| \(\.[^()]*\)|::h[0-9a-f]{16})+$)",
     R"(\1)",
     {".", " [clone ", "::h"}},
    {R"((\.[_.]?omp_(?:fn|outlined))(?:\.+[0-9]+)+\b)", R"(\1)", {"omp_"}},
    {R"(\[[0-9a-f]{10,16}\]::)", "::", {"]::"}},  // Rust v0: the hash of a crate
    // Lambdas and closures of C++ (libiberty, LLVM, MSVC), Rust, Swift, clang's blocks, D, Zig.
    {R"(#[0-9]+\})", "}", {"#"}},
    {R"('(lambda|unnamed|block-literal)[0-9]+')", R"('\1')", {"'"}},
    {R"(<lambda_[0-9a-f]+>)", "<lambda>", {"<lambda_"}},
    {R"(\b(closure) #[0-9]+)", R"(\1)", {"closure #"}},
    {R"((_block_invoke)_[0-9]+\b)", R"(\1)", {"_block_invoke_"}},
    {R"((__(?:(?:func|dg)literal|lambda))[0-9]+\b)", R"(\1)", {"literal", "__lambda"}},
    {R"((__anon)_[0-9]+\b)", R"(\1)", {"__anon_"}},
    {R"(-range[0-9]+\b)", "-range", {"-range"}},  // Go
    {R"((\.init)\.[0-9]+\b)", R"(\1)", {".init."}},
    // Java, and what runs on its machine.
    {R"((\$\$Lambda|LambdaForm\$[A-Z]+)(?:\$[0-9]+)?(?:/[0-9]+)?\b)", R"(\1)", {"Lambda"}},
    {R"([/.]0x[0-9a-f]{8,16}\b|\+0x[0-9a-f]{16}\b)", "", {"0x"}},  // hidden classes
    {R"(((?:CGLIB|Guice)\$\$)[0-9a-f]+\b)", R"(\1)", {"$$"}},
    {R"((\$(?:ByteBuddy|HibernateProxy|auxiliary)\$)[0-9A-Za-z]+\b)", R"(\1)", {"$"}},
    {R"((\$lambda)-[0-9]+\b)", R"(\1)", {"$lambda-"}},
    {R"(\$(fn|reify|eval)_*[0-9]+\b)", R"($\1)", {"$"}},
    {R"((?:\$[0-9]+)+\b)", "$", {"$"}},  // not the class around it
    {R"((\$Proxy|_closure)[0-9]+\b)", R"(\1)", {"$Proxy", "_closure"}},
    {R"(\bjdk([./])proxy[0-9]+\b)", R"(jdk\1proxy)", {"proxy"}},
    {R"(\b(Generated[A-Za-z]*Accessor)[0-9]+\b)", R"(\1)", {"Generated"}},
    // .NET, V8, Erlang, OCaml, Julia.
    {R"((<[^<>]*>[a-z]__(?:[A-Za-z]+\|?)?)[0-9]+(?:_[0-9]+)*\b)", R"(\1)", {">"}},
    {R"(\b(lambda_method)[0-9]+\b)", R"(\1)", {"lambda_method"}},
    {R"((.)\[(?:PreJIT|ReadyToRun|MinOptJitted|(?:Quick|Optimized|Instrumented|Tier)\w*)\]$)",
     R"(\1)",
     {"]"}},
    {R"(^((?:LazyCompile|Function|JS|Script|Eval):)[*~^+]+)", R"(\1)", {":"}},
    {R"(-fun-[0-9]+-)", "-fun-", {"-fun-"}},
    {R"(^(caml\w+(?:\.\w+)*|(?:julia|jfptr|jlsys|japi1)_.+)_[0-9]+$)", R"(\1)", {"caml", "j"}},
    // The kernel.
    {R"(\bbpf_prog_[0-9a-f]{16}(_|\b))", R"(bpf_prog\1)", {"bpf_prog_"}},
    {R"(\b(bpf_trampoline)_[0-9]+\b)", R"(\1)", {"bpf_trampoline_"}},
};

/// A name of Go: "main.(*Server).run.func1.2", "main.glob..func3".  Java's methods may have such
/// names, but also a mark.
constexpr RuleText kGoClosure = {
    R"((?:[^\s():<>$]|\(\*[^()\s]+\))*\.(?:[^\s():<>$]|\(\*[^()\s]+\))*)"
    R"(\.(?:func|gowrap|deferwrap)[0-9]+(?:[.-][^\s():<>$]*)?)",
    "",
    {".func", "wrap"}};
constexpr RuleText kGoNumber = {
    R"(\.(func|gowrap|deferwrap)[0-9]+(?:\.[0-9]+)*\b)", R"(.\1)", {".func", "wrap"}};

/// A rule, compiled when it is first needed.
class Rule {
 public:
  explicit Rule(const RuleText& text) : text_(text) {}

  [[nodiscard]] bool matches_whole(std::string_view name) {
    return may_match(name) && re2::RE2::FullMatch({name.data(), name.size()}, pattern());
  }
  void apply(std::string& name) {
    if (may_match(name))
      re2::RE2::GlobalReplace(&name, pattern(), text_.left);
  }

 private:
  [[nodiscard]] bool may_match(std::string_view name) const {
    return std::ranges::any_of(text_.needs, [name](std::string_view need) {
      return !need.empty() && name.find(need) != std::string_view::npos;
    });
  }
  const re2::RE2& pattern() {
    const std::scoped_lock lock(mutex_);
    if (!pattern_)
      pattern_ = compile(text_.pattern, Letters::kBytes);
    return *pattern_;
  }

  const RuleText& text_;
  std::mutex mutex_;
  std::unique_ptr<re2::RE2> pattern_;
};

class Rules {
 public:
  Rules() {
    for (const RuleText& text : kRules)
      rules_.emplace_back(text);
  }

  void apply(std::string& name, bool may_be_go) {
    for (Rule& rule : rules_)
      rule.apply(name);
    if (may_be_go && go_closure_.matches_whole(name))
      go_number_.apply(name);
  }

 private:
  std::deque<Rule> rules_;
  Rule go_closure_{kGoClosure}, go_number_{kGoNumber};
};

/// Can a rule match?  Most names have none of these.
bool has_details(std::string_view name) {
  if (name.ends_with(']') || name.find_first_of("0123456789.") != std::string_view::npos)
    return true;
  const auto colon = name.find(':');
  return colon != std::string_view::npos && colon + 1 < name.size() && name[colon + 1] != ':';
}

}  // namespace

std::string_view mark_of(std::string_view name) {
  constexpr std::size_t kSize = 4;
  if (name.size() <= kSize)
    return {};
  const std::string_view end = name.substr(name.size() - kSize);
  return end.starts_with("_[") && end.ends_with(']') ? end : std::string_view();
}

std::string without_hex_numbers(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool is_number =
        text.substr(at).starts_with("0x") && at + 2 < text.size() && is_hex_digit(text[at + 2]);
    if (!is_number) {
      out += text[at++];
      continue;
    }
    out += "0x...";
    for (at += 2; at < text.size() && is_hex_digit(text[at]);)
      ++at;
  }
  return out;
}

std::string without_build_details(std::string_view name) {
  static Rules rules;
  const std::string_view mark = mark_of(name);
  name.remove_suffix(mark.size());
  std::string left(name);
  if (!has_details(name))
    return left.append(mark);
  rules.apply(left, mark != "_[j]" && mark != "_[s]");
  if (left.empty())
    left = name;
  return without_hex_numbers(left).append(mark);
}

}  // namespace pe::folded
