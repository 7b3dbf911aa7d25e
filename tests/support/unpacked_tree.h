// For tests: reads the format of painting/embed.h as the page's script does, and checks that the
// tree is complete.
// SPDX-License-Identifier: MIT
#pragma once

#include <libdeflate.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "painting/svg/colors.h"

namespace pe::testing {

struct UnpackedTree {
  struct Node {
    std::uint32_t name = 0, children = 0;
    std::uint64_t self = 0;
    std::uint64_t total = 0;
    std::uint32_t parent = 0;
    std::uint64_t space = 0, repeats = 1;
    std::optional<double> delta;
    std::uint64_t before = 0, after = 0;
    unsigned noise = 0;
    double low = 0, high = 0;
  };
  bool is_compared = false, dims_noise = false;
  double largest_change = 0, whole_before = 0, whole_after = 0;
  double largest_delta = 0;
  std::uint64_t decimals = 0, whole = 0, smallest = 0, left_out = 0;
  std::vector<std::string> names;
  std::vector<painting::Rgb> colors;
  std::vector<Node> nodes;
};

/// The format of painting/times.h.
struct UnpackedTimes {
  struct Part {
    std::uint64_t step = 0, place = 0, count = 0;
    bool operator==(const Part&) const = default;
  };
  std::uint64_t start_ns = 0, step_ns = 0, steps = 0, decimals = 0;
  std::vector<Part> parts;
};

class TreeUnpacker {
 public:
  /// `bytes` is a zlib stream.  Throws if it does not hold all times.
  static UnpackedTimes unpack_times(std::string_view bytes) {
    TreeUnpacker unpacker(inflate(bytes));
    return unpacker.read_times();
  }

  /// `bytes` is a zlib stream.  Throws if it does not hold a complete tree.
  static UnpackedTree unpack(std::string_view bytes) {
    TreeUnpacker unpacker(inflate(bytes));
    return unpacker.read();
  }

 private:
  explicit TreeUnpacker(std::string bytes) : bytes_(std::move(bytes)), left_(bytes_) {}

  static void require(bool condition) {
    if (!condition)
      throw std::runtime_error("not a whole tree");
  }

  static std::string inflate(std::string_view bytes) {
    std::string out(bytes.size() * 1100 + 1000, '\0');  // deflate shrinks to 1/1032 at most
    auto* const inflater = libdeflate_alloc_decompressor();
    std::size_t size = 0;
    const auto result = libdeflate_zlib_decompress(inflater, bytes.data(), bytes.size(), out.data(),
                                                   out.size(), &size);
    libdeflate_free_decompressor(inflater);
    require(result == LIBDEFLATE_SUCCESS);
    out.resize(size);
    return out;
  }

