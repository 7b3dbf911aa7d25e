// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/code_book.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <mutex>

#include "recording/inprocess/keep_errno.h"
#include "unwind/cfi/cfi_entries.h"
#include "unwind/walk/row_step.h"

namespace pe::malloctrace {

bool ModuleList::start(SharedMemory shared) noexcept {
  shared_ = shared;
  return ranges_.map(heap::kMaxModules) && is_gone_.map(heap::kMaxModules);
}

std::uint32_t ModuleList::add(const stream::MapsLine& map) noexcept {
  heap::Header& header = shared_.header();
  std::uint32_t number = header.modules;
  while (number != 0 && !is_same(number, map))
    --number;
  if (number == 0)
    number = append(map);
  if (number == 0 || known_ >= ranges_.size()) {
    count_up(header.full);
    return 0;
  }
  ranges_[known_++] = {map.start, map.end, number};
  return number;
}

/// 0 if there is no room.
std::uint32_t ModuleList::append(const stream::MapsLine& map) noexcept {
  heap::Header& header = shared_.header();
  if (header.modules >= heap::kMaxModules)
    return 0;
  heap::Module& module = shared_.modules()[header.modules];
  module.start = map.start;
  module.end = map.end;
  module.file_offset = map.file_offset;
  module.major = map.device_major;
  module.minor = map.device_minor;
  module.inode = map.inode;
  module.number = header.modules;
  const std::size_t size = std::min(map.path.size(), sizeof module.path);
  module.path_length = static_cast<std::uint32_t>(size);
  std::copy_n(map.path.data(), size, module.path);
  publish(header.modules, header.modules + 1);
  return header.modules;
}

std::uint32_t ModuleList::find(std::uint64_t avma) noexcept {
  for (std::size_t i = 0; i < known_; ++i)
    if (avma - ranges_[i].start < ranges_[i].end - ranges_[i].start)
      return ranges_[i].number;
  std::uint32_t number = 0;
  inprocess::for_each_own_mapping(room_, [&](const stream::MapsLine& map) {
    if (!map.executable || avma < map.start || avma >= map.end)
      return true;
    number = add(map);
    return false;
  });
  return number;
}

bool ModuleList::is_same(std::uint32_t number, const stream::MapsLine& map) const noexcept {
  const heap::Module& module = shared_.modules()[number - 1];
  const std::string_view path(module.path, module.path_length);
  return map.start == module.start && map.end == module.end && map.inode == module.inode &&
         map.file_offset == module.file_offset && map.device_major == module.major &&
         map.device_minor == module.minor && map.path.substr(0, sizeof module.path) == path;
}

void ModuleList::find_gone() noexcept {
  std::fill_n(is_gone_.data(), known_, true);
  const bool is_read = inprocess::for_each_own_mapping(room_, [this](const stream::MapsLine& map) {
    for (std::size_t i = 0; i < known_; ++i)
      if (map.executable && is_same(ranges_[i].number, map))
        is_gone_[i] = false;
    return true;
  });
  if (!is_read)
    std::fill_n(is_gone_.data(), known_, false);
}

}  // namespace pe::malloctrace

namespace pe::unwind {
namespace {

/// Returns the bytes from `avma` to the end of the image.
Bytes bytes_from(const LoadedImage& image, std::uint64_t avma) noexcept {
  const auto* first =
      reinterpret_cast<const std::byte*>(avma);  // NOLINT(performance-no-int-to-ptr)
  return avma >= image.start && avma <= image.end ? Bytes(first, image.end - avma) : Bytes();
}

}  // namespace

std::optional<LoadedFde> find_loaded_fde(const LoadedImage& image, std::uint64_t avma) noexcept {
  const std::uint64_t header_avma = image.frame_header;
  const auto header = read_eh_frame_header(bytes_from(image, header_avma), header_avma);
  if (!header || !header->frames_svma)
    return std::nullopt;
  const auto number = header->table.find(avma);
  if (!number)
    return std::nullopt;
  const std::uint64_t frames_avma = *header->frames_svma;
  const CfiEntries entries(CfiFormat::kEhFrame, bytes_from(image, frames_avma), frames_avma,
                           header_avma);
  const auto fde = entries.fde_at(header->table.fde_svma(*number) - frames_avma);
  return fde && fde->covers(avma) ? std::optional(LoadedFde{*fde, header_avma}) : std::nullopt;
}

}  // namespace pe::unwind

