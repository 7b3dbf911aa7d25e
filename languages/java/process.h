// A process that runs a HotSpot JVM: its code, and the names of its methods.
//
// Everything is read once and kept.  Code and methods may be replaced by others at the same
// address, so their fields are compared once in each period, which begin_period() starts.
//
// A malicious process can make reading expensive, so the effort of a period is limited.  What is
// beyond the limit is unreadable until the next one.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "languages/common/memory.h"
#include "languages/java/binary.h"
#include "languages/java/code.h"
#include "languages/java/layout.h"
#include "languages/java/names.h"
#include "stream/script_mapping.h"

namespace pe::languages {

class HotspotProcess {
 public:
  /// Reads the layout of a JVM.  `bias` is the distance from the file's svma to avma.  Returns why
  /// its frames cannot be read: "Java 11"; empty if the process is gone, or has just started.
  static std::variant<HotspotProcess, std::string> open(Memory memory, const HotspotBinary& binary,
                                                        std::uint64_t bias);

  /// The process has run for a while: what is known is compared with it from now on.
  void begin_period();
  /// Returns whether known code has been replaced, or unknown code may be known now, since the
  /// last call.
  bool take_changed() { return std::exchange(has_changed_, false); }

  /// Returns the code at `avma`; null if it is not the JVM's, or unreadable.  Valid until the next
  /// call.
  const CodeBlob* code_at(std::uint64_t avma);
  /// Copies code.  Returns false if a part is unreadable.
  bool read_code(std::uint64_t avma, std::span<std::byte> into);
  /// Returns whether `avma` is the return address of the stub by which the JVM calls Java.
  [[nodiscard]] bool is_call_stub_return(std::uint64_t avma) const noexcept {
    return avma != 0 && avma == call_stub_return_;
  }
  /// Returns whether `avma` is the return address of a virtual thread's frame whose callers are in
  /// the JVM's heap.  On the stack, the frame of the continuation's entry follows, which has
  /// continuation_words(); 0 if that is unknown.
  [[nodiscard]] bool is_return_barrier(std::uint64_t avma) const noexcept {
    return avma != 0 && avma == return_barrier_;
  }
  std::uint32_t continuation_words();
  /// Whether `avma` is where the JVM has its code, readable or not.
  [[nodiscard]] bool has_code_at(std::uint64_t avma) const noexcept {
    return cache_.contains(avma);
  }
  [[nodiscard]] const HotspotLayout& layout() const noexcept { return layout_; }

  /// Is called for a new function, and returns its number.
  using OnNew = std::function<std::uint32_t(const stream::ScriptFunction&)>;
  /// Returns the addresses in the stream of the methods at `avma` in code of the JVM, the innermost
  /// first, as of innermost frames (stream/script_mapping.h).  One is 0 if its method is
  /// unreadable.  Valid until the next call.
  std::span<const std::uint64_t> functions_at(const CodeBlob& blob, std::uint64_t avma,
                                              const OnNew& on_new);
  /// Does the same for a frame of the interpreter.  `bytecode` is the avma of what it executes.
  std::optional<std::uint64_t> interpreted(std::uint64_t method, std::uint64_t bytecode,
                                           const OnNew& on_new);
  /// Returns whether `bytecode` is the avma of a bytecode of the method.
  bool is_bytecode_of(std::uint64_t method, std::uint64_t bytecode);

 private:
  struct Code {
    CodeBlob blob;
    std::uint64_t checked = 0;  ///< the period in which it was last compared
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> functions;  ///< by avma
  };
  struct Method {
    MethodFields fields;
    std::optional<JavaMethod> method;  ///< nullopt: unreadable
    std::uint64_t checked = 0;
    /// In the stream, 0: none yet.  By ScriptKind.
    std::array<std::uint64_t, stream::kScriptKinds> addresses{};
  };

  HotspotProcess(Memory memory, const HotspotLayout& layout)
      : memory_(std::move(memory)), layout_(layout), kept_(memory_.spender()) {}

  bool spend(std::size_t effort);
  void read_places();
  Code* known_code(std::uint64_t avma);
  Code* new_code(std::uint64_t avma);
  Method& method_at(std::uint64_t avma);
  std::optional<std::uint64_t> address_of(std::uint64_t method, std::uint32_t bytecode,
                                          stream::ScriptKind kind, const OnNew& on_new);
  std::vector<std::uint64_t> name(const CodeBlob& blob, std::uint64_t avma, const OnNew& on_new);

  Memory memory_;
  HotspotLayout layout_;
  CodeCache cache_;
  std::uint64_t call_stub_return_ = 0, return_barrier_ = 0, entry_return_ = 0;
  std::map<std::uint64_t, Code> codes_;                     ///< by the start of their code
  std::unordered_map<std::uint64_t, Method> methods_;       ///< by avma
  std::unordered_map<std::uint64_t, std::uint64_t> stubs_;  ///< by the avma of their name
  KeptBytes kept_;                                          ///< in methods_
  std::uint64_t period_ = 1;
  std::size_t effort_ = 0;  ///< in this period
  std::size_t places_ = 0;  ///< whose functions are kept in codes_
  bool has_unknown_ = false, has_changed_ = false;
  bool is_gone_ = false;  ///< the process has no memory any more
};

}  // namespace pe::languages
