// SPDX-License-Identifier: MIT
#include "stackfold/strip_names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/io/input.h"
#include "base/io/new_file.h"
#include "base/text.h"
#include "folded/build_details.h"
#include "folded/folded_line.h"
#include "folded/ordered_stacks.h"

namespace pe::folded {
namespace {

/// Orders the heap: the heap functions put the greatest element first.
constexpr auto kIsLater = [](const auto* a, const auto* b) {
  return a->line.stack > b->line.stack;
};

}  // namespace

SortedMerge::SortedMerge(std::vector<Input> inputs) {
  for (Input& input : inputs)
    sources_.push_back(std::make_unique<Source>(std::move(input)));
  for (const auto& source : sources_)
    if (advance(*source))
      heap_.push_back(source.get());
  std::make_heap(heap_.begin(), heap_.end(), kIsLater);
}

bool SortedMerge::advance(Source& source) {
  const auto line = source.reader.next();
  if (!line)
    return false;
  source.line = *line;
  source.is_any = true;
  ++totals_.lines;
  (void)totals_.read.add(line->count);
  return true;
}

std::optional<FoldedLine> SortedMerge::next() {
  if (heap_.empty())
    return std::nullopt;
  stack_ = heap_.front()->line.stack;
  Count sum;
  while (!heap_.empty() && heap_.front()->line.stack == stack_) {
    std::pop_heap(heap_.begin(), heap_.end(), kIsLater);
    Source& source = *heap_.back();
    saturated_ = !sum.add(source.line.count) || saturated_;
    if (!advance(source)) {
      heap_.pop_back();
      continue;
    }
    if (source.line.stack < stack_ && out_of_order_++ == 0)
      first_ = source.reader.place();
    std::push_heap(heap_.begin(), heap_.end(), kIsLater);
  }
  ++totals_.stacks;
  (void)totals_.written.add(sum);
  return FoldedLine{.stack = stack_, .count = sum};
}

}  // namespace pe::folded

namespace pe::fold {
namespace {

/// Reports problems in the inputs.  False if an input was cut, or has only malformed lines.
bool report_inputs(const folded::SortedMerge& merge, const Io& io) {
  bool is_whole = true;
  merge.visit_inputs([&](const folded::FoldedReader& input, bool is_any) {
    const folded::MalformedLines& malformed = input.malformed();
    if (malformed.count > 0 && is_any)
      io.note(malformed.describe());
    if (malformed.count > 0 && !is_any)
      io.report(malformed.describe());
    if (!input.cut_line().empty())
      io.report(input.cut_line() + ": no newline at the end: truncated, perhaps inside the count");
    if (!input.cut_line().empty() || (malformed.count > 0 && !is_any))
      is_whole = false;
  });
  return is_whole;
}

void write(folded::SortedMerge& merge, Output& out) {
  constexpr std::size_t kBlockBytes = 64UL * 1024;
  std::string block;
  while (const auto line = merge.next()) {
    append_folded_line(block, *line);
    if (block.size() < kBlockBytes)
      continue;
    out.write(block);
    block.clear();
  }
  out.write(block);
  out.flush();
}

}  // namespace

bool merge_sorted(std::vector<Input> inputs, const Options& options, Io& io) {
  folded::SortedMerge merge(std::move(inputs));
  StrippedMerge stripped;
  if (options.strips_names)
    stripped = write_stripped(merge, io.out);
  else
    write(merge, io.out);
  const bool is_whole = report_inputs(merge, io);
  if (merge.saturated() || stripped.saturated)
    io.report("some counts exceed 2^64 and were capped");
  if (merge.out_of_order() > 0)
    io.report(
        fmt::format("--merge-sorted: {} out of order, so stacks may appear twice; first: {}: fold "
                    "each input first",
                    plural(merge.out_of_order(), "line"), merge.first_out_of_order()));
  if (const auto& totals = options.strips_names ? stripped.totals : merge.totals();
      options.with_stats)
    io.report(fmt::format("read {}, a count of {}; wrote {}, a count of {}",
                          plural(totals.lines, "line"), folded::to_text(totals.read),
                          plural(totals.stacks, "stack"), folded::to_text(totals.written)));
  return is_whole && merge.out_of_order() == 0;
}

namespace {

using folded::Count;
using folded::FoldedLine;

/// Appends lines in order to `out`; equal stacks that follow each other become one line.
class Writer {
 public:
  explicit Writer(Output& out) : out_(out) {}

