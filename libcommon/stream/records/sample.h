// Checks the bytes of records and returns their contents.
//
// Layouts: perf_event_open(2), "MMAP layout"; linux/perf_event.h, enum perf_event_type.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/io/regular_file.h"
#include "stream/records/event.h"
#include "stream/records/record.h"

namespace pe::stream {

/// A range of a record's bytes, counted from the start of its header.
struct RecordPart {
  std::size_t begin = 0, end = 0;
};

/// A PERF_RECORD_SAMPLE.  The views are valid as long as the record's bytes.
struct Sample {
  std::uint64_t ip = 0;  ///< avma, in the sampled process or the kernel
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t time_ns = 0;       ///< in the stream's clock; 0 if the event has none
  std::uint64_t data_address = 0;  ///< avma of data; 0 if the event has none
  std::uint32_t cpu = 0;
  std::uint64_t period = 1;
  bool has_callchain = false;
  U64View callchain;                   ///< leaf first, with PERF_CONTEXT_* marks
  Bytes raw;                           ///< a tracepoint's data; tracefs describes its layout
  std::uint64_t user_regs_abi = 0;     ///< PERF_SAMPLE_REGS_ABI_*; 0: no registers
  U64View user_regs;                   ///< those in attr.sample_regs_user, by rising number
  Bytes user_stack;                    ///< from the stack pointer up; only the copied bytes
  std::uint64_t user_stack_limit = 0;  ///< bytes reserved for the copy of the stack
  std::uint64_t weight = 0;            ///< PERF_SAMPLE_WEIGHT; 0 if the event has none
  RecordPart callchain_part;           ///< count and addresses; without any, empty at their place
  RecordPart user_part;                ///< the program's registers and stack; empty likewise

