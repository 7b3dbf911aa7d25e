// SPDX-License-Identifier: MIT
#include "malloctrace/script_names.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/byte_reader.h"
#include "languages/registry.h"
#include "objects/image.h"
#include "objects/mapped_image.h"
#include "stream/records/sample.h"
#include "stream/script_mapping.h"

namespace pe::malloctrace {

void append_chain(std::span<const heap::Frame> frames, std::vector<std::uint64_t>& chain) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::uint64_t exact = frames[i].is_exact ? frames[i].avma : frames[i].avma - 1;
    chain.push_back(i == 0 ? exact : exact + 1);
  }
}

void ScriptNames::begin_process(pid_t pid, const heap::Heap& heap) {
  heap_ = &heap;
  pid_ = pid;
  has_unreadable_ = false;
  addresses_.assign(heap.scripts.size(), 0);
  process_.reset();
  loop_.clear();
  if (heap.header.has_script_layout == 0 || heap.scripts.empty() ||
      std::ranges::none_of(languages::interpreters(), [&](const auto* one) {
        return one->number == heap.header.script_layout.language;
      }))
    return;
  languages::ScriptBinary binary;
  binary.language = heap.header.script_layout.language;
  process_.emplace(languages::Memory([this](std::uint64_t avma,
                                            std::span<std::byte> into) { return read(avma, into); },
                                     Spender(budget_, static_cast<std::uint32_t>(pid))),
                   heap.header.script_layout, binary, 0);
  find_loop();
}

const ScriptNames::File& ScriptNames::file_of(const heap::Module& module) {
  const std::string path(module.path, module.path_length);
  const auto [item, is_new] =
      files_.try_emplace(FileKey(path, module.major, module.minor, module.inode));
  File& file = item->second;
  if (!is_new)
    return file;
  const stream::MappedFile mapped{
      .path = path, .device = makedev(module.major, module.minor), .inode = module.inode};
  const stream::Mapping mapping{
      .start = module.start, .end = module.end, .file_offset = module.file_offset, .file = &mapped};
  const auto opened =
      objects::open_mapped_image(pid_, mapping, objects::FileMatch::kSameInode, nullptr);
  const auto* image = std::get_if<objects::Image>(&opened);
  if (image == nullptr)
    return file;
  file.binary = languages::find_whole_interpreter(*image, languages::may_be_interpreter(path));
  file.segments.assign(image->segments().begin(), image->segments().end());
  return file;
}

/// Finds the code of the interpreter's loop.
void ScriptNames::find_loop() {
  const auto take = [this](const heap::Module& module) {
    const File& file = file_of(module);
    const auto svma = objects::svma_of_code_mapping(file.segments, module.file_offset);
    if (!file.binary || !svma || file.binary->language != heap_->header.script_layout.language)
      return false;
    for (const auto& [start, end] : file.binary->loop)
      loop_.push_back({start + module.start - *svma, end + module.start - *svma});
    return true;
  };
  const auto has_name = [](const heap::Module& module) {
    return languages::may_be_interpreter({module.path, module.path_length});
  };
  constexpr std::size_t kMostOthers = 8;
  std::size_t others = 0;
  for (const bool is_named : {true, false})
    for (const heap::Module& module : heap_->modules) {
      if (has_name(module) != is_named || (!is_named && ++others > kMostOthers))
        continue;
      if (module.path_length != 0 && module.path[0] == '/' && take(module))
        return;
    }
}

/// Reads the copies of the present frame.  Between them, memory is zero.
std::size_t ScriptNames::read(std::uint64_t avma, std::span<std::byte> into) const {
  std::ranges::fill(into, std::byte{0});
  bool has_any = false;
  ByteReader reader(copies_);
  while (const auto start = reader.take<std::uint64_t>()) {
    const auto bytes = reader.take<std::uint64_t>();
    if (!bytes || *bytes > reader.left().size())
      break;
    const Bytes piece = reader.left().first(*bytes);
    constexpr std::uint64_t kWord = sizeof(std::uint64_t);
    reader.skip(std::min<std::size_t>((*bytes + kWord - 1) / kWord * kWord, reader.left().size()));
    const std::uint64_t from = std::max(avma, *start);
    const std::uint64_t to = std::min(avma + into.size(), *start + *bytes);
    if (from >= to || *start + *bytes < *start)
      continue;
    std::memcpy(into.data() + (from - avma), piece.data() + (from - *start), to - from);
    has_any = true;
  }
  return has_any ? into.size() : 0;
}

/// Returns the address of a frame in the stream; 0 if it is not shown.
std::uint64_t ScriptNames::address_of(const heap::Script& script) {
  const languages::ScriptFrame frame{script.code, script.place, script.mark, script.ends_call != 0};
  copies_ = std::span(heap_->copies).subspan(script.copies, script.copied_bytes);
  const Spender::Scope scope(process_->spender());
  process_->begin_names();
  const auto address = process_->address_of(frame, [&](const stream::ScriptFunction& function) {
    on_function_(next_number_, function);
    return next_number_++;
  });
  if (address)
    return *address;
  const auto& interpreter = languages::interpreter_of(process_->layout().language);
  if (!std::exchange(has_unreadable_, true))
    on_function_(0, {.name = std::string(interpreter.language->unreadable),
                     .file = {},
                     .line = 0,
                     .kind = interpreter.kind});
  return stream::script_address(0);
}

std::span<const std::uint64_t> ScriptNames::chain(const heap::Heap::Stack& stack) {
  native_.assign(1, static_cast<std::uint64_t>(PERF_CONTEXT_USER));
  append_chain(stack.frames, native_);
  if (stack.scripts.empty() || !process_)
    return native_;
  stack_.loop = loop_;
  stack_.words.clear();
  stack_.is_complete = true;
  for (const std::uint32_t number : stack.scripts) {
    const heap::Script& script = heap_->scripts[number];
    const languages::ScriptWord end = script.ends_call != 0 ? languages::kEndsCall : 0;
    if (script.code == languages::kNoCode) {
      stack_.is_complete = stack_.is_complete && end != 0;
      if (end != 0)
        stack_.words.push_back(end);
      continue;
    }
    // Hidden frames have the address 0, and are named again each time; there is one of them.
    std::uint64_t& address = addresses_[number];
    if (address == 0)
      address = address_of(script);
    if (address != 0 || end != 0)
      stack_.words.push_back(address | end);
  }
  return merger_.merge(native_, false, stack_);
}

}  // namespace pe::malloctrace
