// Tells the kernel's programs which processes have an interpreter.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "base/cli/closing.h"
#include "languages/common/frame.h"
#include "languages/common/script_reader.h"
#include "recording/bpf/bpf_object.h"

namespace pe::recording {

/// Returns the stack of an interpreter as the kernel's programs send it: two words for each frame
/// (recording/signal/script_words.h).
languages::ScriptFrames script_frames(std::span<const std::uint64_t> words, bool is_complete);

/// Returns the interpreter that such a record names.
languages::ScriptReader::Found found_script(const unwind::SampleRecord& record);

class ScriptPublisher {
 public:
  /// Sends what `reader` has found since the last call.
  void publish(languages::ScriptReader& reader, unwind::BpfObject& object);
  /// Adds the losses.
  void describe(Closing& closing) const;

 private:
  void publish_process(languages::ScriptReader& reader, std::uint32_t pid,
                       unwind::BpfObject& object);

  std::uint64_t left_out_ = 0;  ///< processes without room in the kernel's map
};

}  // namespace pe::recording
