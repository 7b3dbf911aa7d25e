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

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "names/demangle_cost.h"

namespace pe::names {
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
