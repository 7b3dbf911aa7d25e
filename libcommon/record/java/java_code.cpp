// SPDX-License-Identifier: MIT
#include "record/java/java_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/plural.h"
#include "objects/mapped_image.h"
#include "record/java/java_rules.h"
#include "stream/proc/memory.h"

namespace pe::record {
namespace {

using runtimes::CodeBlob;
using runtimes::HotspotProcess;

constexpr std::uint64_t kPeriodNs = 100'000'000;
/// A JVM that has just started has no layouts yet.
constexpr std::uint32_t kMostAttempts = 20;
/// Other runtimes in the same process number their functions from 1.
constexpr std::uint32_t kFirstNumber = std::uint32_t{1} << 31U;
/// The registers in which the interpreter has the address of the bytecode, and at the start of a
/// method the method.
constexpr unsigned kBytecodeRegister = 13, kMethodRegister = 3;

}  // namespace

void JavaCode::follow(const stream::History& history) {
  if (const auto& ended = history.ended_thread(); ended && ended->tid == ended->pid)
    forget(ended->pid);
  const auto& change = history.mapping_change();
  if (!change)
    return;
  if (change->mapped == nullptr) {  // another program, or a new process
    forget(change->pid);
    return;
  }
  if (!stream::is_jvm(change->mapped->path) || processes_.contains(change->pid))
    return;
  if (const auto* mapping = history.processes().find(change->pid, change->start))
    processes_.emplace(change->pid, Process{.library = *mapping});
}

void JavaCode::forget(std::uint32_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end())
    return;
  unopened_ += found->second.is_unopened() ? 1 : 0;
  processes_.erase(found);
}

void JavaCode::open(std::uint32_t pid, Process& process) {
  const stream::Mapping& mapping = process.library;
  const auto opened = objects::open_mapped_image(static_cast<pid_t>(pid), mapping,
                                                 objects::FileMatch::kSameInode, nullptr);
  const auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr)
    return;
  const auto [binary, is_new] = binaries_.try_emplace(mapping.file);
  if (is_new)
    binary->second = runtimes::find_hotspot(*image);
  const auto svma = objects::svma_of_code_mapping(image->segments(), mapping.file_offset);
  if (!binary->second || !svma) {
    process.attempts = kMostAttempts;
    process.is_unknown = true;
    unknown_.insert("a Java without descriptions of its structures");
    return;
  }
  auto jvm = HotspotProcess::open(
      [pid](std::uint64_t avma, std::span<std::byte> into) {
        return stream::read_memory(static_cast<pid_t>(pid), avma, into);
      },
      *binary->second, mapping.start - *svma);
  if (auto* const found = std::get_if<HotspotProcess>(&jvm)) {
    process.jvm.emplace(std::move(*found));
  } else if (const auto& why = std::get<std::string>(jvm); !why.empty()) {
    process.attempts = kMostAttempts;
    process.is_unknown = true;
    unknown_.insert(why);
  }
}

/// Returns null if the process has no JVM, or one that has not been opened.
HotspotProcess* JavaCode::known_jvm(std::uint32_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end() || !found->second.jvm)
    return nullptr;
  Process& process = found->second;
  if (const std::uint64_t now_ns = monotonic_ns(); now_ns - process.period_ns >= kPeriodNs) {
    process.period_ns = now_ns;
    process.jvm->begin_period();
  }
  return &*process.jvm;
}

/// Returns the JVM of a process that runs code without a file.  A JVM that does has finished its
/// start, and its tables are complete.
HotspotProcess* JavaCode::jvm_of(std::uint32_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end())
    return nullptr;
  Process& process = found->second;
  const std::uint64_t now_ns = monotonic_ns();
  if (!process.jvm && process.attempts < kMostAttempts && now_ns - process.period_ns >= kPeriodNs) {
    process.period_ns = now_ns;
    ++process.attempts;
    open(pid, process);
  }
  return known_jvm(pid);
}

std::optional<unwind::Rule> JavaCode::rule(std::uint32_t pid, std::uint64_t avma) {
  HotspotProcess* const jvm = jvm_of(pid);
  const CodeBlob* const blob = jvm != nullptr ? jvm->code_at(avma) : nullptr;
  if (blob == nullptr)
    return std::nullopt;
  if (jvm->is_call_stub_return(avma + 1))
    return unwind::Rule(unwind::RuleKind::kFramePointer, 2, 2);
  if (const std::uint32_t words = jvm->is_return_barrier(avma + 1) ? jvm->continuation_words() : 0;
      words != 0)
    return unwind::Rule(unwind::RuleKind::kStackPointer, words, 2);
  return java_rule(*blob, avma, [jvm](std::uint64_t from, std::span<std::byte> into) {
    return jvm->read_code(from, into);
  });
}

