// Builds a Go program's table of functions, as Go's linker writes it (unwind/walk/go_frames.h).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_reader.h"

namespace pe::testing {

struct GoFunction {
  std::uint32_t offset;  ///< from the start of the code
  std::string name;
  int flags;
  std::string pairs;  ///< including the 0 at their end
};

/// `end` is the end of the code; it is an offset, as those of the functions are.
inline std::string go_table(const std::vector<GoFunction>& functions, std::uint32_t end,
                            std::uint64_t text_start, bool has_lines = true) {
  std::string names;
  std::string pairs("\0", 1);
  std::string list;
  std::string descriptions;
  const auto list_bytes = static_cast<std::uint32_t>(8 * functions.size() + 4);
  for (const GoFunction& function : functions) {
    list += bytes_of(function.offset);
    list += bytes_of(static_cast<std::uint32_t>(list_bytes + descriptions.size()));
    const std::uint32_t of_function[] = {function.offset,
                                         static_cast<std::uint32_t>(names.size()),
                                         0,
                                         0,
                                         static_cast<std::uint32_t>(pairs.size()),
                                         0,
                                         0,
                                         0,
                                         0};
    for (const std::uint32_t word : of_function)
      descriptions += bytes_of(word);
    if (has_lines)
      descriptions += bytes_of(std::uint32_t{7});
    descriptions += '\0';  // number of a special function of the runtime; 0: it is none
    descriptions += static_cast<char>(function.flags);
    descriptions += std::string(2, '\0');
    names += function.name + '\0';
    pairs += function.pairs;
  }
  list += bytes_of(end);
  constexpr std::uint64_t kHeaderBytes = 72;
  std::string table(bytes_of(std::uint32_t{has_lines ? 0xfffffff1U : 0xfffffff0U}));
  table += std::string("\0\0\1\10", 4);
  for (const std::uint64_t word :
       {std::uint64_t{functions.size()}, std::uint64_t{0}, text_start, kHeaderBytes,
        std::uint64_t{0}, std::uint64_t{0}, kHeaderBytes + names.size(),
        kHeaderBytes + names.size() + pairs.size()})
    table += bytes_of(word);
  return table + names + pairs + list + descriptions;
}

}  // namespace pe::testing