  std::string_view take(std::size_t size) {
    require(size <= left_.size());
    const auto taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80)
        return value;
    }
  }

  std::vector<std::uint32_t> planes(std::size_t size, std::size_t limit) {
    std::vector<std::uint32_t> values(size);
    for (unsigned shift = 0; shift == 0 || (limit - 1) >> shift != 0; shift += 8) {
      const auto plane = take(size);
      for (std::size_t i = 0; i < size; ++i)
        values[i] |= std::uint32_t{static_cast<unsigned char>(plane[i])} << shift;
    }
    return values;
  }

  UnpackedTimes read_times() {
    require(number() == 1);
    UnpackedTimes times;
    times.start_ns = number() * 1'000'000'000;
    times.start_ns += number();
    for (std::uint64_t* const value : {&times.step_ns, &times.steps, &times.decimals})
      *value = number();
    for (std::uint64_t step = 0; step < times.steps; ++step)
      times.parts.resize(times.parts.size() + number(), {.step = step, .place = 0, .count = 0});
    for (std::size_t i = 0; i < times.parts.size(); ++i) {
      const bool is_first = i == 0 || times.parts[i].step != times.parts[i - 1].step;
      times.parts[i].place = number() + (is_first ? 0 : times.parts[i - 1].place);
    }
    for (UnpackedTimes::Part& part : times.parts)
      part.count = number();
    require(left_.empty());
    return times;
  }

  UnpackedTree read() {
    require(number() == 1);
    const auto flags = number();
    UnpackedTree tree;
    tree.decimals = number();
    const auto names = number();
    tree.nodes.resize(number());
    tree.whole = number();
    tree.smallest = number();
    tree.left_out = number();
    const bool is_differential = (flags & 1U) != 0;
    const auto largest = is_differential ? number() : 0;
    const double delta_unit = is_differential ? std::pow(10.0, -static_cast<double>(number())) : 1;
    tree.largest_delta = static_cast<double>(largest) * delta_unit;
    tree.is_compared = (flags & 4U) != 0;
    if (tree.is_compared)
      read_compared_head(tree);
    read_names(tree, names);
    read_nodes(tree, names);
    for (auto& node : tree.nodes)
      node.space = (flags & 2U) != 0 ? number() : 0;
    for (auto& node : tree.nodes)
      node.repeats = (flags & 8U) != 0 ? number() : 1;
    for (auto& node : tree.nodes)
      node.delta = is_differential ? delta(number(), delta_unit) : std::nullopt;
    if (tree.is_compared)
      read_compared(tree);
    link(tree);
    require(left_.empty());
    return tree;
  }

  void read_compared_head(UnpackedTree& tree) {
    tree.dims_noise = number() == 1;
    tree.largest_change = static_cast<double>(number()) * 1e-9;
    const double unit = std::pow(10.0, -static_cast<double>(number()));
    tree.whole_before = static_cast<double>(number()) * unit;
    tree.whole_after = static_cast<double>(number()) * unit;
  }

  void read_compared(UnpackedTree& tree) {
    for (auto& node : tree.nodes)
      node.before = number();
    for (auto& node : tree.nodes)
      node.after = number();
    for (auto& node : tree.nodes)
      node.noise = static_cast<unsigned char>(take(1)[0]);
    const auto end = [this] {
      const auto code = number();
      return (code % 2 == 0 ? static_cast<double>(code / 2) : -static_cast<double>(code / 2) - 1) *
             1e-6;
    };
    for (auto& node : tree.nodes) {
      require(node.noise <= 3);
      if (node.noise == 0)
        continue;
      node.low = end();
      node.high = end();
    }
  }

  static std::optional<double> delta(std::uint64_t code, double unit) {
    if (code == 0)
      return std::nullopt;
    const auto size = static_cast<double>(code / 2);
    return (code % 2 == 0 ? -size : size) * unit;
  }

  void read_names(UnpackedTree& tree, std::uint64_t count) {
    std::string_view texts = take(number());
    while (!texts.empty()) {
      const auto end = texts.find('\n');
      require(end != std::string_view::npos);
      tree.names.emplace_back(texts.substr(0, end));
      texts.remove_prefix(end + 1);
    }
    require(tree.names.size() == count && tree.names[0].empty());
    const auto different = number();
    const auto colors = take(3 * different);
    tree.colors.push_back({});
    for (const auto i : planes(count - 1, different)) {
      require(i < different);
      const auto channel = [&](std::size_t at) {
        return static_cast<std::uint8_t>(colors[3 * i + at]);
      };
      tree.colors.push_back({channel(0), channel(1), channel(2)});
    }
  }

  void read_nodes(UnpackedTree& tree, std::uint64_t names) {
    const auto shapes = take(tree.nodes.size());
    const auto of_nodes = planes(tree.nodes.size(), names);
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      tree.nodes[i].name = of_nodes[i];
      require(of_nodes[i] < names);
      const unsigned children = static_cast<unsigned char>(shapes[i]) & 15U;
      tree.nodes[i].children = static_cast<std::uint32_t>(children < 15 ? children : 15 + number());
    }
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      const unsigned self = static_cast<unsigned char>(shapes[i]) >> 4U;
      tree.nodes[i].self = tree.nodes[i].total = self < 15 ? self : 15 + number();
    }
  }

  static void link(UnpackedTree& tree) {
    std::vector<std::uint32_t> waiting;
    for (const auto& node : tree.nodes)
      waiting.push_back(node.children);
    std::uint32_t above = 0;
    for (std::uint32_t i = 1; i < tree.nodes.size(); ++i) {
      while (waiting[above] == 0) {
        require(above != 0);
        above = tree.nodes[above].parent;
      }
      --waiting[above];
      tree.nodes[i].parent = above;
      above = i;
    }
    for (const auto left : waiting)
      require(left == 0);
    for (auto i = static_cast<std::uint32_t>(tree.nodes.size() - 1); i > 0; --i)
      tree.nodes[tree.nodes[i].parent].total += tree.nodes[i].total;
  }

  std::string bytes_;
  std::string_view left_;
};

}  // namespace pe::testing
