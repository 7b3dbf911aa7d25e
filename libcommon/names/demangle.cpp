// Protects against malicious names (libiberty of binutils 2.40):
//
// * C++: a name's parse tree shares subtrees ("substitutions"), so 100 bytes can
//   represent 2^30 nodes.  Printing visits them all, some without output.  So we build the tree
//   first, measure it without following shared parts twice, and print it only if it is small.
//   Printing also takes stack in proportion to the product of two counts, which we bound.
// * A callback collects the output.  When it gets too long, longjmp(3) leaves
//   libiberty, which holds no memory at that point (its buffers are on the stack).
// * Rust v0: `for<'a, 'b, ...>` is encoded as a number.  libiberty counts up to it, up to 2^64,
//   even if it prints nothing.
// * D: libiberty parses function types twice if no name follows them, so nested ones cost
//   2^n; back references double the output.  Both costs are estimated from the text.
// SPDX-License-Identifier: MIT
#include "names/demangle.h"

// Without this, libiberty.h declares basename(3) in its own way.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>
#include <malloc.h>
#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/characters.h"

namespace pe::names {
namespace {

// A demangled name of 16 KiB has some 10,000 nodes.  Pack expansions search their
// subtree, so the time may grow with the square of this limit: 0.1 s in the worst case.
constexpr std::uint64_t kMaxNodes = 32 * 1024;
// cplus_demangle_print_callback takes 16 bytes of stack for each pair of a
// template and a reference to a template parameter, each counted up to twice.
constexpr std::uint64_t kMaxScopePairs = 16 * 1024;
// libiberty stops printing at depth 1,024 (MAX_RECURSION_COUNT of libiberty/cp-demangle.c).
constexpr std::uint64_t kMaxDepth = 2 * 1024;

using Node = const demangle_component;

/// Returns the subtrees of a node; demangle.h documents which member of the union holds them.
std::pair<Node*, Node*> children_of(Node& node) {
  switch (node.type) {
    case DEMANGLE_COMPONENT_NAME:
    case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
    case DEMANGLE_COMPONENT_FUNCTION_PARAM:
    case DEMANGLE_COMPONENT_SUB_STD:
    case DEMANGLE_COMPONENT_BUILTIN_TYPE:
    case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
    case DEMANGLE_COMPONENT_OPERATOR:
    case DEMANGLE_COMPONENT_CHARACTER:
    case DEMANGLE_COMPONENT_NUMBER:
    case DEMANGLE_COMPONENT_TEMPLATE_TYPE_PARM:
      return {nullptr, nullptr};
    case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
      return {node.u.s_extended_operator.name, nullptr};
    case DEMANGLE_COMPONENT_FIXED_TYPE:
      return {node.u.s_fixed.length, nullptr};
    case DEMANGLE_COMPONENT_CTOR:
      return {node.u.s_ctor.name, nullptr};
    case DEMANGLE_COMPONENT_DTOR:
      return {node.u.s_dtor.name, nullptr};
    case DEMANGLE_COMPONENT_LAMBDA:
    case DEMANGLE_COMPONENT_UNNAMED_TYPE:
    case DEMANGLE_COMPONENT_DEFAULT_ARG:
      return {node.u.s_unary_num.sub, nullptr};
    default:
      return {node.u.s_binary.left, node.u.s_binary.right};
  }
}

/// Counts each node of a tree as often as printing visits it, but visits each only once.
class Measure {
 public:
  Measure(const void* memory, std::size_t bytes)
      : memory_(static_cast<const std::byte*>(memory)), bytes_(bytes) {}

  bool is_cheap(Node& root) {
    return nodes_below(root) <= kMaxNodes && templates_ * scopes_ <= kMaxScopePairs;
  }

 private:
  std::uint64_t nodes_below(Node& node) {
    // Until a node is counted its entry means "too many", so a cycle through it is refused.
    const auto [known, is_new] = nodes_.try_emplace(&node, kMaxNodes + 1);
    if (!is_new)
      return known->second;
    const auto [left, right] = children_of(node);
    count_scopes(node, left);
    std::uint64_t nodes = 1;
    if (++depth_ > kMaxDepth)
      nodes = kMaxNodes + 1;
    for (Node* child : {left, right})
      if (nodes <= kMaxNodes && is_node(child))
        nodes = std::min(nodes + nodes_below(*child), kMaxNodes + 1);
    --depth_;
    nodes_[&node] = nodes;
    return nodes;
  }

  /// All nodes are in one block.  Later versions of libiberty have kinds of nodes that
  /// children_of() does not know.  It may return a number as a subtree (binutils 2.47, unnamed
  /// enums).
  [[nodiscard]] bool is_node(Node* child) const {
    const std::less<> before;
    const auto* at = reinterpret_cast<const std::byte*>(child);
    return child != nullptr && !before(at, memory_) && before(at, memory_ + bytes_) &&
           static_cast<std::size_t>(at - memory_) % sizeof(Node) == 0;
  }

