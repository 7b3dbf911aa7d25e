// SPDX-License-Identifier: MIT
#include "stream/records/sample.h"

#include <algorithm>
#include <bit>

#include "base/byte_reader.h"

namespace pe::stream {
namespace {

/// Skips PERF_SAMPLE_READ (perf_event_open(2), read_format).
bool skip_read(ByteReader& reader, std::uint64_t format) {
  const bool has_id = (format & PERF_FORMAT_ID) != 0;
  const bool has_lost = (format & PERF_FORMAT_LOST) != 0;
  const std::uint64_t times = ((format & PERF_FORMAT_TOTAL_TIME_ENABLED) != 0 ? 1U : 0U) +
                              ((format & PERF_FORMAT_TOTAL_TIME_RUNNING) != 0 ? 1U : 0U);
  const std::uint64_t per_value = 1U + (has_id ? 1U : 0U) + (has_lost ? 1U : 0U);
  if ((format & PERF_FORMAT_GROUP) == 0)
    return reader.skip(times + per_value, 8);
  const auto count = reader.take<std::uint64_t>();
  return count && reader.skip(times, 8) && reader.skip(*count, 8 * per_value);
}

bool take_raw(ByteReader& reader, Sample& sample) {
  const auto size = reader.take<std::uint32_t>();
  const auto raw = size ? reader.take_bytes(*size) : std::nullopt;
  if (raw)
    sample.raw = *raw;
  return raw.has_value();
}

bool skip_branch_stack(ByteReader& reader, std::uint64_t branch_type) {
  constexpr std::uint64_t kCounters = 1U << 19;  // PERF_SAMPLE_BRANCH_COUNTERS, from Linux 6.8 on
  const auto count = reader.take<std::uint64_t>();
  constexpr std::uint64_t kEntryBytes = 24;
  const bool has_index = (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX) != 0;
  return count && reader.skip(has_index ? 1 : 0, 8) && reader.skip(*count, kEntryBytes) &&
         ((branch_type & kCounters) == 0 || reader.skip(*count, 8));
}

bool take_callchain(ByteReader& reader, Sample& sample) {
  const auto count = reader.take<std::uint64_t>();
  if (!count || *count > reader.left().size() / 8)
    return false;
  sample.has_callchain = true;
  sample.callchain = U64View(*reader.take_bytes(*count * 8));
  return true;
}

bool take_user_regs(ByteReader& reader, std::uint64_t mask, Sample& sample) {
  const auto abi = reader.take<std::uint64_t>();
  if (!abi)
    return false;
  sample.user_regs_abi = *abi;
  if (*abi == PERF_SAMPLE_REGS_ABI_NONE)
    return true;
  const auto regs = reader.take_bytes(8 * static_cast<std::uint64_t>(std::popcount(mask)));
  if (regs)
    sample.user_regs = U64View(*regs);
  return regs.has_value();
}

bool take_user_stack(ByteReader& reader, Sample& sample) {
  const auto size = reader.take<std::uint64_t>();
  if (!size)
    return false;
  sample.user_stack_limit = *size;
  if (*size == 0)
    return true;
  const auto copied = reader.take_bytes(*size);
  const auto dyn_size = reader.take<std::uint64_t>();  // number of copied bytes
  if (!copied || !dyn_size || *dyn_size > *size)
    return false;
  sample.user_stack = copied->first(static_cast<std::size_t>(*dyn_size));
  return true;
}

/// Reads the fields of fixed size at the start of a sample.
bool take_fixed_part(ByteReader& reader, std::uint64_t type, Sample& sample) {
  const auto take = [&](std::uint64_t bit, auto& into) {
    if ((type & bit) == 0)
      return true;
    const auto value = reader.take<std::remove_reference_t<decltype(into)>>();
    if (value)
      into = *value;
    return value.has_value();
  };
  std::uint64_t ignored = 0;
  std::uint32_t reserved = 0;
  return take(PERF_SAMPLE_IDENTIFIER, ignored) && take(PERF_SAMPLE_IP, sample.ip) &&
         take(PERF_SAMPLE_TID, sample.pid) && take(PERF_SAMPLE_TID, sample.tid) &&
         take(PERF_SAMPLE_TIME, sample.time_ns) && take(PERF_SAMPLE_ADDR, sample.data_address) &&
         take(PERF_SAMPLE_ID, ignored) && take(PERF_SAMPLE_STREAM_ID, ignored) &&
         take(PERF_SAMPLE_CPU, sample.cpu) && take(PERF_SAMPLE_CPU, reserved) &&
         take(PERF_SAMPLE_PERIOD, sample.period);
}

/// Returns false if a field exceeds the record's end.
bool take_fields(const Record& record, const perf_event_attr& attr, Sample& sample) {
  ByteReader reader(record.body());
  const std::uint64_t type = attr.sample_type;
  const auto has = [type](std::uint64_t bit) { return (type & bit) != 0; };
  const auto position = [&] { return record.bytes.size() - reader.left().size(); };
  if (!take_fixed_part(reader, type, sample) ||
      (has(PERF_SAMPLE_READ) && !skip_read(reader, attr.read_format)))
    return false;
  sample.callchain_part.begin = position();
  if (has(PERF_SAMPLE_CALLCHAIN) && !take_callchain(reader, sample))
    return false;
  sample.callchain_part.end = position();
  if ((has(PERF_SAMPLE_RAW) && !take_raw(reader, sample)) ||
      (has(PERF_SAMPLE_BRANCH_STACK) && !skip_branch_stack(reader, attr.branch_sample_type)))
    return false;
  sample.user_part.begin = position();
  if ((has(PERF_SAMPLE_REGS_USER) && !take_user_regs(reader, attr.sample_regs_user, sample)) ||
      (has(PERF_SAMPLE_STACK_USER) && !take_user_stack(reader, sample)))
    return false;
  sample.user_part.end = position();
  if (has(PERF_SAMPLE_WEIGHT)) {
    const auto weight = reader.take<std::uint64_t>();
    if (!weight)
      return false;
    sample.weight = *weight;
  }
  // This code does not use the fields that may follow (data source, transaction, registers
  // of the interrupt, physical address, cgroup, page sizes, AUX).
  return true;
}

/// Returns the build id in an MMAP2 record that is marked as having one: a size, three zeros, and
/// the id, padded with zeros.  Returns empty if the bytes have another form.  If several recorders
/// run, one with build ids and one without, the kernel marks the records of both
/// (perf_event_mmap_output), although one has device and inode.
Bytes build_id_in(Bytes identity) {
  constexpr std::size_t kIdAt = 4;
  const auto size = std::to_integer<std::size_t>(identity.front());
  const auto is_zero = [](std::byte each) { return each == std::byte{0}; };
  const bool is_one = size <= identity.size() - kIdAt &&
                      std::all_of(identity.begin() + 1, identity.begin() + kIdAt, is_zero) &&
                      std::all_of(identity.begin() + kIdAt + static_cast<std::ptrdiff_t>(size),
                                  identity.end(), is_zero);
  return is_one ? identity.subspan(kIdAt, size) : Bytes{};
}

/// Skips the zeros that fill up a text to whole words, and this mark.  Returns false if something
/// else follows.
bool skip_to_addition(ByteReader& reader, std::uint64_t mark) {
  return reader.skip(reader.left().size() % sizeof mark) && reader.take<std::uint64_t>() == mark;
}

/// Returns the identity after a mapping's path.
FileIdentity identity_behind(ByteReader reader) {
  FileIdentity identity;
  if (!skip_to_addition(reader, kIdentityMark))
    return {};
  for (std::uint64_t* field :
       {&identity.boot, &identity.device, &identity.inode, &identity.changed_ns}) {
    const auto value = reader.take<std::uint64_t>();
    if (!value)
      return {};
    *field = *value;
  }
  return identity;
}

}  // namespace

std::optional<Sample> parse_sample(const Record& record, const perf_event_attr& attr) {
  // The sample is filled in place: a copy right after the writes would wait for them (7 of 25 ns).
  std::optional<Sample> sample(std::in_place);
  if (!take_fields(record, attr, *sample))
    sample.reset();
  return sample;
}

std::uint64_t time_of(const Record& record, const perf_event_attr& attr) {
  const std::uint64_t type = attr.sample_type;
  if ((type & PERF_SAMPLE_TIME) == 0)
    return 0;
  const U64View fields(record.body());
  if (record.is_sample()) {
    const auto position = static_cast<std::size_t>(
        std::popcount(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID)));
    return position < fields.size() ? fields[position] : 0;
  }
  if (attr.sample_id_all == 0 || record.type >= kRecordFirstOfPerf)
    return 0;
  constexpr std::uint64_t kAfterTime =
      PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
  const auto position = 1 + static_cast<std::size_t>(std::popcount(type & kAfterTime));
  return position <= fields.size() ? fields[fields.size() - position] : 0;
}

