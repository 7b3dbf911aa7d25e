// Reads the call graph that `sample` of macOS prints:
//
//   Call graph:
//       100 Thread_1234   DispatchQueue_1: com.apple.main-thread  (serial)
//       + 60 main  (in probe) + 36  [0x100f3fe3c]
//       + ! 40 work(int)  (in probe) + 44  [0x100f3fd00]  probe.cpp:12
//
// The number of a line includes its own samples and those of the lines below it.  The column of the
// number gives the depth; "+ ! : |" before it draw the tree.
// Source: published reports of macOS 10.6 to 26, and the output of stackcollapse-sample.awk.
// SPDX-License-Identifier: MIT
#include "stackfold/formats/readers.h"

#include <optional>
#include <vector>

#include "base/characters.h"
#include "base/text.h"
#include "stackfold/formats/text.h"
#include "stackfold/frame_text.h"

namespace pe::fold::macos_sample {
namespace {

struct Node {
  std::size_t column;  ///< of the number
  std::uint64_t total;
  std::string_view text;  ///< after the number
};

/// Returns nullopt if the line does not belong to the tree.
std::optional<Node> parse_node(std::string_view line) {
  const auto column = line.find_first_not_of(" \t+!:|");
  if (column == 0 || column == kNone || !is_digit(line[column]))
    return std::nullopt;
  const auto end = line.find(' ', column);
  const auto total = parse_number<std::uint64_t>(line.substr(column, end - column));
  const std::string_view text = end == kNone ? "" : trim(line.substr(end));
  if (!total || text.empty())
    return std::nullopt;
  return Node{column, *total, text};
}

/// The system calls in which a thread waits: for a lock, a message, data, work, a child or a
/// timeout.
constexpr std::string_view kWaits[] = {
    "__accept",
    "__psynch_cvwait",
    "__psynch_mutexwait",
    "__recvfrom",
    "__select",
    "__semwait_signal",
    "__sigwait",
    "__ulock_wait",
    "__ulock_wait2",
    "__wait4",
    "__workq_kernreturn",
    "kevent",
    "kevent64",
    "kevent_id",
    "kevent_qos",
    "mach_msg2_trap",
    "mach_msg_trap",
    "poll",
    "read",
    "semaphore_timedwait_trap",
    "semaphore_wait_trap",
    "semaphore_wait_signal_trap",
};

bool waits(std::string_view text) {
  const bool is_of_system =
      text.find("(in libsystem_kernel") != kNone || text.find("(in libSystem") != kNone;
  const std::string_view function = text.substr(0, text.find_first_of(" \t"));
  return is_of_system &&
         std::find(std::begin(kWaits), std::end(kWaits), function) != std::end(kWaits);
}

class Collapser : public TextCollapser {
 public:
  using TextCollapser::TextCollapser;

  void end() {
    end_graph();
    if (waiting_ > 0)
      report_.left_out = plural(waiting_, "sample") + " of waiting threads left out";
  }

  void take(std::string_view line) {
    if (line.starts_with("Call graph:")) {
      end_graph();
      in_graph_ = true;
    } else if (in_graph_) {
      if (const auto node = parse_node(line))
        add(*node);
      else if (line.starts_with("Total number in stack") ||
               line.starts_with("Sort by top of stack"))
        end_graph();
      else if (!trim(line).empty())
        lines_.ignore(line);
    }
  }

 private:
  struct Open {
    std::size_t column;
    std::uint64_t left;  ///< samples that no child accounts for
    bool is_waiting;     ///< the function waits
  };

  void add(const Node& node) {
    close_down_to(node.column);
    // In a cut or invalid report, the children may have more samples than the parent: they count,
    // and the parent has none left.
    if (!open_.empty())
      open_.back().left -= std::min(open_.back().left, node.total);
    open_.push_back({node.column, node.total, options_.only_running && waits(node.text)});
    frames_.push_back(counts_.frames().intern(clean_name(frame_of(node.text))));
  }

  /// Ends every open line that cannot be a parent of a line at `column`.
  void close_down_to(std::size_t column) {
    while (!open_.empty() && open_.back().column >= column) {
      if (open_.back().is_waiting) {
        waiting_ += open_.back().left;
      } else if (open_.back().left > 0) {
        counts_.add(frames_, {.whole = open_.back().left});
        report_.samples += 1;
      }
      open_.pop_back();
      frames_.pop_back();
    }
  }

  void end_graph() {
    close_down_to(0);
    in_graph_ = false;
  }

  std::uint64_t waiting_ = 0;  ///< samples left out
  bool in_graph_ = false;
  std::vector<Open> open_;               ///< from the root to the last line
  std::vector<folded::FrameId> frames_;  ///< the frames of open_
};

std::string with_single_blanks(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (!is_blank(c))
      out += c;
    else if (!out.empty() && out.back() != ' ')
      out += ' ';
  return out;
}

}  // namespace

std::string frame_of(std::string_view text) {
  constexpr std::string_view kIn = " (in ";
  const auto in = text.rfind(kIn);
  const auto close = in == kNone ? kNone : text.find(')', in);
  if (close == kNone)
    return with_single_blanks(text);
  const auto begin = in + kIn.size();
  std::string_view module = text.substr(begin, close - begin);
  constexpr std::string_view kLibrary = ".dylib";
  if (module.ends_with(kLibrary))
    module.remove_suffix(kLibrary.size());
  return std::string(module).append("`").append(trim(text.substr(0, in)));
}

bool looks_like(std::string_view head) {
  return has_line(head, [](std::string_view line) {
    return line.starts_with("Call graph:") || line.starts_with("Analysis of sampling ");
  });
}

TextReport fold(Input& input, const Options& options, folded::FoldedCounts& counts) {
  return fold_lines<Collapser>(input, options, counts);
}

}  // namespace pe::fold::macos_sample
