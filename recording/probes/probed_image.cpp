// SPDX-License-Identifier: MIT
#include "recording/probes/probed_image.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace pe::recording {

ProbedImage::ProbedImage(objects::Image image, std::string path)
    : image_(std::move(image)), path_(std::move(path)), state_(state()) {}

std::string ProbedImage::kernel_path() const {
  return fmt::format("/proc/self/fd/{}", image_.fd());
}

void ProbedImage::remember(std::uint64_t file_offset) {
  places_.emplace(file_offset, instruction_at(file_offset));
}

bool ProbedImage::is_unchanged() const {
  return state() == state_ &&
         std::all_of(places_.begin(), places_.end(), [this](const auto& place) {
           return instruction_at(place.first) == place.second;
         });
}

ProbedImage::State ProbedImage::state() const {
  struct stat status = {};
  if (::fstat(image_.fd(), &status) != 0)
    return {};
  return {.size_bytes = status.st_size,
          .modified_s = status.st_mtim.tv_sec,
          .modified_ns = status.st_mtim.tv_nsec};
}

ProbedImage::Instruction ProbedImage::instruction_at(std::uint64_t file_offset) const {
  Instruction instruction{};
  (void)image_.read_at(file_offset, instruction);
  return instruction;
}

}  // namespace pe::recording