namespace pe::malloctrace {
namespace {

using unwind::Rule;
using unwind::RuleKind;

std::optional<unwind::LoadedFde> find_fde(std::uint64_t avma) noexcept {
  dl_find_object found{};
  auto* place = reinterpret_cast<void*>(avma);  // NOLINT(performance-no-int-to-ptr)
  if (::_dl_find_object(place, &found) != 0 || found.dlfo_eh_frame == nullptr)
    return std::nullopt;
  auto start = reinterpret_cast<std::uint64_t>(found.dlfo_map_start);
  auto end = reinterpret_cast<std::uint64_t>(found.dlfo_map_end);
  const auto header = reinterpret_cast<std::uint64_t>(found.dlfo_eh_frame);
  // If a page is free between two segments, glibc reports only the one with the code (glibc 2.36;
  // Debian 12's make).  The tables follow the code, or lld puts them before it.  In no program are
  // they larger than this.
  constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 28;
  if (header < start || header >= end) {
    start = header - std::min(header, kMostTableBytes);
    end = header + kMostTableBytes;
  }
  return unwind::find_loaded_fde({start, end, header}, avma);
}

constexpr unsigned kUserAddressBits = 47;  ///< of addresses in user space

/// Where a walk has guessed, the word in place of a return address is mostly a small number.  Small
/// numbers are no addresses (mmap_min_addr), so we need not ask the kernel.
bool may_be_mapped(std::uint64_t avma) noexcept {
  constexpr std::uint64_t kPage = 4096;
  return avma >= kPage && avma >> kUserAddressBits == 0;
}

/// Returns the key of an address in a module: 16 bits of an address are free.
CodeKey key_in(CodeKey key, std::uint32_t module) noexcept {
  static_assert(heap::kMaxModules < 1 << 15);
  return {key.address() | std::uint64_t{module} << kUserAddressBits, key.is_exact()};
}

/// Whether a return address is the start of a function and no function before it could have made
/// the call.  makecontext(3) stores such an address below a coroutine's first function, for that to
/// return into.  There is no caller beyond it.
bool is_put_there(CodeKey key) noexcept {
  if (key.is_exact())
    return false;
  const auto behind = find_fde(key.address());
  return behind && behind->fde.start_svma == key.address();
}

/// Goes to the row for `offset`; false if there is none.
bool run_to(unwind::CfiProgram& program, std::uint64_t offset) noexcept {
  while (program.next())
    if (offset < program.to())
      return offset >= program.from();
  return false;
}

/// Calls `function` while no image is unmapped: glibc's dlclose(3) unmaps images under the lock
/// that dl_iterate_phdr(3) holds.  A walk that guesses may come to the code of an image that
/// another thread is about to unload.
template <typename Function>
void while_loaded(Function function) noexcept {
  ::dl_iterate_phdr(
      [](dl_phdr_info* /*info*/, std::size_t /*size*/, void* memory) {
        (*static_cast<Function*>(memory))();
        return 1;
      },
      &function);
}

/// Stores how many images have been unloaded so far.
int count_unloaded(dl_phdr_info* info, std::size_t /*size*/, void* result) noexcept {
  *static_cast<std::uint64_t*>(result) = info->dlpi_subs;
  return 1;  // the first image reports it
}

}  // namespace

bool CodeBook::start(SharedMemory shared, bool is_fork) noexcept {
  shared_ = shared;
  is_fork_ = is_fork;
  return table_.start() && modules_.start(shared);
}

unwind::Rule CodeBook::find_rule(CodeKey key) noexcept {
  const auto found = find_fde(key.instruction());
  if (!found)
    return Rule(is_put_there(key) ? RuleKind::kEnd : RuleKind::kNone);
  unwind::CfiProgram program(found->fde, found->data_avma, room_);
  if (!run_to(program, key.instruction() - found->fde.start_svma))
    return Rule(RuleKind::kNone);
  return unwind::architecture::rule_of(program.row(), found->fde.cie.is_signal_frame);
}

GeneralStep CodeBook::step_by_row(CodeKey key, unwind::architecture::Registers& registers,
                                  const unwind::StackView& stack) noexcept {
  GeneralStep step{unwind::Step::kUnusable, false};
  const auto take = [&] { step = step_by_loaded_row(key, registers, stack); };
  if (is_fork_)
    take();
  else
    while_loaded(take);
  return step;
}

GeneralStep CodeBook::step_by_loaded_row(CodeKey key, unwind::architecture::Registers& registers,
                                         const unwind::StackView& stack) noexcept {
  const std::lock_guard guard(lock_);
  const auto found = find_fde(key.instruction());
  if (!found)
    return {unwind::Step::kUnusable, false};
  unwind::CfiProgram program(found->fde, found->data_avma, room_);
  if (!run_to(program, key.instruction() - found->fde.start_svma))
    return {unwind::Step::kUnusable, false};
  return {unwind::step_row(program.row(), registers, stack), found->fde.cie.is_signal_frame};
}

/// Runs without the lock: the dynamic linker has its own lock, and calls malloc under it.
bool CodeBook::has_unloaded() noexcept {
  std::uint64_t unloaded = 0;
  ::dl_iterate_phdr(count_unloaded, &unloaded);
  return __atomic_exchange_n(&unloaded_, unloaded, __ATOMIC_RELAXED) != unloaded;
}

void CodeBook::forget_unloaded() noexcept {
  const inprocess::KeepErrno keep;
  if (!has_unloaded())
    return;
  const std::lock_guard guard(lock_);
  modules_.drop_unmapped([this](std::uint64_t start, std::uint64_t end) { drop(start, end); });
  // Addresses that held no code may hold some now.
  table_.remove_if([](const KnownCode& code) { return code.number == 0; });
  publish(generation_, generation_ + 1);
}

/// Drops the entries of a module that is gone, but keeps their numbers.
void CodeBook::drop(std::uint64_t start, std::uint64_t end) noexcept {
  if (!has_gone_)
    has_gone_ = gone_.start();
  table_.remove_if([&](const KnownCode& code) {
    if (code.key.address() < start || code.key.address() > end)
      return false;
    const CodeKey key = key_in(code.key, shared_.codes()[code.number].module);
    if (has_gone_ && code.number != 0 && gone_.find(key) == nullptr)
      gone_.insert({key, Rule(), code.number});
    return true;
  });
}

/// Returns the number that the address had in the module before, or a new one; 0 if there is no
/// room.
std::uint32_t CodeBook::number_of(CodeKey key, std::uint32_t module) noexcept {
  if (has_gone_)
    if (const KnownCode* before = gone_.find(key_in(key, module)); before != nullptr)
      return before->number;
  heap::Code code{};
  code.avma = key.address();
  code.module = module;
  code.is_exact = key.is_exact() ? 1 : 0;
  return append(code);
}

std::uint32_t CodeBook::add_script(std::uint32_t script) noexcept {
  heap::Code code{};
  code.avma = script;
  code.module = heap::kScriptModule;
  const std::lock_guard guard(lock_);
  return append(code);
}

/// 0 if there is no room.
std::uint32_t CodeBook::append(heap::Code code) noexcept {
  heap::Header& header = shared_.header();
  if (header.codes + 1 >= heap::kMaxCodes ||
      !shared_.open<heap::Code>(Section::kCodes, std::uint64_t{header.codes} + 2)) {
    count_up(header.full);
    return 0;
  }
  const std::uint32_t number = header.codes + 1;
  shared_.codes()[number] = code;
  publish(header.codes, number);
  return number;
}

std::optional<KnownCode> CodeBook::add(CodeKey key) noexcept {
  if (!may_be_mapped(key.address()))
    return KnownCode{key, Rule(RuleKind::kNotExecutable), 0};
  const inprocess::KeepErrno keep;
  if (is_fork_)
    return add_loaded(key);
  forget_unloaded();
  std::optional<KnownCode> known;
  while_loaded([&] { known = add_loaded(key); });
  return known;
}

std::optional<KnownCode> CodeBook::add_loaded(CodeKey key) noexcept {
  const std::lock_guard guard(lock_);
  if (const KnownCode* known = table_.find(key); known != nullptr)
    return *known;
  KnownCode code{key, Rule(RuleKind::kNotExecutable), 0};
  if (const std::uint32_t module = modules_.find(key.instruction()); module != 0)
    code.number = number_of(key, module);
  if (code.number != 0)
    code.rule = find_rule(key);
  const KnownCode* known = table_.insert(code);
  return known != nullptr ? std::optional(*known) : std::nullopt;
}

}  // namespace pe::malloctrace
