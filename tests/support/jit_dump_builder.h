// Builds jitdump files.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"

namespace pe::testing {

struct MadeLine {
  std::uint64_t avma;
  std::uint32_t line;
  std::string file;
};

class JitDumpBuilder {
 public:
  explicit JitDumpBuilder(std::uint64_t flags = 0) {
    add(std::uint32_t{0x4a695444}).add(std::uint32_t{1}).add(std::uint32_t{40});
    add(std::uint32_t{62}).add(std::uint32_t{0}).add(std::uint32_t{1});
    add(std::uint64_t{0}).add(flags);
  }

  JitDumpBuilder& load(std::uint64_t time_ns, std::uint64_t code, std::uint64_t size,
                       std::string_view name) {
    std::string body = place(code);
    append(body, code);
    append(body, size);
    append(body, std::uint64_t{1});
    body += name;
    body += '\0';
    return record(0, time_ns, body + std::string(size < 4096 ? size : 0, '\xcc'));
  }
  JitDumpBuilder& move(std::uint64_t time_ns, std::uint64_t from, std::uint64_t to,
                       std::uint64_t size) {
    std::string body = place(to);
    for (const std::uint64_t number : {from, to, size, std::uint64_t{1}})
      append(body, number);
    return record(1, time_ns, body);
  }
  JitDumpBuilder& lines(std::uint64_t time_ns, std::uint64_t code,
                        const std::vector<MadeLine>& made) {
    std::string body;
    append(body, code);
    append(body, std::uint64_t{made.size()});
    for (const MadeLine& line : made) {
      append(body, line.avma);
      append(body, line.line);
      append(body, std::uint32_t{0});
      body += line.file;
      body += '\0';
    }
    return record(2, time_ns, body);
  }
  /// Unwind information of the next load: the section, and a header of `header_bytes` bytes.
  JitDumpBuilder& unwinding(std::uint64_t time_ns, std::string_view eh_frame,
                            std::size_t header_bytes = 20) {
    std::string body;
    for (const std::uint64_t number : {std::uint64_t{eh_frame.size() + header_bytes},
                                       std::uint64_t{header_bytes}, std::uint64_t{0}})
      append(body, number);
    body += eh_frame;
    return record(4, time_ns, body + std::string(header_bytes, '\1'));
  }
  JitDumpBuilder& record(std::uint32_t type, std::uint64_t time_ns, std::string_view body) {
    add(type).add(static_cast<std::uint32_t>(16 + body.size())).add(time_ns);
    text_ += body;
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  template <typename T>
  static void append(std::string& to, const T& number) {
    to += bytes_of(number);
  }
  static std::string place(std::uint64_t avma) {
    std::string bytes;
    append(bytes, std::uint64_t{0x100000001});
    append(bytes, avma);
    return bytes;
  }
  template <typename T>
  JitDumpBuilder& add(const T& number) {
    append(text_, number);
    return *this;
  }

  std::string text_;
};

}  // namespace pe::testing
