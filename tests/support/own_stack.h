// This process as an input of the unwinder: its mappings, its images' tables, its threads' stacks.
// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "objects/image.h"
#include "objects/mapped_image.h"
#include "stream/proc/maps.h"
#include "unwind/walk/general_walk.h"
#include "unwind/walk/walker.h"

namespace pe::testing {

/// The tables of images by path, and the address space of this process as it is mapped now.
class OwnSpace {
 public:
  OwnSpace() : space_([this](std::uint32_t image) { return tables_[image].get(); }) {
    std::map<std::string, std::uint32_t> numbers;
    stream::for_each_mapping(::getpid(), [&](const stream::MapsLine& line) {
      if (!line.executable)
        return;
      const std::string path(line.path);
      const auto [known, is_new] =
          numbers.try_emplace(path, static_cast<std::uint32_t>(tables_.size()));
      if (is_new)
        tables_.push_back(open(path));
      space_.map({line.start, line.end, line.file_offset, known->second});
    });
  }
  OwnSpace(const OwnSpace&) = delete;
  OwnSpace& operator=(const OwnSpace&) = delete;

  unwind::AddressSpace& space() { return space_; }

 private:
  static std::unique_ptr<unwind::UnwindTable> open(const std::string& path) {
    const auto opened = path == "[vdso]" ? objects::own_vdso() : objects::Image::open(path);
    const auto* image = std::get_if<objects::Image>(&opened);
    return image == nullptr ? nullptr : std::make_unique<unwind::UnwindTable>(*image);
  }

  std::vector<std::unique_ptr<unwind::UnwindTable>> tables_;
  unwind::AddressSpace space_;
};

/// The registers of a context, by DWARF number.
inline unwind::architecture::Registers registers_of(const ucontext_t& context) {
  constexpr int kGregs[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                            REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                            REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  unwind::architecture::Registers registers;
  unsigned number = 0;
  for (const int greg : kGregs)
    registers.set(number++, static_cast<std::uint64_t>(context.uc_mcontext.gregs[greg]));
  return registers;
}

/// The end of the calling thread's stack.
inline std::uint64_t own_stack_end() {
  pthread_attr_t attributes;
  void* start = nullptr;
  std::size_t bytes = 0;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0)
    std::abort();
  ::pthread_attr_getstack(&attributes, &start, &bytes);
  ::pthread_attr_destroy(&attributes);
  return reinterpret_cast<std::uint64_t>(start) + bytes;
}

/// The calling thread's stack from `sp` to `end`, not copied; AddressSanitizer rejects reads of it.
inline unwind::StackView own_stack(std::uint64_t sp, std::uint64_t end) {
  const auto* bytes = reinterpret_cast<const std::byte*>(sp);
  return {sp, Bytes(bytes, static_cast<std::size_t>(end - sp))};
}

/// The same as a copy in `into`.  It copies word by word because AddressSanitizer checks memcpy,
/// and forbids reads between variables.
__attribute__((no_sanitize("address"))) inline unwind::StackView copy_of_stack(
    std::uint64_t sp, std::uint64_t end, std::vector<std::uint64_t>& into) {
  const auto* from = reinterpret_cast<const std::uint64_t*>(sp & ~std::uint64_t{7});
  into.resize(static_cast<std::size_t>((end - sp) / 8));
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] = from[i];
  return {sp, std::as_bytes(std::span(into))};
}

}  // namespace pe::testing
