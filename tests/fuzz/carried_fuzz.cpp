// Completes any environment.  The result keeps all variables, needs exactly the room that was
// computed, and is complete.  An environment without the library has none to remove.
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "recording/inprocess/runtime/carried.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  std::vector<std::string> texts;
  for (std::string_view left(data, size); !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    texts.emplace_back(line.substr(0, line.find('\0')));
  }
  std::vector<const char*> environment;
  for (const std::string& text : texts)
    environment.push_back(text.c_str());
  environment.push_back(nullptr);
  pe::inprocess::Carried carried;
  carried.set_library("/x.so");
  carried.set_variable("OWN=1");
  if (const std::size_t bytes = carried.room_without(environment.data()); bytes > 0) {
    const auto room = std::make_unique<std::byte[]>(bytes);
    if (carried.room_without(carried.without_library(environment.data(), room.get())) != 0)
      std::abort();
  }
  const std::size_t bytes = carried.room_for(environment.data());
  if (bytes == 0)
    return 0;
  const auto room = std::make_unique<std::byte[]>(bytes);
  const char* const* all = carried.complete(environment.data(), room.get());
  if (carried.room_for(all) != 0)
    std::abort();
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (all[i] != texts[i] && !texts[i].starts_with("LD_PRELOAD="))
      std::abort();
  return 0;
}
