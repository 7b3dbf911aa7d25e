// The program of the tutorial: reads orders, prices them and keeps them; a second thread saves
// them.  It has three faults, each for one of the tools to find.
//
//     c++ -O2 -g -pthread orders.cpp -o orders
//     ./orders [SECONDS]
//
// SPDX-License-Identifier: MIT
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace orders {

struct Order {
  std::string customer, article;
  unsigned pieces;
  double price;
};

// Keeps each function visible in the flame graph.
#define NOINLINE __attribute__((noinline))

// Splits a line of input at its commas.
NOINLINE std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  std::string field;
  for (const char c : line) {
    if (c == ',') {
      fields.push_back(field);
      field.clear();
    } else {
      field += c;
    }
  }
  fields.push_back(field);
  return fields;
}

NOINLINE Order parse(const std::string& line) {
  const std::vector<std::string> fields = split(line);
  return {fields[0], fields[1], static_cast<unsigned>(std::atoi(fields[2].c_str())), 0};
}

// Fault 1: searches all articles, although there is a hash table of them.
class Prices {
 public:
  Prices() {
    for (int i = 0; i < kArticles; ++i)
      add("article-" + std::to_string(i), 1 + i % 97);
  }
  NOINLINE double look_up(const std::string& article) const {
#ifdef FASTER
    return by_name_.at(article);
#else
    for (const auto& [name, price] : list_)
      if (name == article)
        return price;
    return 0;
#endif
  }
  static constexpr int kArticles = 300;

 private:
  void add(const std::string& name, double price) {
    list_.emplace_back(name, price);
    by_name_.emplace(name, price);
  }
  std::list<std::pair<std::string, double>> list_;
  std::unordered_map<std::string, double> by_name_;
};

// Fault 2: keeps all orders for ever.
class Archive {
 public:
  NOINLINE void keep(const Order& order) {
    const std::lock_guard lock(mutex_);
    orders_.push_back(new Order(order));
    unsaved_ += 1;
    if (unsaved_ >= kMostUnsaved)
      work_.notify_one();
  }
  // Fault 3: holds the lock during the write, so keep() also waits for the disk.
  NOINLINE void save_all() {
    std::unique_lock lock(mutex_);
    work_.wait_for(lock, std::chrono::milliseconds(100),
                   [this] { return unsaved_ >= kMostUnsaved; });
    write_to_disk();
    unsaved_ = 0;
    lock.unlock();
    saves_ = saves_ + 1;  // keeps the last call from becoming a jump without this frame
  }

 private:
  static constexpr unsigned kMostUnsaved = 10000;
  NOINLINE static void write_to_disk() {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // about as fast as a disk
  }
  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<Order*> orders_;
  unsigned unsaved_ = 0;
  volatile unsigned saves_ = 0;  // only for the saving thread
};

NOINLINE void serve(double seconds) {
  const Prices prices;
  static Archive archive;  // static, because a thread uses it that nobody joins
  std::thread([] {
    for (;;)
      archive.save_all();
  }).detach();
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  unsigned served = 0;
  while (std::chrono::steady_clock::now() < end) {
    const std::string line = "customer-" + std::to_string(served % 1000) + ",article-" +
                             std::to_string(served * 7 % Prices::kArticles) + ",3";
    Order order = parse(line);
    order.price = order.pieces * prices.look_up(order.article);
    archive.keep(order);
    ++served;
  }
  std::printf("%u orders\n", served);
}

}  // namespace orders

int main(int argc, char** argv) {
  orders::serve(argc > 1 ? std::atof(argv[1]) : 5);
  std::fflush(stdout);
  std::_Exit(0);
}
