// A small order report, to calibrate `stackpipe runs ci`: it parses text, groups, sorts, prices,
// checks and prints rows, in memory of some MiB as programs do.  With -DSLOWER, one function that
// takes a tenth of the time, price(), computes 20 % more.
// Usage: gate_program PASSES
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#ifdef SLOWER
constexpr int kPriceRounds = 6;
#else
constexpr int kPriceRounds = 5;
#endif
#define NOINLINE __attribute__((noinline))

namespace {

struct Order {
  std::uint32_t id, customer;
  double amount, price;
};

NOINLINE std::string make_text(std::size_t rows) {
  std::string text;
  std::uint32_t random = 1;
  const auto next = [&random] { return random = random * 1664525U + 1013904223U; };
  for (std::size_t row = 0; row < rows; ++row)
    text += std::to_string(next() >> 8) + "," + std::to_string((next() >> 8) % 20'000) + "," +
            std::to_string(next() >> 12) + "\n";
  return text;
}

NOINLINE std::uint32_t parse_number(std::string_view& text) {
  std::uint32_t number = 0;
  while (text.front() >= '0') {
    number = number * 10 + static_cast<std::uint32_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  text.remove_prefix(1);
  return number;
}

NOINLINE std::vector<Order> parse(std::string_view text) {
  std::vector<Order> orders;
  while (!text.empty()) {
    const std::uint32_t id = parse_number(text);
    const std::uint32_t customer = parse_number(text);
    orders.push_back({id, customer, static_cast<double>(parse_number(text)), 0});
  }
  return orders;
}

NOINLINE double group(const std::vector<Order>& orders) {
  std::unordered_map<std::uint32_t, double> sums;
  for (const Order& order : orders)
    sums[order.customer] += order.amount;
  double most = 0;
  for (const auto& [customer, sum] : sums)
    most = std::max(most, sum);
  return most;
}

NOINLINE void price(std::vector<Order>& orders) {
  for (Order& order : orders)
    for (int round = 0; round < kPriceRounds; ++round)
      order.price = std::sqrt(order.amount + order.price) / (1.0 + order.price);
}

NOINLINE void sort_orders(std::vector<Order>& orders) {
  std::sort(orders.begin(), orders.end(),
            [](const Order& a, const Order& b) { return a.amount < b.amount; });
}

NOINLINE std::uint32_t checksum(std::string_view text) {
  std::uint32_t sum = 0;
  for (const char c : text)
    sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
  return sum;
}

NOINLINE std::size_t print(const std::vector<Order>& orders) {
  std::size_t bytes = 0;
  char line[96];
  for (std::size_t i = 0; i < orders.size(); i += 4)
    bytes += static_cast<std::size_t>(std::snprintf(
        line, sizeof line, "%u\t%u\t%.2f\n", orders[i].id, orders[i].customer, orders[i].price));
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const long passes = argc > 1 ? std::atol(argv[1]) : 1;
  const std::string text = make_text(100'000);
  double result = 0;
  for (long pass = 0; pass < passes; ++pass) {
    std::vector<Order> orders = parse(text);
    result += group(orders);
    price(orders);
    sort_orders(orders);
    result += checksum(text) % 7 + static_cast<double>(print(orders));
  }
  std::printf("%.0f\n", result);
  return 0;
}