bool JavaCode::are_outdated(std::uint32_t pid, std::span<const unwind::Frame> frames) {
  HotspotProcess* const jvm = known_jvm(pid);
  if (jvm == nullptr)
    return false;
  for (const unwind::Frame frame : frames)
    if (jvm->has_code_at(frame.address() - (frame.is_exact() ? 0 : 1)))
      jvm->code_at(frame.address() - (frame.is_exact() ? 0 : 1));
  return jvm->take_changed();
}

std::uint32_t JavaCode::number_of(std::uint32_t pid, const stream::ScriptFunction& function) {
  const std::uint32_t number = kFirstNumber + numbers_++;
  on_function_(pid, number, function);
  return number;
}

/// Returns the address of a frame that stands for others; `known` is where it is kept.
std::uint64_t JavaCode::stand_in(std::uint32_t pid, std::uint64_t& known, const char* name) {
  if (known == 0)
    known = stream::script_address(
        number_of(pid, {.name = name, .file = {}, .line = 0, .kind = stream::ScriptKind::kJava}));
  return known;
}

std::uint64_t JavaCode::unreadable(std::uint32_t pid) {
  ++unreadable_;
  return stand_in(pid, processes_.at(pid).unreadable_at, "[java: unreadable]");
}

/// Returns the function of a frame of the interpreter.  Only a stack's first frame may have its
/// bytecode's address in a register.
std::optional<std::uint64_t> JavaCode::interpreted(std::uint32_t pid, HotspotProcess& jvm,
                                                   const WalkedFrame& walked,
                                                   const unwind::StackView& stack) {
  const unwind::FrameState& state = walked.state;
  const unwind::architecture::Registers* const registers = walked.registers;
  const auto word_at = [&](std::int32_t words) {
    return stack.read(state.fp +
                      unwind::architecture::kWordBytes * static_cast<std::uint64_t>(words));
  };
  const auto current = registers != nullptr ? registers->get(kBytecodeRegister) : std::nullopt;
  auto method = word_at(jvm.layout().frame_method);
  if (!method && registers != nullptr)  // its frame is not complete
    method = registers->get(kMethodRegister);
  if (state.fp == 0 || !method)
    return std::nullopt;
  const bool is_current = current && jvm.is_bytecode_of(*method, *current);
  return jvm.interpreted(*method,
                         is_current ? *current : word_at(jvm.layout().frame_bytecode).value_or(0),
                         [&](const auto& function) { return number_of(pid, function); });
}

bool JavaCode::functions(std::uint32_t pid, const WalkedFrame& walked,
                         const unwind::StackView& stack, std::vector<std::uint64_t>& addresses) {
  const unwind::Frame frame = walked.frame;
  const auto found = processes_.find(pid);
  if (found == processes_.end() || !found->second.jvm)
    return false;
  HotspotProcess& jvm = *found->second.jvm;
  std::uint64_t avma = frame.address();
  const std::uint64_t at = avma - (frame.is_exact() ? 0 : 1);
  if (!jvm.has_code_at(at))
    return false;
  if (!frame.is_exact() && jvm.is_return_barrier(avma)) {
    addresses.push_back(stand_in(pid, found->second.in_heap_at, "[java: callers in the heap]"));
    return true;
  }
  const CodeBlob* const blob = jvm.code_at(at);
  ++frames_;
  if (blob == nullptr) {
    addresses.push_back(unreadable(pid));
    return true;
  }
  if (blob->kind == CodeBlob::Kind::kInterpreter) {
    const auto address = interpreted(pid, jvm, walked, stack);
    addresses.push_back(address ? *address : unreadable(pid));
    return true;
  }
  if (!frame.is_exact() && blob->deopt_handler != 0 && avma == blob->deopt_handler)
    avma = stack.read(walked.state.sp + blob->original_pc).value_or(avma);
  for (const std::uint64_t address : jvm.functions_at(
           *blob, avma, [&](const auto& function) { return number_of(pid, function); }))
    addresses.push_back(address != 0 ? address : unreadable(pid));
  return true;
}

void JavaCode::describe(Closing& closing) const {
  if (frames_ > 0)
    closing.detail(fmt::format("{} of Java, {} unreadable", plural(frames_, "frame"), unreadable_));
  const auto unopened =
      unopened_ + static_cast<std::uint64_t>(std::ranges::count_if(
                      processes_, [](const auto& item) { return item.second.is_unopened(); }));
  if (unopened > 0)
    closing.doubt("the memory of " + plural(unopened, "process") + " of Java could not be read",
                  "record as root, or with CAP_SYS_PTRACE");
  for (const std::string& unknown : unknown_)
    closing.doubt(unknown + " has functions without names", "Java 17 to 25 have names");
}

}  // namespace pe::record
