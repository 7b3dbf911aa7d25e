// Reads any bytes as an ELF image, and its code: what return addresses return from, and where
// functions jump.  A target is the start of a function or a name; a jump is within its function.
// SPDX-License-Identifier: MIT
#include "pe-symbolize/code_reader.h"

#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::byte* data, std::size_t size) {
  using pe::testing::require;
  auto opened = pe::objects::Image::from_memory({data, data + size});
  auto* const image = std::get_if<pe::objects::Image>(&opened);
  if (image == nullptr || !image->is_x86_64())
    return 0;
  const pe::unwind::FunctionRanges ranges(*image);
  std::vector<pe::unwind::FunctionRanges::Range> functions;
  constexpr std::size_t kMost = 64;
  ranges.for_each([&](const auto& range) {
    if (functions.size() < kMost)
      functions.push_back(range);
  });
  pe::symbolize::CodeReader reader(std::move(*image), {},
                                   {.open = {}, .ranges = [&ranges] { return &ranges; }});
  const auto check_target = [&](const pe::symbolize::Target& to) {
    const auto range = ranges.range_of(to.svma);
    require(!to.symbol.empty() || (range && range->start_svma == to.svma));
  };
  for (const auto& function : functions) {
    const auto found = reader.function_at(function.start_svma);
    require(!found || found->covers(function.start_svma));
    for (const std::uint64_t svma : {function.start_svma + 5, function.end_svma})
      if (const auto call = reader.call_before(svma))
        if (const auto target = reader.target_of(*call))
          check_target(*target);
    const pe::symbolize::Jumps jumps = reader.jumps_of(function);
    for (const pe::symbolize::Jump& jump : jumps.named) {
      require(jump.next_svma > function.start_svma && jump.next_svma <= function.end_svma);
      require(!jump.to.symbol.empty() || !function.covers(jump.to.svma));
      check_target(jump.to);
    }
  }
  require(reader.decoded_bytes() <= pe::symbolize::CodeReader::kMostDecodedBytes);
  (void)reader.exports_of("ext");
  return 0;
}
