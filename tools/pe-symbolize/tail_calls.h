// Finds the functions that left their frames to the functions that they called last.
//
// A function whose last act is a call ends in a jump: its frame is gone before the callee runs, and
// the return address on the stack is that of its caller.  But the instruction before the return
// address names the function that was called.  If that is not the function of the inner frame, it
// ended in such a jump, and the jumps in its code lead to the inner function.
//
// A function is inserted only if it must have run:
//
//   - The first one was called, because its return address is on the stack, and its code has a way
//     to the inner function: jumps to the starts of functions, at most kMostSteps, or a jump to an
//     address that it computes, such as that of a virtual function.
//   - Those after it are inserted if there is only one way, and none of the functions on it jumps
//     to a computed address.  Otherwise one frame represents them.
//
// Functions are compared, not addresses: parts that compilers split off (".cold", ".part.0") belong
// to their function, and a name that several files define has no known target.  Stubs and thunks
// are passed through, but never inserted.  Code without unwind information, in no file, or of a
// file that is not surely the recorded one has no functions here.
//
// Debug information also lists tail calls (DW_AT_call_tail_call).  All with a known target are
// jumps in the code, so it is not read.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/address_map.h"
#include "names/resolver.h"
#include "pe-symbolize/code_files.h"
#include "pe-symbolize/code_reader.h"
#include "stream/history.h"
#include "stream/proc/process_table.h"

namespace pe::symbolize {

class TailCalls {
 public:
  /// `resolver` must outlive this.
  explicit TailCalls(names::Resolver& resolver) : resolver_(resolver), code_(resolver) {}

  /// The function at an address, and the one that the call before the next byte calls, as numbers
  /// of places where functions start.
  struct Code {
    std::uint32_t function = 0;  ///< 0: not known
    std::uint32_t callee = 0;    ///< 0: not known
    explicit operator bool() const noexcept { return function != 0; }
  };
  /// `mapping` is the mapping of a file at `lookup_address`; the function there starts at
  /// `start_svma`, which is 0 if that is not known.
  Code code_at(std::uint32_t pid, std::uint64_t lookup_address, const stream::Mapping& mapping,
               std::uint64_t start_svma);

  /// A frame to insert.
  struct Frame {
    std::uint64_t word = 0;   ///< in call chains; 0: it has no name yet
    std::uint64_t avma = 0;   ///< in the jump that left it; 0: it represents unknown functions
    bool is_start = false;    ///< `avma` is the start of the function: several jumps may be it
    bool was_called = false;  ///< the call before the return address names it
  };
  /// The frames between a caller and the next inner frame.
  struct Between {
    std::vector<Frame> frames = {};  ///< innermost first
    bool is_unknown = false;         ///< there must be some, but it is not known which
  };
  /// Returns the frames between two adjacent frames of a process; null if there are none.  Valid
  /// until forget().
  Between* between(std::uint32_t pid, const stream::AddressSpace& space, Code caller, Code inner);
  /// Does the same after the innermost frame of an allocation, whose call led to the C library's
  /// allocator.
  Between* before_allocator(std::uint32_t pid, const stream::AddressSpace& space, Code caller);
  /// May something be between them?
  [[nodiscard]] static bool may_differ(Code caller, Code inner) noexcept {
    return caller.callee != 0 && inner.function != 0 && caller.callee != inner.function;
  }

  /// The mappings of a process have changed.
  void forget(const stream::MappingChange& change);

  static constexpr std::size_t kMostSteps = 4;

