// SPDX-License-Identifier: MIT
#include "recording/stream/kernel_start.h"

#include <string>

#include "base/io/regular_file.h"
#include "stream/proc/kallsyms.h"

namespace pe::stream {

std::uint64_t kernel_start() {
  const auto opened = open_regular("/proc/kallsyms");
  const auto* file = std::get_if<RegularFile>(&opened);
  if (file == nullptr)
    return 0;
  // _text is among the first symbols; reading all 100,000 would cost a recorder 50 ms.
  constexpr std::size_t kHeadBytes = 64UL * 1024;
  std::string head(kHeadBytes, '\0');
  head.resize(read_at(file->fd, 0, std::as_writable_bytes(std::span(head))));
  head.resize(head.rfind('\n') + 1);
  const auto symbols = Kallsyms::parse(head);
  const auto* kallsyms = std::get_if<Kallsyms>(&symbols);
  return kallsyms == nullptr ? 0 : kallsyms->text_start().value_or(0);
}

}  // namespace pe::stream
