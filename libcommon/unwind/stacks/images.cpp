// SPDX-License-Identifier: MIT
#include "unwind/stacks/images.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fd.h"

namespace pe::unwind {

std::uint32_t Images::number_of(const stream::Mapping& mapping, std::uint32_t pid) {
  const objects::FileQuery query = files_.query(pid, mapping);
  const auto [item, is_new] =
      numbers_.try_emplace(query.key(), static_cast<std::uint32_t>(images_.size()));
  if (is_new)
    images_.push_back({.mapping = mapping, .pid = query.pid, .table = nullptr});
  return item->second;
}

UnwindTable* Images::table(std::uint32_t number) {
  Image& image = images_[number];
  if (!image.is_opened && left_bytes_ > 0)
    open(image);
  return image.table.get();
}

void Images::open(Image& image) {
  Spender spender =
      budget_ != nullptr ? Spender(*budget_, static_cast<std::uint32_t>(image.pid)) : Spender();
  const Spender::Scope scope(spender);
  if (!spender.may_start())
    return;
  auto opened = objects::open_mapped_image(image.pid, image.mapping, match_, &cache_);
  bool is_new = false;
  if (auto* elf = std::get_if<objects::Image>(&opened)) {
    elf->pay_by(spender);
    image.table = table_of(*elf, is_new);
  }
  constexpr std::size_t kRowsOfBytes = 3;  // rows are kept, too
  if (is_new && !spender.is_free() && !spender.has_lost()) {
    image.kept = KeptBytes(spender);
    image.kept.may_add(kRowsOfBytes * image.table->section_bytes());
  }
  if (is_new && spender.has_lost()) {  // a part is missing, or there is no room
    std::erase_if(by_identity_, [&](const auto& known) { return known.second == image.table; });
    image.table.reset();
  }
  image.lacked_descriptors = image.table == nullptr && !has_free_descriptors(kDescriptorsToOpen);
  // Descriptors may be free the next time, and the process may pay.
  image.is_opened = !image.lacked_descriptors && (image.table != nullptr || !spender.has_lost());
  if (is_new && image.table != nullptr)
    left_bytes_ -= std::min(left_bytes_, image.table->section_bytes());
}

/// Several records may lead to one file.
std::shared_ptr<UnwindTable> Images::table_of(const objects::Image& elf, bool& is_new) {
  const auto identity = objects::identity_of(elf);
  std::shared_ptr<UnwindTable> unshared;
  auto& table = identity ? by_identity_[*identity] : unshared;
  is_new = table == nullptr;
  if (is_new)
    table = std::make_shared<UnwindTable>(elf);
  return table;
}

bool Images::lacked_descriptors(const stream::MappedFile& file) const {
  for (auto number = numbers_.lower_bound({&file, 0});
       number != numbers_.end() && number->first.first == &file; ++number)
    if (images_[number->second].lacked_descriptors)
      return true;
  return false;
}

namespace {

using architecture::Registers;

constexpr unsigned kRax = 0, kRdi = 5;

/// execve(2) clears all general registers (arch/x86/include/asm/elf.h, ELF_PLAT_INIT).  The first
/// instruction of the dynamic loader copies the stack pointer to rdi.
bool is_new_program(const Registers& registers) {
  for (unsigned number = 0; number < architecture::kInstructionPointer; ++number) {
    const auto value = registers.get(number);
    const bool is_copy = number == kRdi && value == registers.get(architecture::kStackPointer);
    if (number != architecture::kStackPointer && value != 0 && !is_copy)
      return false;
  }
  return registers.get(architecture::kInstructionPointer).has_value();
}

/// Whether the last instruction of `code` that was executed is a system call, or one of those by
/// which C libraries then tell the child from its parent: `test rax, rax; jl`.
bool follows_system_call(Bytes code) {
  constexpr std::array<std::byte, 2> kCall{std::byte{0x0f}, std::byte{0x05}};
  constexpr std::array<std::byte, 4> kTest{std::byte{0x48}, std::byte{0x85}, std::byte{0xc0},
                                           std::byte{0x7c}};
  constexpr std::size_t kDistance = 1;  // of the jump
  const auto call = std::find_end(code.begin(), code.end(), kCall.begin(), kCall.end());
  if (call == code.end())
    return false;
  const Bytes rest = code.subspan(static_cast<std::size_t>(call - code.begin()) + kCall.size());
  const Bytes known = rest.first(std::min(rest.size(), kTest.size()));
  return rest.size() <= kTest.size() + kDistance &&
         std::ranges::equal(known, std::span(kTest).first(known.size()));
}

}  // namespace

bool is_at_start(const Registers& registers, const CodeReader& code) {
  if (is_new_program(registers))
    return true;
  constexpr std::size_t kMostBytes = 7;
  const auto ip = registers.get(architecture::kInstructionPointer);
  if (registers.get(kRax) != 0 || !ip || *ip < kMostBytes)
    return false;
  std::array<std::byte, kMostBytes> before{};
  return code(*ip - kMostBytes, before) == before.size() && follows_system_call(before);
}

bool is_in_system_call(const Registers& registers) {
  return registers.get(kRax) == static_cast<std::uint64_t>(-ENOSYS);  // until it returns
}

}  // namespace pe::unwind