std::optional<MmapRecord> parse_mmap(const Record& record) {
  ByteReader reader(record.body());
  MmapRecord map;
  const auto pid = reader.take<std::uint32_t>();
  const auto tid = reader.take<std::uint32_t>();
  const auto start = reader.take<std::uint64_t>();
  const auto size = reader.take<std::uint64_t>();
  const auto file_offset = reader.take<std::uint64_t>();
  if (!pid || !tid || !start || !size || !file_offset)
    return std::nullopt;
  map.executable = (record.misc & PERF_RECORD_MISC_MMAP_DATA) == 0;
  if (record.type == PERF_RECORD_MMAP2) {
    constexpr std::size_t kIdentityBytes = 24;  // major, minor, inode, generation; or a build id
    const auto identity = reader.take_bytes(kIdentityBytes);
    const auto prot = reader.take<std::uint32_t>();
    const auto flags = reader.take<std::uint32_t>();
    if (!identity || !prot || !flags)
      return std::nullopt;
    constexpr std::uint32_t kProtExec = 4;  // PROT_EXEC
    map.executable = (*prot & kProtExec) != 0;
    if ((record.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0)
      map.build_id = build_id_in(*identity);
    if (map.build_id.empty()) {
      map.device = U64View(*identity)[0];
      map.inode = U64View(*identity)[1];
    }
  }
  const auto path = reader.take_string();
  if (!path || *size == 0 || *start > UINT64_MAX - *size)
    return std::nullopt;
  map.pid = *pid;
  map.tid = *tid;
  map.start = *start;
  map.size = *size;
  map.file_offset = *file_offset;
  map.path = *path;
  if (record.type == PERF_RECORD_MMAP2)
    map.identity = identity_behind(reader);
  return map;
}

std::optional<BuildIdRecord> parse_build_id(const Record& record) {
  // tools/lib/perf: struct perf_record_header_build_id.  Since Linux 5.11 the record contains the
  // size; before that, zeros fill up shorter ids.
  constexpr std::size_t kFieldBytes = 24;
  constexpr std::size_t kMaxBuildId = 20;
  constexpr std::uint16_t kMiscHasSize = 1U << 15;  // PERF_RECORD_MISC_BUILD_ID_SIZE
  ByteReader reader(record.body());
  const auto pid = reader.take<std::uint32_t>();
  const auto field = reader.take_bytes(kFieldBytes);
  const auto path = reader.take_string();
  if (!pid || !field || !path)
    return std::nullopt;
  const bool has_size = (record.misc & kMiscHasSize) != 0;
  std::size_t size = has_size ? std::to_integer<std::size_t>((*field)[kMaxBuildId]) : kMaxBuildId;
  if (size > kMaxBuildId)
    return std::nullopt;
  constexpr std::size_t kWord = 4;
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  while (!has_size && size > 0 && std::ranges::all_of(field->subspan(size - kWord, kWord), is_zero))
    size -= kWord;
  return BuildIdRecord{(record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER,
                       field->first(size), *path};
}

std::optional<CommRecord> parse_comm(const Record& record) {
  ByteReader reader(record.body());
  const auto pid = reader.take<std::uint32_t>();
  const auto tid = reader.take<std::uint32_t>();
  const auto comm = reader.take_string();
  if (!pid || !tid || !comm)
    return std::nullopt;
  CommRecord named{*pid, *tid, (record.misc & PERF_RECORD_MISC_COMM_EXEC) != 0, *comm};
  if (!skip_to_addition(reader, kCommandLineMark))
    return named;
  const auto parent = reader.take<std::uint32_t>();
  const auto bytes = reader.take<std::uint32_t>();
  if (const auto line = parent && bytes ? reader.take_bytes(*bytes) : std::nullopt) {
    named.parent_pid = *parent;
    named.command_line = text_of(*line);
    named.is_of_next_exec = (record.misc & kMiscOfNextExec) != 0;
  }
  return named;
}

std::optional<TaskRecord> parse_task(const Record& record) {
  ByteReader reader(record.body());
  const auto pid = reader.take<std::uint32_t>();
  const auto parent_pid = reader.take<std::uint32_t>();
  const auto tid = reader.take<std::uint32_t>();
  const auto parent_tid = reader.take<std::uint32_t>();
  if (!pid || !parent_pid || !tid || !parent_tid)
    return std::nullopt;
  return TaskRecord{*pid, *parent_pid, *tid, *parent_tid};
}

std::size_t trailer_bytes(const perf_event_attr& attr) noexcept {
  constexpr std::uint64_t kFields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
                                    PERF_SAMPLE_IDENTIFIER;
  const auto fields = static_cast<std::size_t>(std::popcount(attr.sample_type & kFields));
  return attr.sample_id_all == 0 ? 0 : fields * sizeof(std::uint64_t);
}

std::optional<SwitchRecord> parse_switch(const Record& record, const perf_event_attr& attr) {
  constexpr std::uint64_t kNeeded = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  const Bytes body = record.body();
  const std::size_t bytes = trailer_bytes(attr);
  if ((attr.sample_type & kNeeded) != kNeeded || bytes == 0 || body.size() < bytes)
    return std::nullopt;
  ByteReader reader(body.last(bytes));
  SwitchRecord change;
  change.pid = reader.take<std::uint32_t>().value_or(0);
  change.tid = reader.take<std::uint32_t>().value_or(0);
  change.time_ns = reader.take<std::uint64_t>().value_or(0);
  change.is_out = (record.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
  change.is_preempted = (record.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
  return change;
}

std::optional<SymbolRecord> parse_symbol(const Record& record) {
  ByteReader reader(record.body());
  const auto id = reader.take<std::uint64_t>();
  const auto flags = reader.take<std::uint32_t>();
  const auto line = reader.take<std::uint32_t>();
  const auto name = reader.take_string();
  const auto module = reader.take_string();
  const auto file = reader.take_string();
  if (!id || !flags || !line || !name || !module || !file)
    return std::nullopt;
  return SymbolRecord{*id, *flags, *line, *name, *module, *file};
}

std::optional<LocationRecord> parse_location(const Record& record) {
  ByteReader reader(record.body());
  const auto pid = reader.take<std::uint32_t>();
  const auto count = reader.take<std::uint32_t>();
  const auto address = reader.take<std::uint64_t>();
  constexpr std::uint32_t kMaxInlined = 1024;
  if (!pid || !count || !address || *count > kMaxInlined)
    return std::nullopt;
  const auto ids = reader.take_bytes(std::uint64_t{8} * *count);
  if (!ids)
    return std::nullopt;
  return LocationRecord{*pid, *address, U64View(*ids)};
}

bool LostSamples::add(const Record& record, std::uint64_t time_ns) {
  ByteReader reader(record.body());
  if (record.type == PERF_RECORD_LOST && !reader.skip(1, 8))  // the event's id comes first
    return false;
  const auto lost = reader.take<std::uint64_t>();
  if (!lost)
    return false;
  // perf (tools/lib/perf/include/perf/event.h): a filter that the user asked for dropped them.
  constexpr std::uint16_t kLeftOutByFilter = 1U << 15;
  const bool is_counted = record.type == PERF_RECORD_LOST_SAMPLES && time_ns == 0;
  if (is_counted && (record.misc & kLeftOutByFilter) != 0)
    return true;
  (is_counted ? counted_ : told_) += *lost;
  return true;
}

}  // namespace pe::stream
