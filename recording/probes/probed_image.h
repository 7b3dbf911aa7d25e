// An ELF file with probes.  It is opened once: for its symbols and its code, and for the kernel.
//
// The kernel opens the file of a probe by a path.  The owner of a path can swap it at any time, so
// that the offsets of one file would become breakpoints in another, in each process that maps that.
// So the kernel gets /proc/self/fd/N of our descriptor.  The kernel follows such a link to the open
// file itself, without any name (proc(5); fs/proc/fd.c, proc_fd_link(); nd_jump_link()).
//
// The content can still change: its owner may write into it.  is_unchanged() detects that, once the
// probes exist.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "objects/image.h"

namespace pe::recording {

class ProbedImage {
 public:
  /// `path` is for messages.
  ProbedImage(objects::Image image, std::string path);

  [[nodiscard]] const objects::Image& image() const noexcept { return image_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Returns the path that leads this process to the open file.
  [[nodiscard]] std::string kernel_path() const;

  /// Keeps the instruction at a place in the file, which will have a probe.
  void remember(std::uint64_t file_offset);
  /// Are the file's size, its time of modification, and the remembered instructions as before?
  [[nodiscard]] bool is_unchanged() const;

 private:
  static constexpr std::size_t kLongestInstruction = 15;
  using Instruction = std::array<std::byte, kLongestInstruction>;
  struct State {
    std::int64_t size_bytes = 0, modified_s = 0, modified_ns = 0;
    bool operator==(const State&) const = default;
  };
  [[nodiscard]] State state() const;
  /// Returns zeros in place of what is beyond the end of the file.
  [[nodiscard]] Instruction instruction_at(std::uint64_t file_offset) const;

  objects::Image image_;
  std::string path_;
  State state_;
  std::map<std::uint64_t, Instruction> places_;
};

}  // namespace pe::recording