  void add(const FoldedLine& line) {
    if (is_any_ && line.stack == stack_) {
      saturated_ = !count_.add(line.count) || saturated_;
      return;
    }
    write_last();
    stack_ = line.stack;
    count_ = line.count;
    is_any_ = true;
  }
  void finish() {
    write_last();
    is_any_ = false;
    out_.write(block_);
    out_.flush();
    block_.clear();
  }
  [[nodiscard]] StrippedMerge result(const folded::MergeTotals& read) const {
    StrippedMerge result{.totals = read, .saturated = saturated_};
    result.totals.stacks = stacks_;
    result.totals.written = written_;
    return result;
  }

 private:
  void write_last() {
    constexpr std::size_t kBlockBytes = 64UL * 1024;
    if (!is_any_)
      return;
    folded::append_folded_line(block_, {.stack = stack_, .count = count_, .before = {}});
    ++stacks_;
    (void)written_.add(count_);
    if (block_.size() < kBlockBytes)
      return;
    out_.write(block_);
    block_.clear();
  }

  Output& out_;
  std::string block_, stack_;
  Count count_, written_;
  std::uint64_t stacks_ = 0;
  bool is_any_ = false;
  bool saturated_ = false;
};

std::string temporary_path() {
  const char* folder = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): one thread
  return std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/stackfold";
}

/// The lines that were read, in sorted parts.
class Parts {
 public:
  void add(const FoldedLine& line) {
    constexpr std::size_t kLineBytes = 128;
    constexpr std::size_t kMostBytes = 32UL * 1024 * 1024;
    if (bytes_ > kMostBytes)
      spill();
    stacks_->add(line);
    bytes_ += line.stack.size() + kLineBytes;
  }

  void write(Writer& writer) {
    if (files_.empty()) {
      write_stacks(writer);
      return;
    }
    spill();
    merge_files(writer);
  }

 private:
  void merge_files(Writer& writer) {
    std::vector<Input> inputs;
    for (const Fd& file : files_)
      inputs.push_back(Input::open("-", file.get()));
    folded::SortedMerge merge(std::move(inputs));
    while (const auto line = merge.next())
      writer.add(*line);
    writer.finish();
    files_.clear();
  }

  void write_stacks(Writer& writer) {
    folded::OrderedStacks::Reader reader(*stacks_);
    while (const auto line = reader.next())
      writer.add(*line);
    writer.finish();
  }

  /// Creates a file without a name, so that nothing remains of it.
  [[nodiscard]] Fd new_file() const {
    const NewFile file(path_, 0600);
    Fd fd(::fcntl(file.fd().get(), F_DUPFD_CLOEXEC, 0));
    if (!fd)
      throw_errno(path_, errno);
    return fd;
  }

  /// Writes a new file, and returns it at its start.
  template <typename Write>
  Fd written(Write&& write) {
    Fd file = new_file();
    FdOutput out(file.get(), path_);
    Writer writer(out);
    write(writer);
    if (::lseek(file.get(), 0, SEEK_SET) < 0)
      throw_errno(path_, errno);
    return file;
  }

  void spill() {
    constexpr std::size_t kMostFiles = 64;
    if (files_.size() == kMostFiles)
      files_.push_back(written([this](Writer& writer) { merge_files(writer); }));
    files_.push_back(written([this](Writer& writer) { write_stacks(writer); }));
    stacks_ = std::make_unique<folded::OrderedStacks>();
    bytes_ = 0;
  }

  std::unique_ptr<folded::OrderedStacks> stacks_ = std::make_unique<folded::OrderedStacks>();
  std::size_t bytes_ = 0;
  std::vector<Fd> files_;
  std::string path_ = temporary_path();
};

}  // namespace

std::string_view StrippedNames::of(std::string_view frame) {
  constexpr std::size_t kMostNames = 100'000;
  frame_ = frame;
  if (const auto found = known_.find(frame_); found != known_.end())
    return found->second;
  if (known_.size() >= kMostNames)
    known_.clear();
  return known_.emplace(frame_, folded::without_build_details(frame)).first->second;
}

std::string_view StrippedNames::of_stack(std::string_view stack) {
  stack_.clear();
  for (;;) {
    const auto end = stack.find(';');
    stack_ += of(stack.substr(0, end));
    if (end == std::string_view::npos)
      return stack_;
    stack_ += ';';
    stack.remove_prefix(end + 1);
  }
}

StrippedMerge write_stripped(folded::SortedMerge& merge, Output& out) {
  StrippedNames names;
  Parts parts;
  while (const auto line = merge.next())
    parts.add({.stack = names.of_stack(line->stack), .count = line->count, .before = {}});
  Writer writer(out);
  parts.write(writer);
  return writer.result(merge.totals());
}

}  // namespace pe::fold
