// The addresses of a program's functions, from its symbol table.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>
#include <variant>

#include "objects/image.h"
#include "objects/symbol_table.h"

namespace pe::testing {

/// Opens the image of a file; the test fails if the file is not one.
inline objects::Image image_of(const std::string& path) {
  auto opened = objects::Image::open(path);
  BOOST_REQUIRE_MESSAGE(std::holds_alternative<objects::Image>(opened), path);
  return std::move(std::get<objects::Image>(opened));
}

/// The symbol with this (mangled) name; the test fails if there is none.  g++ 16 marks names in
/// anonymous namespaces as local: it writes an L before the length of the name.
inline objects::Symbol symbol_of(const objects::Image& image, std::string_view name) {
  const std::string_view anonymous = "12_GLOBAL__N_1";
  std::string marked(name);
  if (const auto at = marked.find(anonymous); at != std::string::npos)
    marked.insert(at + anonymous.size(), "L");
  const objects::SymbolTable table(image);
  for (std::uint32_t i = 0; i < table.size(); ++i)
    if (table.at(i).name == name || table.at(i).name == marked)
      return table.at(i);
  BOOST_FAIL("no symbol " << name);
  return {};
}

}  // namespace pe::testing
