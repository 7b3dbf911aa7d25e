// SPDX-License-Identifier: MIT
#include "malloctrace/preload/code_book.h"

#include <dlfcn.h>
#include <link.h>

#include <mutex>

#include "malloctrace/preload/keep_errno.h"
#include "unwind/loaded_cfi.h"
#include "unwind/row_step.h"

namespace pe::malloctrace {
namespace {

using unwind::Rule;
using unwind::RuleKind;

std::optional<unwind::LoadedFde> find_fde(std::uint64_t avma) noexcept {
  dl_find_object found{};
  auto* place = reinterpret_cast<void*>(avma);  // NOLINT(performance-no-int-to-ptr)
  if (::_dl_find_object(place, &found) != 0 || found.dlfo_eh_frame == nullptr)
    return std::nullopt;
  return unwind::find_loaded_fde({reinterpret_cast<std::uint64_t>(found.dlfo_map_start),
                                  reinterpret_cast<std::uint64_t>(found.dlfo_map_end),
                                  reinterpret_cast<std::uint64_t>(found.dlfo_eh_frame)},
                                 avma);
}

/// Goes to the row for `avma`; false if there is none.
bool run_to(unwind::CfiProgram& program, std::uint64_t offset) noexcept {
  while (program.next())
    if (offset < program.to())
      return offset >= program.from();
  return false;
}

/// How many images have been unloaded so far.
int count_unloaded(dl_phdr_info* info, std::size_t /*size*/, void* result) noexcept {
  *static_cast<std::uint64_t*>(result) = info->dlpi_subs;
  return 1;  // the first one says it
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
    return Rule(RuleKind::kNone);
  unwind::CfiProgram program(found->fde, found->data_avma, room_);
  if (!run_to(program, key.instruction() - found->fde.start_svma))
    return Rule(RuleKind::kNone);
  return unwind::architecture::rule_of(program.row(), found->fde.cie.is_signal_frame);
}

GeneralStep CodeBook::step_by_row(CodeKey key, unwind::architecture::Registers& registers,
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

/// Not under the lock: the dynamic linker has one of its own, and calls malloc under it.
bool CodeBook::has_unloaded() noexcept {
  std::uint64_t unloaded = 0;
  ::dl_iterate_phdr(count_unloaded, &unloaded);
  return __atomic_exchange_n(&unloaded_, unloaded, __ATOMIC_RELAXED) != unloaded;
}

void CodeBook::forget_unloaded() noexcept {
  const KeepErrno keep;
  if (!has_unloaded())
    return;
  const std::lock_guard guard(lock_);
  modules_.drop_unmapped([this](std::uint64_t start, std::uint64_t end) {
    table_.remove_if(
        [=](const KnownCode& code) { return code.key.avma() >= start && code.key.avma() <= end; });
  });
  // What was no code may be some now.
  table_.remove_if([](const KnownCode& code) { return code.number == 0; });
  publish(generation_, generation_ + 1);
}

std::optional<KnownCode> CodeBook::add(CodeKey key) noexcept {
  const KeepErrno keep;
  if (!is_fork_)
    forget_unloaded();
  const std::lock_guard guard(lock_);
  if (const KnownCode* known = table_.find(key); known != nullptr)
    return *known;
  const std::uint32_t module = modules_.find(key.instruction());
  heap::Header& header = shared_.header();
  KnownCode code{key, Rule(RuleKind::kNotExecutable), 0};
  if (module != 0 && header.codes + 1 < heap::kMaxCodes) {
    code.rule = find_rule(key);
    code.number = header.codes + 1;
    shared_.codes()[code.number] = {key.avma(), module, key.is_exact() ? 1U : 0U};
    publish(header.codes, code.number);
  } else if (module != 0) {
    count_up(header.full);
  }
  const KnownCode* known = table_.insert(code);
  return known != nullptr ? std::optional(*known) : std::nullopt;
}

}  // namespace pe::malloctrace