  /// Returns whether the stack can be walked.
  [[nodiscard]] bool has_user_copy() const noexcept { return user_regs.size() > 0; }
  /// Returns whether the copy is as large as its limit, so that the stack may continue after it.
  [[nodiscard]] bool has_full_copy() const noexcept {
    return user_stack.size() == user_stack_limit;
  }
};

/// Returns nullopt if a field exceeds the record's end.
std::optional<Sample> parse_sample(const Record& record, const perf_event_attr& attr);

/// Returns the time of any record of an event: a sample's own, or that of the trailer that
/// sample_id_all adds to other records.  Returns 0 if the record has none, or is too short.
std::uint64_t time_of(const Record& record, const perf_event_attr& attr);

/// Our recorders write this number and the file's identity between a mapping's path and its
/// trailer.  A reader that does not know them stops at the end of the path.  No trailer starts with
/// the number: it would be a process whose ID is too large.
inline constexpr std::uint64_t kIdentityMark = 0xfe11'1d00'fe11'1d00;

/// An MMAP or MMAP2 record.
struct MmapRecord {
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t start = 0;        ///< avma
  std::uint64_t size = 0;         ///< bytes
  std::uint64_t file_offset = 0;  ///< bytes
  bool executable = false;
  Bytes build_id;            ///< empty unless the record contains one
  std::uint64_t device = 0;  ///< major and minor number; 0 if not recorded
  std::uint64_t inode = 0;   ///< likewise
  FileIdentity identity;     ///< if our recorder wrote it
  std::string_view path;
};
std::optional<MmapRecord> parse_mmap(const Record& record);

/// Returns the size of the trailer that sample_id_all adds to records that are not samples.
std::size_t trailer_bytes(const perf_event_attr& attr) noexcept;

/// A HEADER_BUILD_ID record.  perf reads the build id from the file at the end of the recording.
struct BuildIdRecord {
  bool is_of_program = false;  ///< false: of the kernel, its modules, or a guest
  Bytes build_id;
  std::string_view path;  ///< as in MMAP records
};
std::optional<BuildIdRecord> parse_build_id(const Record& record);

/// Starts what our recorders add to a COMM record of a process, after its name that is padded to a
/// multiple of eight bytes: this number, the process's parent, the length of the command line, and
/// the command line, padded likewise.  See kIdentityMark.
inline constexpr std::uint64_t kCommandLineMark = 0xfe22'2d00'fe22'2d00;

/// In the misc field of a COMM record of ours: its command line is that of the process's next exec.
inline constexpr std::uint16_t kMiscOfNextExec = 1U << 11;

struct CommRecord {
  std::uint32_t pid = 0, tid = 0;
  bool is_exec = false;  ///< the old address space is gone
  std::string_view comm;
  std::uint32_t parent_pid = 0;  ///< of the process; 0: not recorded
  /// The words of the process's command line, each with a NUL.  If the last has none, the command
  /// line is longer.  Empty: not recorded.
  std::string_view command_line = {};
  bool is_of_next_exec = false;  ///< the command line
};
std::optional<CommRecord> parse_comm(const Record& record);

/// A FORK or EXIT record.
struct TaskRecord {
  std::uint32_t pid = 0, parent_pid = 0;
  std::uint32_t tid = 0, parent_tid = 0;
};
std::optional<TaskRecord> parse_task(const Record& record);

/// A SWITCH or SWITCH_CPU_WIDE record: a thread starts or stops running.
struct SwitchRecord {
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t time_ns = 0;
  bool is_out = false;
  bool is_preempted = false;  ///< switched out, but still ready to run
};
/// `attr` defines the trailer of every record, which must contain TID and TIME.
std::optional<SwitchRecord> parse_switch(const Record& record, const perf_event_attr& attr);

/// Flags of a SYMBOL record.
enum SymbolFlags : std::uint32_t {
  kSymbolKernel = 1,
  kSymbolJit = 2,
  kSymbolInlined = 4,
  kSymbolUnresolved = 8,
  kSymbolLibrary = 16,   ///< in a shared library, not in the program itself
  kSymbolScript = 32,    ///< of an interpreted program
  kSymbolTailCall = 64,  ///< it left its frame to the function that it called last
};

/// The recorder cannot see a function that ended in a jump to another one.  pe-symbolize adds it to
/// the call chain, as the address of the jump plus this number: an address that no code has.
inline constexpr std::uint64_t kTailCallStart = 0x00fd'0000'0000'0000;
inline constexpr std::uint64_t kTailCallEnd = 0x00fe'0000'0000'0000;

/// A record of ours: a symbol that later LOCATION records refer to.
struct SymbolRecord {
  std::uint64_t id = 0;
  std::uint32_t flags = 0;
  std::uint32_t line = 0;  ///< 0: not known
  std::string_view name = {}, module = {}, file = {};
};
std::optional<SymbolRecord> parse_symbol(const Record& record);

/// A record of ours: the functions at an address, innermost inlined function first.
struct LocationRecord {
  std::uint32_t pid = 0;      ///< kKernelPid: in the kernel, so in every process
  std::uint64_t address = 0;  ///< like CallChainEntry::lookup_address
  U64View symbol_ids;
};
inline constexpr std::uint32_t kKernelPid = 0xffffffff;
std::optional<LocationRecord> parse_location(const Record& record);

// Adds up the samples that a recording has lost.

class LostSamples {
 public:
  /// Adds a LOST or LOST_SAMPLES record; false if it is malformed.  `time_ns` is the time of the
  /// record, 0 if it has none.
  ///
  /// The kernel reports each loss with the next record that finds room (perf_event_open(2),
  /// PERF_RECORD_LOST).  It also counts the loss for its counter (PERF_FORMAT_LOST).  At its end
  /// the recorder writes these counts as LOST_SAMPLES without a time.  So a loss may be reported
  /// twice; a loss that no record followed is reported only once.
  bool add(const Record& record, std::uint64_t time_ns);
  /// Adds the total loss that a counter reports.
  void add_counted(std::uint64_t lost) noexcept { counted_ += lost; }

  [[nodiscard]] std::uint64_t count() const noexcept { return std::max(told_, counted_); }
  /// Returns the losses in records with a time; count() may have more.
  [[nodiscard]] std::uint64_t told() const noexcept { return told_; }

 private:
  std::uint64_t told_ = 0, counted_ = 0;
};

// The user registers in samples (PERF_SAMPLE_REGS_USER), by the kernel's numbers.

#if defined(__x86_64__)
/// Their DWARF numbers (System V ABI AMD64, figure 3.36); -1 if a register has none.  The index is
/// the kernel's number (arch/x86/include/uapi/asm/perf_regs.h).  From 0 on: ax bx cx dx si di bp sp
/// ip, then flags and segments, which have no DWARF number here, then r8 to r15.
inline constexpr std::array<int, 24> kDwarfNumbers = {0,  3,  2,  1,  4, 5, 6,  7,  16, -1, -1, -1,
                                                      -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15};
#else
inline constexpr std::array<int, 0> kDwarfNumbers = {};
#endif

/// The registers that have a DWARF number, one bit each.
inline constexpr std::uint64_t kKnownRegisters = [] {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < kDwarfNumbers.size(); ++i)
    mask |= kDwarfNumbers[i] >= 0 ? std::uint64_t{1} << i : 0;
  return mask;
}();

}  // namespace pe::stream
