// SPDX-License-Identifier: MIT
#include "recording/bpf/script_layout.h"

#include <algorithm>

namespace pe::recording {
namespace {

std::optional<unwind::PythonScript> kernel_layout_of(const languages::PythonLayout& layout) {
  constexpr std::uint32_t kWordBytes = 8, kHalfBytes = 4;
  const std::uint32_t words = layout.code | layout.caller | layout.instruction | layout.file |
                              layout.name | layout.line_table;
  if (layout.name < kWordBytes)
    return std::nullopt;
  const std::uint32_t short_name = layout.name - kWordBytes;
  // The part of a code object that the kernel's program reads.
  const std::uint32_t first =
      std::min({layout.file, short_name, layout.line_table, layout.first_line}) / kWordBytes *
      kWordBytes;
  const std::uint32_t last =
      std::max({layout.file, layout.name, layout.line_table, layout.first_line});
  if (words % kWordBytes != 0 || layout.first_line % kHalfBytes != 0 ||
      last - first > unwind::kScriptCodeBytes - kWordBytes)
    return std::nullopt;
  return unwind::PythonScript{
      .first_interpreter = layout.first_interpreter,
      .next_interpreter = layout.next_interpreter,
      .first_thread = layout.first_thread,
      .next_thread = layout.next_thread,
      .thread_id = layout.thread_id,
      .frame = layout.frame,
      .has_c_frame = layout.has_c_frame ? 1U : 0U,
      .frame_of_c_frame = layout.frame_of_c_frame,
      .code = layout.code,
      .caller = layout.caller,
      .instruction = layout.instruction,
      .end_mark = layout.end_mark,
      .has_end_flag = layout.call_end == languages::CallEnd::kEntryFlag ? 1U : 0U,
      .code_start = first,
      .file = layout.file - first,
      .short_name = short_name - first,
      .name = layout.name - first,
      .line_table = layout.line_table - first,
      .first_line = layout.first_line - first,
      .text_hash = layout.text_length + kWordBytes};
}

unwind::RubyScript kernel_layout_of(const languages::RubyLayout& layout) {
  return {.next_ractor = layout.next_ractor,
          .threads = layout.threads,
          .context = layout.context,
          .native_thread = layout.native_thread,
          .thread_id = layout.thread_id,
          .thread = layout.thread,
          .previous = layout.previous,
          .frame_bytes = layout.frame_bytes,
          .has_tagged_line = layout.has_tagged_line ? 1U : 0U};
}

}  // namespace

std::optional<unwind::ScriptLayout> kernel_layout(const languages::ScriptLayout& layout,
                                                  std::uint64_t runtime, std::uint64_t file) {
  unwind::ScriptLayout kernel{};
  kernel.runtime = runtime;
  kernel.binary = static_cast<std::uint32_t>(file);
  switch (layout.language) {
    case languages::ScriptLanguage::kPython: {
      const auto python = kernel_layout_of(layout.python);
      if (!python)
        return std::nullopt;
      kernel.language = unwind::kScriptPython;
      kernel.python = *python;
      break;
    }
    case languages::ScriptLanguage::kPhp:
      kernel.language = unwind::kScriptPhp;
      kernel.php = {.file = layout.php.file, .first_line = layout.php.first_line};
      break;
    case languages::ScriptLanguage::kRuby:
      kernel.language = unwind::kScriptRuby;
      kernel.ruby = kernel_layout_of(layout.ruby);
      break;
  }
  return kernel;
}

}  // namespace pe::recording
