// The programs built from tests/data/src, and the output of commands that examine them.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pe::testing {

/// The path at which meson built the test binary `name`.
inline std::string test_binary(std::string_view name) {
  const char* folder = std::getenv("STACKPIPE_TEST_DATA");
  BOOST_REQUIRE_MESSAGE(folder != nullptr, "run by meson test, or set STACKPIPE_TEST_DATA");
  return std::string(folder) + "/" + std::string(name);
}

/// The path of a test binary whose debug information is in other files.
inline std::string made(std::string_view name) {
  return test_binary("debug_files/" + std::string(name));
}

inline std::vector<std::byte> bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// The output of a shell command, which must succeed.
inline std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  BOOST_REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> block{};
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe))
    text.append(block.data(), n);
  BOOST_REQUIRE_MESSAGE(::pclose(pipe) == 0, command);
  return text;
}

}  // namespace pe::testing
