// Reads any bytes as an ELF image and searches for its call frame information: by section headers,
// by program headers, compressed or not.
// SPDX-License-Identifier: MIT
#include "check_cfi.h"
#include "recording/probes/function_exits.h"
#include "recording/probes/probe_place.h"
#include "recording/probes/source_places.h"
#include "unwind/function_ranges.h"

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  using pe::testing::check;
  const auto opened = pe::objects::Image::from_memory({data, data + size});
  const auto* image = std::get_if<pe::objects::Image>(&opened);
  if (image == nullptr)
    return 0;
  if (const auto& header = image->eh_frame_header()) {
    const auto bytes = image->loaded_bytes(header->svma, header->file_bytes);
    check(!bytes || (bytes->bytes.size() <= header->file_bytes && bytes->bytes.size() <= size));
  }
  const auto sections = pe::unwind::CfiSection::all_of(*image);
  check(sections.size() <= 2);
  for (const auto& section : sections)
    pe::testing::check_index(section);
  const pe::unwind::FunctionRanges ranges(*image);
  for (const auto& segment : image->segments()) {
    const auto start = ranges.start_of(segment.svma);
    check(!start || *start <= segment.svma);
    if (start)
      for (const std::uint64_t exit : pe::unwind::find_exits(*image, ranges, *start).svmas)
        check(ranges.start_of(exit) && pe::objects::file_offset_of_code(image->segments(), exit));
    // The start of a function may have a probe; whether the next byte may is decided by its code.
    const bool is_refused = !problem_of_place(*image, ranges, {}, segment.svma).empty();
    check(start || is_refused);
    (void)problem_of_place(*image, ranges, {}, segment.svma + 1);
  }
  (void)pe::unwind::read_landing_pads({{data, size}, 0}, 0);
  pe::unwind::UnwindTable table(*image);
  if (image->is_x86_64())
    pe::testing::check_rules(table, sections);
  else
    check(!table.has_rules());
  return 0;
}
