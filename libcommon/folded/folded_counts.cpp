// SPDX-License-Identifier: MIT
#include "folded/folded_counts.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace pe::folded {
namespace {

/// One multiplication for two frames, folded to 64 bits (the mixing step of wyhash).
std::size_t hash_of(std::span<const FrameId> frames) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::uint64_t hash = frames.size() * kOdd;
  __extension__ using Wide = unsigned __int128;
  for (std::size_t i = 0; i < frames.size(); i += 2) {
    const std::uint64_t second = i + 1 < frames.size() ? frames[i + 1] : 0;
    const Wide product = static_cast<Wide>(hash ^ (second << 32U | frames[i])) * kOdd;
    hash = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
  }
  return hash;
}

/// How many frames from the root on two stacks have in common.
std::size_t common_frames(std::span<const FrameId> a, std::span<const FrameId> b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

/// The lines of a text that is sorted, each made from the one before it.
class LineWriter {
 public:
  LineWriter(const FrameTable& table, io::Output& out) : table_(table), out_(out) {}

  void write(std::span<const FrameId> frames, Count count) {
    keep(common_frames(frames, last_));
    for (const FrameId frame : frames.subspan(last_.size())) {
      if (!last_.empty())
        stack_ += ';';
      stack_ += table_[frame];
      last_.push_back(frame);
      ends_.push_back(stack_.size());
    }
    append_folded_line(block_, {.stack = stack_, .count = count});
    constexpr std::size_t kBlockBytes = 64UL * 1024;
    if (block_.size() >= kBlockBytes)
      flush();
  }
  void flush() {
    out_.write(block_);
    block_.clear();
  }

 private:
  /// Cuts the stack at hand down to its first `count` frames.
  void keep(std::size_t count) {
    last_.resize(count);
    ends_.resize(count);
    stack_.resize(count == 0 ? 0 : ends_.back());
  }

  const FrameTable& table_;
  io::Output& out_;
  std::vector<FrameId> last_;      ///< frames of stack_
  std::vector<std::size_t> ends_;  ///< where each of them ends in it
  std::string stack_;
  std::string block_;
};

}  // namespace

bool FoldedCounts::Equal::operator()(const Key& key, Index index) const {
  const Stack& stack = owner->stacks_[index];
  return key.hash == stack.hash && std::ranges::equal(key.frames, owner->frames_of(stack));
}

void FoldedCounts::add(Frames frames, Count count) {
  const Key key{frames, hash_of(frames)};
  const auto found = index_.find(key);
  if (found != index_.end()) {
    saturated_ = !stacks_[*found].count.add(count) || saturated_;
    return;
  }
  const auto index = static_cast<Index>(stacks_.size());
  stacks_.push_back({frames_.size(), frames.size(), key.hash, count});
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  index_.insert(index);
}

void FoldedCounts::add(std::string_view stack, Count count) {
  split_.clear();
  for (;;) {
    const auto end = stack.find(';');
    split_.push_back(frame_table_.intern(stack.substr(0, end)));
    if (end == std::string_view::npos)
      break;
    stack.remove_prefix(end + 1);
  }
  add(split_, count);
}

void FoldedCounts::add_divided(const FoldedCounts& other, std::uint64_t divisor) {
  for (const Stack& stack : other.stacks_) {
    const std::uint64_t rest = stack.count.whole % divisor;
    add(other.frames_of(stack),
        {.whole = stack.count.whole / divisor + (rest >= divisor - rest ? 1 : 0)});
  }
  saturated_ = saturated_ || other.saturated_;
}

/// As memcmp() would order the texts.  Only the first frames that differ need be
/// looked at: no text holds a ';', so none begins with another and a ';'.
bool FoldedCounts::is_before(Frames a, Frames b) const {
  const std::size_t common = common_frames(a, b);
  if (common == a.size() || common == b.size())
    return a.size() < b.size();
  const std::string_view a_text = frame_table_[a[common]];
  const std::string_view b_text = frame_table_[b[common]];
  const std::size_t bytes = std::min(a_text.size(), b_text.size());
  if (const int order = a_text.compare(0, bytes, b_text, 0, bytes); order != 0)
    return order < 0;
  // One text is the beginning of the other: what follows it is compared, a ';' or the end.
  const auto next = [&](std::string_view text, bool is_last) {
    return bytes < text.size() ? static_cast<unsigned char>(text[bytes]) : is_last ? -1 : ';';
  };
  return next(a_text, common + 1 == a.size()) < next(b_text, common + 1 == b.size());
}

std::vector<FoldedCounts::Index> FoldedCounts::sorted() const {
  std::vector<Index> order(stacks_.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::sort(order.begin(), order.end(), [this](Index a, Index b) {
    return is_before(frames_of(stacks_[a]), frames_of(stacks_[b]));
  });
  return order;
}

void FoldedCounts::write(io::Output& out) const {
  LineWriter lines(frame_table_, out);
  for (const Index index : sorted())
    lines.write(frames_of(stacks_[index]), stacks_[index].count);
  lines.flush();
}

}  // namespace pe::folded