 private:
  struct File {
    AddressMap<std::uint32_t> starts;  ///< numbers of places, by svma; slots have kSlotMark
    std::map<std::uint64_t, std::uint32_t> functions;  ///< by the svma of the start
    std::unordered_map<std::string, std::uint32_t> by_name;
  };
  struct Start {
    std::uint32_t file = 0;
    CodeReader::Call call = {};  ///< as if it was called
  };
  /// A jump to another function.
  struct Edge {
    std::uint32_t to = 0;            ///< a function, or kNamed and a number in names_
    std::uint64_t next_svma = 0;     ///< after the jump
    bool is_one_of_several = false;  ///< other jumps lead there, too
  };
  struct Exits {
    std::vector<Edge> edges;
    bool has_computed = false, is_whole = true;
  };
  struct Function {
    std::uint32_t file = 0;
    CodeReader::Range range{};
    std::uint32_t whole = 0;  ///< the function of which this is a part; itself
    std::string name = {};    ///< without_part(); empty: not known
    bool is_thunk = false;
    std::unique_ptr<Jumps> jumps = nullptr;  ///< null: not yet read
    std::unique_ptr<Exits> exits = nullptr;  ///< likewise
  };
  /// A function on the way to another, and the jump that leaves it.
  struct Step {
    std::uint32_t function = 0;  ///< 0: it represents unknown functions
    Edge edge = {};
  };
  /// The result of find().
  struct Way {
    std::vector<Step> steps = {};  ///< outermost first
    bool is_unknown = false;
  };
  /// The files that a process has mapped.  Names mean the same in all processes with these files.
  struct Files {
    std::vector<std::uint32_t> numbers;  ///< 0: one that cannot be read
    /// Functions of names, by name and inner file; nullopt: not known.
    std::unordered_map<std::uint64_t, std::optional<std::uint32_t>> targets = {};
    std::unordered_map<std::uint64_t, Way> ways = {};  ///< by callee and function
  };
  struct Process {
    std::map<std::uint64_t, std::pair<stream::Mapping, std::uint32_t>> used;  ///< file by start
    std::unordered_map<std::uint32_t, stream::Mapping> by_file;
    AddressMap<std::uint32_t> pairs;  ///< by callee and function: kNothing, or 1 + a number in ...
    std::deque<Between> between;      ///< ... this
    std::shared_ptr<Files> files;     ///< null: not yet needed
  };
  /// Where a search happens, and for which function.
  struct Place {
    std::uint32_t pid;
    const Process& process;
    Files& files;
    std::uint32_t inner;
    std::uint32_t file;  ///< of `inner`, or of the first function
  };
  class Search;

  std::uint32_t use(std::uint32_t pid, const stream::Mapping& mapping);
  std::uint32_t function_at(std::uint32_t number, std::uint64_t svma, std::uint32_t pid,
                            const stream::Mapping& mapping);
  std::uint32_t function_of(const Place& place, std::uint32_t file, std::uint64_t svma);
  std::uint32_t function_starting(const Place& place, std::uint32_t file, std::uint64_t svma);
  std::uint32_t number_of(const std::string& symbol);
  std::uint32_t start_at(std::uint32_t file, const CodeReader::Call& call);
  std::uint32_t called_at(const Place& place, const Start& start);
  std::optional<std::uint32_t> target_of(const Place& place, std::uint32_t called);
  std::optional<std::uint32_t> find_named(const Place& place, const std::string& symbol);
  std::shared_ptr<Files> files_of(std::uint32_t pid, const stream::AddressSpace& space);
  const Exits& exits_of(const Place& place, std::uint32_t number);
  std::optional<Edge> edge_of(const Place& place, const Function& part, const Jump& jump,
                              std::vector<std::uint32_t>& parts);
  void add_exits(const Place& place, std::uint32_t part, std::vector<std::uint32_t>& parts,
                 Exits& exits);
  const Jumps& jumps_of(Function& function);
  bool may_be_part(const Function& of, Function& part, const Jump& jump);
  template <typename Work>
  void with_payer(std::uint32_t number, const Work& work);
  Way find(const Place& place, std::uint32_t called);
  Way find_ways(const Place& place, std::uint32_t called, std::uint32_t first);
  [[nodiscard]] std::optional<Frame> frame_of(const Process& process, const Step& step) const;
  [[nodiscard]] Between between_of(const Process& process, const Way& way) const;
  template <typename Find>
  Between* remember(std::uint32_t pid, const stream::AddressSpace& space, std::uint64_t key,
                    const Find& find);

  static constexpr std::uint32_t kNamed = 1U << 31;
  static constexpr std::uint32_t kNothing = ~std::uint32_t{0};
  static constexpr std::uint32_t kAllocator = kNamed - 1;  ///< instead of an inner function
  static constexpr std::uint64_t kSlotMark = std::uint64_t{1} << 63;

  names::Resolver& resolver_;
  CodeFiles code_;
  std::vector<File> files_{1};         ///< the first is none
  std::deque<Function> functions_{1};  ///< the first is none
  std::vector<std::string> names_{1};
  std::vector<Start> starts_{1};
  std::unordered_map<std::string, std::uint32_t> numbers_;  ///< in names_
  std::unordered_map<std::uint32_t, Process> processes_;
  std::deque<std::shared_ptr<Files>> last_files_;  ///< of processes, some of which have ended
  std::uint64_t decoded_bytes_ = 0;
};

}  // namespace pe::symbolize