  void count_scopes(Node& node, Node* left) {
    templates_ += node.type == DEMANGLE_COMPONENT_TEMPLATE ? 1 : 0;
    const bool is_reference = node.type == DEMANGLE_COMPONENT_REFERENCE ||
                              node.type == DEMANGLE_COMPONENT_RVALUE_REFERENCE;
    scopes_ += is_reference && is_node(left) && left->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM;
  }

  const std::byte* memory_;
  std::size_t bytes_;
  boost::unordered_flat_map<Node*, std::uint64_t> nodes_;
  std::uint64_t templates_ = 0, scopes_ = 0, depth_ = 0;
};

/// The cost of parsing D's text up to some place: its length with back references
/// expanded, and how often one function type in another may be parsed twice.
struct DCost {
  std::uint64_t bytes = 0, doublings = 0;
};

/// Returns the place after the length and the name that start at `at`; a function type
/// may follow there.  Returns `at` itself if no length starts there.
std::size_t after_name(std::string_view text, std::size_t at) {
  std::size_t end = at;
  std::size_t number = 0;
  for (; end < text.size() && is_digit(text[end]) && number < text.size(); ++end)
    number = number * 10 + static_cast<std::size_t>(text[end] - '0');
  return end == at ? at : std::min(end + number, text.size());
}

}  // namespace

bool is_cheap_to_print(const demangle_component& tree, const void* memory, std::size_t bytes) {
  return Measure(memory, bytes).is_cheap(tree);
}

bool is_cheap_rust(std::string_view mangled) {
  // <binder> = "G" <base-62-number> follows the F of a function type or the D of
  // a trait object.  No real code has a number of three digits: 3,844 lifetimes or more.
  for (std::size_t at = 0; at + 4 < mangled.size(); ++at) {
    if ((mangled[at] != 'F' && mangled[at] != 'D') || mangled[at + 1] != 'G')
      continue;
    std::size_t end = at + 2;
    while (end < mangled.size() &&
           (is_digit(mangled[end]) || is_lower(mangled[end]) || is_upper(mangled[end])))
      ++end;
    if (end - (at + 2) >= 3 && end < mangled.size() && mangled[end] == '_')
      return false;
  }
  return true;
}

// A back reference is 'Q' and a base-26 number N, whose last digit is in lower
// case.  It refers to the text N bytes before the 'Q' (D's ABI specification, "Name Mangling").
// The referenced text ends before the 'Q', so all of the text between is an upper bound.
bool is_cheap_d(std::string_view mangled) {
  constexpr std::size_t kMaxBytes = 1024;
  constexpr DCost kMaxCost{.bytes = 8 * 1024, .doublings = 10};
  if (mangled.size() > kMaxBytes)
    return false;
  std::vector<DCost> cost(mangled.size() + 1);  // of the text before each byte
  const auto may_start_function = [&](std::size_t at) {
    return at < mangled.size() &&
           std::string_view("FUVWRYM").find(mangled[at]) != std::string_view::npos;
  };
  for (std::size_t at = 0; at < mangled.size(); ++at) {
    DCost here{cost[at].bytes + 1, cost[at].doublings};
    if (is_digit(mangled[at]) && may_start_function(after_name(mangled, at)))
      ++here.doublings;
    std::size_t distance = 0;
    std::size_t end = at + 1;
    while (mangled[at] == 'Q' && end < mangled.size() && is_upper(mangled[end]) && distance <= at)
      distance = distance * 26 + static_cast<std::size_t>(mangled[end++] - 'A');
    if (mangled[at] == 'Q' && end < mangled.size() && is_lower(mangled[end])) {
      distance = distance * 26 + static_cast<std::size_t>(mangled[end] - 'a');
      const DCost& start = cost[at - std::min(distance, at)];
      here.bytes += cost[at].bytes - start.bytes;
      here.doublings +=
          cost[at].doublings - start.doublings + (may_start_function(end + 1) ? 1 : 0);
    }
    if (here.bytes > kMaxCost.bytes || here.doublings > kMaxCost.doublings)
      return false;
    cost[at + 1] = here;
  }
  return true;
}

namespace {

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

/// The buffer for the output of libiberty's callback.
struct Sink {
  std::array<char, kMaxDemangledBytes> text;
  std::size_t size = 0;
  std::jmp_buf overflow;
};

extern "C" void append_to_sink(const char* text, std::size_t size, void* opaque) {
  auto* sink = static_cast<Sink*>(opaque);
  if (size > sink->text.size() - sink->size)
    std::longjmp(sink->overflow, 1);  // skips C frames and this one: nothing to destroy
  if (size > 0)                       // if `size` is 0, `text` may be null
    std::memcpy(sink->text.data() + sink->size, text, size);
  sink->size += size;
}

// The two functions that call setjmp hold no objects with destructors.
bool print_itanium(demangle_component* tree, int options, Sink& sink) {
  if (setjmp(sink.overflow) != 0)
    return false;
  return cplus_demangle_print_callback(options, tree, append_to_sink, &sink) != 0;
}

bool print_rust(const char* mangled, Sink& sink) {
  if (setjmp(sink.overflow) != 0)
    return false;
  return rust_demangle_callback(mangled, DMGL_NO_OPTS, append_to_sink, &sink) != 0;
}

std::optional<std::string> sunk_text(const Sink& sink, bool success) {
  if (!success || sink.size == 0)
    return std::nullopt;
  return std::string(sink.text.data(), sink.size);
}

std::optional<std::string> demangle_itanium(const std::string& mangled,
                                            int options = DMGL_NO_OPTS) {
  void* memory = nullptr;
  demangle_component* tree = cplus_demangle_v3_components(mangled.c_str(), options, &memory);
  const std::unique_ptr<void, Free> owner(memory);
  if (tree == nullptr || !is_cheap_to_print(*tree, memory, ::malloc_usable_size(memory)))
    return std::nullopt;
  Sink sink;
  return sunk_text(sink, print_itanium(tree, options, sink));
}

std::optional<std::string> demangle_rust(const std::string& mangled) {
  if (!is_cheap_rust(mangled))
    return std::nullopt;
  Sink sink;
  return sunk_text(sink, print_rust(mangled.c_str(), sink));
}

/// libiberty prints a function's parameters with every option; this removes them.
/// Template arguments follow a '!' and stay.
void drop_d_parameters(std::string& name) {
  if (!name.ends_with(')'))
    return;
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    depth += name[at] == ')' ? 1 : 0;
    depth -= name[at] == '(' ? 1 : 0;
    if (depth == 0) {
      if (at > 0 && name[at - 1] != '!')
        name.resize(at);
      return;
    }
  }
}

std::optional<std::string> demangle_d(const std::string& mangled) {
  if (!is_cheap_d(mangled))
    return std::nullopt;
  const std::unique_ptr<char, Free> text(dlang_demangle(mangled.c_str(), DMGL_NO_OPTS));
  if (!text)
    return std::nullopt;
  std::string name(text.get());
  drop_d_parameters(name);
  if (name.empty() || name.size() > kMaxDemangledBytes)
    return std::nullopt;
  return name;
}

/// Returns the end of the mangled name: the start of the suffix from compilers and linkers.
std::size_t suffix_of(std::string_view name) {
  // A legacy Rust name may contain dots, and ends in a hash: "17h", 16 digits, 'E'.
  constexpr std::size_t kHashDigits = 16;
  const std::size_t hash = name.starts_with("_ZN") ? name.rfind("17h") : std::string_view::npos;
  if (hash != std::string_view::npos) {
    const std::size_t end = name.find_first_not_of("0123456789abcdef", hash + 3);
    if (end == hash + 3 + kHashDigits && name[end] == 'E')
      return end + 1;
  }
  return std::min(name.find_first_of(".@"), name.size());
}

std::optional<std::string> demangle_base(const std::string& mangled) {
  if (mangled.starts_with("_R"))
    return demangle_rust(mangled);
  if (mangled.starts_with("_D"))
    return demangle_d(mangled);
  if (mangled.starts_with("_ZN"))  // legacy Rust is C++ with a hash
    if (auto name = demangle_rust(mangled))
      return name;
  return demangle_itanium(mangled);
}

}  // namespace

std::string demangle(std::string_view mangled) {
  const bool may_be_mangled =
      mangled.starts_with("_Z") || mangled.starts_with("_R") || mangled.starts_with("_D");
  if (!may_be_mangled || mangled.size() > kMaxMangledBytes ||
      mangled.find('\0') != std::string_view::npos)
    return std::string(mangled);
  const std::size_t end = suffix_of(mangled);
  auto name = demangle_base(std::string(mangled.substr(0, end)));
  if (!name)
    return std::string(mangled);
  const std::string_view suffix = mangled.substr(end);
  *name += suffix.substr(0, suffix.find(".llvm."));
  return std::move(*name);
}

std::string demangle_with_parameters(std::string_view mangled) {
  if (!mangled.starts_with("_Z") || mangled.size() > kMaxMangledBytes ||
      mangled.find('\0') != std::string_view::npos)
    return {};
  const std::string name(mangled.substr(0, suffix_of(mangled)));
  return demangle_itanium(name, DMGL_PARAMS | DMGL_ANSI).value_or("");
}

}  // namespace pe::names
