// SPDX-License-Identifier: MIT
#include "unwind/stacks/sample_unwinder.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "stream/user_copy.h"
#include "unwind/architecture.h"
#include "unwind/stacks/images.h"

namespace pe::unwind {
namespace {

constexpr std::size_t kMostProcesses = 4'096;
constexpr std::size_t kMaxThreads = 16'384;

/// Covers the memory after the first function of a thread's stack.  Also covers the distance
/// between the first functions of the dynamic linker and of the program, which start at the same
/// end.
constexpr std::uint64_t kRootFrame = 1024;

bool is_near(std::uint64_t root_sp, std::uint64_t other) {
  return std::max(root_sp, other) - std::min(root_sp, other) <= kRootFrame;
}

std::optional<std::uint64_t> stack_pointer_of(const WalkStart& start) {
  return start.registers.get(architecture::kStackPointer);
}

WalkStart start_of(const stream::Sample& sample, const perf_event_attr& attr) {
  WalkStart start;
  stream::for_each_register(
      sample, attr.sample_regs_user,
      [&](unsigned number, std::uint64_t value) { start.registers.set(number, value); });
  return start;
}

}  // namespace

SampleUnwinder::SampleUnwinder(const stream::History& history, UnwindOptions options)
    : history_(history),
      options_(std::move(options)),
      images_(options_.match, Images::kMaxTableBytes, options_.budget),
      walker_(cache_),
      frames_(kMaxFrames) {}

void SampleUnwinder::follow() {
  if (const auto& ended = history_.ended_thread()) {
    threads_.erase(ended->tid);
    if (ended->tid == ended->pid)
      spaces_.erase(ended->pid);
  }
  const auto& change = history_.mapping_change();
  if (!change)
    return;
  if (change->mapped == nullptr)
    threads_.erase(change->pid);  // the first thread now has another program's stack
  const auto space = spaces_.find(change->pid);
  if (space == spaces_.end())
    return;
  const stream::Mapping* mapping = history_.processes().find(change->pid, change->start);
  const bool is_too_large = space->second.size() >= stream::AddressSpace::kMaxMappings;
  if (change->mapped == nullptr || mapping == nullptr || is_too_large)
    spaces_.erase(space);
  else
    add_mapping(space->second, *mapping, change->pid);
}

void SampleUnwinder::add_mapping(AddressSpace& space, const stream::Mapping& mapping,
                                 std::uint32_t pid) {
  CodeMapping code{.start_avma = mapping.start,
                   .end_avma = mapping.end,
                   .file_offset = mapping.file_offset,
                   .image = std::nullopt};
  if (!mapping.file->is_anonymous())
    code.image = images_.number_of(mapping, pid);
  space.map(code);
}

AddressSpace& SampleUnwinder::space_of(std::uint32_t pid) {
  const auto known = spaces_.find(pid);
  if (known != spaces_.end())
    return known->second;
  if (spaces_.size() >= kMostProcesses)
    spaces_.clear();
  const CodeSource code = [this, pid](auto avma, auto into) { return read_code(pid, avma, into); };
  const ImageSource images = [this](std::uint32_t image) { return images_.table(image); };
  TableOfCode tables;
  if (options_.table_at)
    tables = [this, pid](std::uint64_t avma) { return options_.table_at(pid, avma); };
  RuleOfCode rules;
  if (options_.runtime_code != nullptr)
    rules = [this, pid](std::uint64_t avma) { return options_.runtime_code->rule(pid, avma); };
  auto& space = spaces_.try_emplace(pid, images, code, tables, rules).first->second;
  if (const auto* mapped = history_.processes().space(pid))
    for (const auto& [start, mapping] : mapped->all())
      add_mapping(space, mapping, pid);
  return space;
}

void SampleUnwinder::withdraw_rules(std::uint32_t pid) {
  if (const auto space = spaces_.find(pid); space != spaces_.end())
    space->second.withdraw_rules();
}

std::size_t SampleUnwinder::read_code(std::uint32_t pid, std::uint64_t avma,
                                      std::span<std::byte> into) const {
  // A process may have ended before its samples are read.
  const std::size_t read = options_.code_at ? options_.code_at(pid, avma, into) : 0;
  return read > 0 ? read : read_file(pid, avma, into);
}

/// Reads code from the mapped file.
std::size_t SampleUnwinder::read_file(std::uint32_t pid, std::uint64_t avma,
                                      std::span<std::byte> into) const {
  const stream::Mapping* mapping = history_.processes().find(pid, avma);
  if (mapping == nullptr || mapping->file->is_anonymous())
    return 0;
  const auto opened = objects::open_mapped_image(static_cast<pid_t>(pid), *mapping, options_.match,
                                                 /*cache=*/nullptr);
  const auto* image = std::get_if<objects::Image>(&opened);
  return image != nullptr && image->read_at(mapping->file_offset + (avma - mapping->start), into)
             ? into.size()
             : 0;
}

SampleUnwinder::Thread& SampleUnwinder::thread_of(std::uint32_t tid) {
  if (threads_.size() >= kMaxThreads)
    threads_.clear();
  return threads_[tid];
}

std::span<const std::uint64_t> SampleUnwinder::call_chain(const stream::Sample& sample,
                                                          const perf_event_attr& attr,
                                                          const Behind& behind) {
  chain_.clear();
  misc_of_walk_ = 0;
  for (std::size_t i = 0; i < sample.callchain.size(); ++i) {
    if (sample.callchain[i] == PERF_CONTEXT_USER && sample.has_user_copy())
      break;  // the kernel's walk by frame pointers, which ours replaces
    chain_.push_back(sample.callchain[i]);
  }
  if (!sample.has_user_copy())
    return chain_;
  const WalkStart start = start_of(sample, attr);
  if (!stack_pointer_of(start)) {
    ++counts_.foreign;
    if (const auto ip = stream::user_ip(sample, attr.sample_regs_user))
      chain_.insert(chain_.end(), {std::uint64_t{PERF_CONTEXT_USER}, *ip});
    return chain_;
  }
  const bool is_of_runtime = has_runtime(sample.pid);
  Walked walked = walk(sample, start, behind);
  if (is_of_runtime && options_.runtime_code->are_outdated(
                           sample.pid, std::span(frames_).first(walked.result.frames))) {
    withdraw_rules(sample.pid);
    walked = walk(sample, start, behind);
  }
  // execve(2) has replaced the memory, but not yet the registers: nothing of the program is left.
  if (walked.result.stop != Stop::kEndOfStack && sample.user_stack.empty() &&
      is_in_system_call(start.registers))
    return chain_;
  if (walked.result.stop != Stop::kEndOfStack && walked.result.frames == 1 &&
      is_at_start(start.registers, [&](std::uint64_t avma, std::span<std::byte> into) {
        return read_code(sample.pid, avma, into);
      }))
    walked.result.stop = Stop::kEndOfStack;
  misc_of_walk_ = stream::misc_of_walk(walked.result.stop == Stop::kEndOfStack);
  count(sample, walked);
  if (is_of_runtime)
    add_runtime_frames(sample, start, walked);
  else
    add_frames(walked);
  return chain_;
}

SampleUnwinder::Walked SampleUnwinder::walk(const stream::Sample& sample, const WalkStart& start,
                                            const Behind& behind) {
  const StackView stack(*stack_pointer_of(start), sample.user_stack);
  Thread& thread = thread_of(sample.tid);
  if (has_runtime(sample.pid))
    thread.history.forget();  // so that the frame pointers of all frames are known
  Walked walked{.result = walker_.walk(space_of(sample.pid), start, stack, frames_, thread.history),
                .stack = sample.user_stack};
  const Stop stop = walked.result.stop;
  walked.is_on_copy =
      walked.result.last.sp >= stack.start() && walked.result.last.sp <= stack.end();
  if (stop == Stop::kEndOfStack && thread.history.size() > 0)
    thread.root_sp = thread.history.root_stack_pointer();
  thread.is_cut = stop == Stop::kStackNotCaptured && walked.is_on_copy;
  if (!options_.may_continue)
    return walked;
  if (stop == Stop::kEndOfStack && sample.has_full_copy())
    learn(thread, walked.result, stack);
  if (stop == Stop::kStackNotCaptured && !walked.is_on_copy)
    continue_as_kernel(sample, walked);
  if (stop != Stop::kStackNotCaptured || !walked.is_on_copy)
    return walked;
  // Memory that was read from the process is the stack itself.  An earlier stack is a guess.  It is
  // wrong if two callers enter the same recursion alternately.
  if (!still_stood(thread, stack, behind) || !continue_behind(sample, start, behind.bytes, walked))
    continue_from_earlier(thread, walked, stack);
  walked.is_too_deep = thread.deep_sp != 0 && stack.start() <= thread.deep_sp;
  return walked;
}

/// Continues on another stack, to which only the frame pointer leads.  Follows the kernel's own
/// walk at the time of the sample, from the last frame that both walks found.
void SampleUnwinder::continue_as_kernel(const stream::Sample& sample, Walked& walked) {
  std::size_t count = walked.result.frames;
  const Frame last = frames_[count - 1];
  AddressSpace& space = space_of(sample.pid);
  bool is_of_program = false;
  bool has_met = false;
  for (std::size_t i = 0; i < sample.callchain.size(); ++i) {
    const std::uint64_t address = sample.callchain[i];
    if (address >= PERF_CONTEXT_MAX)
      is_of_program = address == PERF_CONTEXT_USER;
    else if (has_met && is_of_program && count < frames_.size() && space.find(address - 1))
      frames_[count++] = Frame(address, FrameSource::kFramePointer, false);
    else if (is_of_program && !last.is_exact() && address == last.address())
      has_met = true;
  }
  if (count == walked.result.frames ||
      space.rule(frames_[count - 1].address() - 1).kind() != RuleKind::kEnd)
    return;
  walked.result.frames = count;
  walked.result.stop = Stop::kEndOfStack;
}

/// Stores the stack: a thread whose copy was full may be cut the next time.
void SampleUnwinder::learn(Thread& thread, const WalkResult& result, const StackView& stack) {
  const auto stack_pointers = walker_.stack_pointers(thread.history);
  if (stack_pointers.size() != result.frames || result.frames == 0)
    return;
  if (!thread.memory)
    thread.memory = std::make_unique<StackMemory>();
  thread.memory->learn({std::span(frames_).first(result.frames), stack_pointers}, result.walked(),
                       stack);
}

void SampleUnwinder::continue_from_earlier(Thread& thread, Walked& walked, const StackView& stack) {
  const std::size_t known = walked.result.frames;
  const auto stack_pointers = walker_.stack_pointers(thread.history);  // may be of a longer walk
  if (!thread.memory || stack_pointers.size() < known)
    return;
  const std::size_t callers =
      thread.memory->callers({std::span(frames_).first(known), stack_pointers.first(known)}, stack,
                             std::span(frames_).subspan(known));
  if (callers == 0)
    return;
  walked.result.frames += callers;
  walked.result.stop = Stop::kEndOfStack;
  walked.continued_from = known;
  ++counts_.from_earlier;
}

MemoryRange SampleUnwinder::wanted_memory(const stream::Sample& sample,
                                          const perf_event_attr& attr) {
  const WalkStart start = start_of(sample, attr);
  const auto sp = stack_pointer_of(start);
  if (!options_.may_continue || !sp || sample.user_stack.empty() ||
      is_too_deep_again(thread_of(sample.tid), *sp))
    return {};
  std::uint64_t reach = reach_behind(sample, *sp);
  if (reach == 0)
    return {};
  // Nothing is known yet of a program that has just started.  The mapping around its stack may be a
  // heap, as for goroutines, whose stacks are in one.
  if (space_of(sample.pid).size() == 0)
    reach = std::min(reach, kUnknownReach);
  else if (!is_cut_short(sample, start))
    return {};
  const std::uint64_t end = *sp + sample.user_stack.size();
  return {.start = end - std::min(sample.user_stack.size(), kMostAgreementBytes),
          .end = end + reach};
}

/// Whether the stack probably has too many frames, as the thread's last one had: the memory after
/// its copy, which may be megabytes, would not complete it.  That is wrong if the thread has
/// returned from a recursion, and has large frames now.  So one in kRecheck is read.
bool SampleUnwinder::is_too_deep_again(Thread& thread, std::uint64_t sp) {
  constexpr unsigned kRecheck = 16;
  return thread.deep_sp != 0 && sp <= thread.deep_sp && ++thread.unread_deep % kRecheck != 0;
}

void SampleUnwinder::note_depth(Thread& thread, std::uint64_t sp, Stop stop) {
  thread.deep_sp = stop == Stop::kTooDeep ? std::max(thread.deep_sp, sp) : 0;
}

/// Whether the copy ends before the stack does.
bool SampleUnwinder::is_cut_short(const stream::Sample& sample, const WalkStart& start) {
  const StackView stack(*stack_pointer_of(start), sample.user_stack);
  const auto result = walker_.walk(space_of(sample.pid), start, stack, frames_);
  return result.stop == Stop::kStackNotCaptured && result.last.sp >= stack.start();
}

std::size_t SampleUnwinder::used_of_copy(const stream::Sample& sample,
                                         const perf_event_attr& attr) {
  const std::size_t copied = sample.user_stack.size();
  const auto sp = stack_pointer_of(start_of(sample, attr));
  const Thread& thread = thread_of(sample.tid);
  if (!sp || thread.is_cut || thread.root_sp < *sp || thread.root_sp - *sp >= copied)
    return copied;
  return thread.root_sp - *sp;
}

/// Returns how far beyond the copy the thread's first function may be.
std::uint64_t SampleUnwinder::reach_behind(const stream::Sample& sample, std::uint64_t sp) {
  const std::uint64_t end = sp + sample.user_stack.size();
  Thread& thread = thread_of(sample.tid);
  const std::uint64_t root = thread.root_sp;
  if (root >= end && root - end <= kMostReach)
    return root - end + kRootFrame;
  // A copy can also end early, before a page of the stack that was never touched (the frame of a
  // function that has just started).  The end of the stack's mapping reveals this.  If a thread's
  // copy holds the known root, the mapping is requested only after a copy was cut.  A root below
  // the copy belongs to another stack: of the program before exec, whose records may not have been
  // followed yet.
  const bool holds_root = root >= sp && root < end;
  if (!thread.is_cut && holds_root)
    return 0;
  if (options_.stack_at && (sp < thread.stack.start || sp >= thread.stack.end))
    thread.stack = options_.stack_at(sample.pid, sp);
  if (thread.stack.end == 0)
    return kBlindReach;
  const std::uint64_t left = thread.stack.end > end ? thread.stack.end - end : 0;
  return left > kMostReach ? kBlindReach : left;
}

/// Whether the outermost frame of the copy still existed when the memory after it was read.  Its
/// captured body must be unchanged, and so must the return address of the function that it called.
/// At least kLeastAgreementBytes must be unchanged, or all bytes above the innermost frame if they
/// are fewer.  The thread may have changed the innermost frame since.
bool SampleUnwinder::still_stood(const Thread& thread, const StackView& stack,
                                 const Behind& behind) {
  const auto stack_pointers = walker_.stack_pointers(thread.history);
  if (behind.bytes.empty() || stack_pointers.empty())
    return false;
  const auto bytes_from = [&](std::uint64_t sp) {
    return stack.end() - std::min(stack.end(), sp) + architecture::kWordBytes;
  };
  const std::uint64_t body = bytes_from(stack_pointers.back());
  const std::uint64_t callers = bytes_from(stack_pointers[stack_pointers.size() > 1 ? 1 : 0]);
  const std::uint64_t required = std::max(body, std::min(callers, kLeastAgreementBytes));
  return behind.agreed_bytes >=
         std::min({required, stack.end() - stack.start(), kMostAgreementBytes});
}

/// Walks again, on a longer stack; false if the result is rejected.
bool SampleUnwinder::continue_behind(const stream::Sample& sample, const WalkStart& start,
                                     Bytes behind, Walked& walked) {
  longer_.assign(sample.user_stack.begin(), sample.user_stack.end());
  longer_.insert(longer_.end(), behind.begin(), behind.end());
  const StackView stack(*stack_pointer_of(start), longer_);
  Thread& thread = thread_of(sample.tid);
  if (has_runtime(sample.pid))
    thread.history.forget();
  const auto result = walker_.walk(space_of(sample.pid), start, stack, frames_, thread.history);
  if (result.stop == Stop::kStackNotCaptured)
    thread.root_sp = 0;
  note_depth(thread, stack.start(), result.stop);
  // If the walk does not end where the thread started, the memory had changed.  The frames from the
  // copy are still right, and frames_ starts with them.
  if (result.stop != Stop::kEndOfStack || thread.history.size() == 0)
    return false;
  const std::uint64_t root_sp = thread.history.root_stack_pointer();
  if (thread.root_sp != 0 && !is_near(thread.root_sp, root_sp) && thread.other_root_sp != root_sp) {
    thread.other_root_sp = root_sp;  // the same place twice is no accident: a coroutine's stack
    return false;
  }
  thread.root_sp = root_sp;
  walked = {.result = result, .continued_from = walked.result.frames, .stack = longer_};
  learn(thread, result, stack);
  ++counts_.from_process;
  return true;
}

/// Counts by the module of the outermost frame.
void SampleUnwinder::count_end(std::uint32_t pid, std::span<const Frame> frames, Stop stop) {
  const stream::Mapping* mapping =
      frames.empty() ? nullptr : history_.processes().find(pid, frames.back().address());
  std::string module = "[unknown]";
  if (mapping != nullptr)
    module = mapping->file->is_anonymous() ? "[anon]" : file_name(mapping->file->path);
  if (mapping != nullptr && images_.lacked_descriptors(*mapping->file))
    ++counts_.unopened[module];
  else
    ++counts_.ended[{module, stop}];
}

void SampleUnwinder::count_frames(std::span<const Frame> frames) {
  ++counts_.stacks;
  for (const Frame frame : frames) {
    counts_.by_frame_pointer += frame.source() == FrameSource::kFramePointer ? 1 : 0;
    counts_.by_leaf += frame.source() == FrameSource::kLeaf ? 1 : 0;
  }
}

void SampleUnwinder::count_walked(std::uint32_t pid, std::span<const Frame> frames, Stop stop) {
  count_frames(frames);
  if (stop == Stop::kEndOfStack)
    ++counts_.complete;
  else
    count_end(pid, frames, stop);
}

void SampleUnwinder::count(const stream::Sample& sample, const Walked& walked) {
  const auto frames = std::span(frames_).first(walked.result.frames);
  count_frames(frames);
  const Stop stop = walked.is_too_deep && walked.result.stop != Stop::kEndOfStack
                        ? Stop::kTooDeep
                        : walked.result.stop;
  if (stop == Stop::kEndOfStack) {
    ++counts_.complete;
  } else if (stop == Stop::kStackNotCaptured && sample.has_full_copy() && walked.is_on_copy) {
    ++counts_.cut;
    counts_.cut_bytes = sample.user_stack_limit;
  } else {
    count_end(sample.pid, frames, stop);
  }
}

/// Appends the marks and addresses of the program's part.
void SampleUnwinder::add_frames(const Walked& walked) {
  chain_.push_back(PERF_CONTEXT_USER);
  for (std::size_t i = 0; i < walked.result.frames; ++i) {
    if (i != 0 && i == walked.continued_from)
      chain_.push_back(PERF_CONTEXT_USER);
    chain_.push_back(chain_address(frames_[i], i == 0));
  }
}

/// Does the same, with functions in place of frames of a runtime.
void SampleUnwinder::add_runtime_frames(const stream::Sample& sample, const WalkStart& start,
                                        const Walked& walked) {
  const StackView stack(*stack_pointer_of(start), walked.stack);
  const auto stack_pointers = walker_.stack_pointers(thread_of(sample.tid).history);
  chain_.push_back(PERF_CONTEXT_USER);
  bool is_first = true;
  // A record holds fewer; its end would be left out.
  for (std::size_t i = 0; i < walked.result.frames && chain_.size() < 4 * kMaxFrames; ++i) {
    if (i != 0 && i == walked.continued_from)
      chain_.push_back(PERF_CONTEXT_USER);
    const Frame frame = frames_[i];
    const RuntimeCode::WalkedFrame of_runtime{
        frame,
        {frame.address(), i < stack_pointers.size() ? stack_pointers[i] : 0,
         walker_.frame_pointer(i)},
        i == 0 ? &start.registers : nullptr};
    functions_.clear();
    if (!options_.runtime_code->functions(sample.pid, of_runtime, stack, functions_)) {
      chain_.push_back(chain_address(frame, is_first));
      is_first = false;
    }
    for (const std::uint64_t function : functions_) {
      chain_.push_back(function + (is_first ? 0 : 1));
      is_first = false;
    }
  }
}

}  // namespace pe::unwind
