// What we know of the code of a process before one of its threads works for us: where the dynamic
// linker, the C library and the allocators are, and some addresses in the C library.
//
// All of it comes from the files that the process has mapped.  They are its user's: a wrong address
// makes a thread of that process call its own code.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "objects/image.h"
#include "objects/symbol_table.h"
#include "stream/proc/maps.h"
#include "stream/proc/process_table.h"

namespace pe::recording {

class ProcessImage {
 public:
  /// Reads the mappings and symbols of a process.  Throws Refused if no library can be loaded into
  /// it: it is static, or has another C library than glibc.
  /// The process pays for that from `budget`.
  ProcessImage(pid_t pid, Budget& budget);

  /// Whether the process still runs that program, and has not executed another.
  [[nodiscard]] bool is_current() const;

  /// Where its first thread's stack starts; 0: not known.
  [[nodiscard]] std::uint64_t stack_start() const noexcept { return stat_.stack_start; }

  /// Functions of the C library, as avma.
  struct Functions {
    std::uint64_t mmap = 0, syscall = 0, dlopen = 0, dlerror = 0;
    /// Code that ends a signal handler: rt_sigreturn(2).
    std::uint64_t restorer = 0;
  };
  [[nodiscard]] const Functions& functions() const noexcept { return functions_; }

  enum class Owner : std::uint8_t {
    kProgram,
    kLibc,
    kLinker,     ///< ld-linux-x86-64.so.2
    kAllocator,  ///< another object that defines malloc
    kNobody,     ///< no code of a file
  };
  [[nodiscard]] Owner owner_of(std::uint64_t avma) const;
  /// The name of the exported function of the C library at an address in it; empty if there is
  /// none.
  [[nodiscard]] std::string_view function_of_libc(std::uint64_t avma) const;

  /// The executable mappings.
  [[nodiscard]] const std::vector<stream::Mapping>& mappings() const noexcept { return mappings_; }
  /// The lowest address at which a file with this path is mapped; nullopt if it is not.
  [[nodiscard]] static std::optional<std::uint64_t> base_of(pid_t pid, std::string_view path);

 private:
  struct Object {
    Owner owner = Owner::kProgram;
    std::uint64_t bias = 0;  ///< svma = avma - bias
  };

  Object examine(const stream::Mapping& mapping, Spender& spender);
  void find_functions(const objects::Image& image, const Object& libc);
  [[nodiscard]] const stream::Mapping* find(std::uint64_t avma) const;

  pid_t pid_;
  stream::ProcessStat stat_;  ///< when the mappings were read
  std::vector<std::unique_ptr<stream::MappedFile>> files_;
  std::vector<stream::Mapping> mappings_;  ///< by address
  std::map<std::uint64_t, Object> by_inode_;
  objects::SymbolTable libc_;
  std::uint64_t libc_bias_ = 0;
  Functions functions_;
};

}  // namespace pe::recording
